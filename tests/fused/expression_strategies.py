# SPDX-License-Identifier: BSD-3-Clause
"""Random expressions, as a spec has them."""

from collections.abc import Sequence

from hypothesis import strategies as st

from codegen.fused.functions import functions

NAMES = ("x", "y", "z")
_NUMBERS = ["1", "2", "0.5", "-1.5", "3", "0"]
_CALLED = sorted(
    n for n, f in functions().items()
    if n.isidentifier() and not f.is_of_rows and f.kind != "given"
)  # fmt: skip


def _call(name: str, inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    function = functions()[name]
    count = len(function.arguments) - len(function.defaults)
    return st.lists(inner, min_size=count, max_size=count).map(
        lambda given: f"{name}({', '.join(given)})"
    )


def _conditions(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    signs = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
    one = st.builds(lambda a, s, b: f"({a}) {s} ({b})", inner, signs, inner)
    joined = st.builds(lambda a, w, b: f"{a} {w} {b}", one, st.sampled_from(["and", "or"]), one)
    return st.one_of(one, joined, one.map(lambda text: f"not ({text})"))


def _deeper(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    numbers = [n for n in _CALLED if not functions()[n].is_condition]
    return st.one_of(
        st.builds(lambda a, s, b: f"({a}) {s} ({b})", inner, st.sampled_from("+-*/"), inner),
        st.builds(lambda a, n: f"({a}) ** {n}", inner, st.sampled_from([2, 3])),
        inner.map(lambda a: f"-({a})"),
        *[st.sampled_from(numbers).flatmap(lambda name: _call(name, inner))] * 3,
        st.builds(
            lambda a, c, b: f"({a}) if {c} else ({b})", inner, _conditions(inner), inner
        ),
    )  # fmt: skip


def expressions(more: Sequence[str] = ()) -> st.SearchStrategy[str]:
    """Of elements of x, y and z, numbers, and what else stands where these do."""
    leaves = [st.sampled_from(given) for given in (NAMES, _NUMBERS, more) if given]
    return st.recursive(st.one_of(leaves), _deeper, max_leaves=12)


EXPRESSIONS = expressions()

_REDUCTIONS = ["sum", "mean", "amax", "amin", "var", "logsumexp", "prod"]
_OF_ONE = ["tanh", "sigmoid", "sin", "softmax", "log_softmax", "abs", "relu"]


def _with_rows(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds(lambda a, s, b: f"({a}) {s} ({b})", inner, st.sampled_from("+-*"), inner),
        st.builds(lambda f, a: f"{f}({a})", st.sampled_from(_OF_ONE), inner),
        st.builds(lambda f, a: f"{f}({a})", st.sampled_from(_REDUCTIONS), inner),
        st.builds(lambda a: f"({a})[i]", inner),
        st.builds(
            lambda a, c, b: f"({a}) if {c} else ({b})", inner, _conditions(inner), inner
        ),
    )  # fmt: skip


_OF_ROWS = ["x", "y", "x", "z[:n // 2]", "z[n // 2:]", "s[..., None]", "0.5", "2", "n", "arange(n)"]


def rows_of(more: Sequence[str] = ()) -> st.SearchStrategy[str]:
    """Of x and y, which have rows, s[..., None], of which each row has one, an index i, and z, of
    which two slices are rows; some are two rows."""
    row = st.recursive(st.sampled_from([*_OF_ROWS, *more]), _with_rows, max_leaves=10)
    return st.one_of(row, row, st.builds(lambda a, b: f"cat({a}, {b})", row, row))


ROWS = rows_of()
