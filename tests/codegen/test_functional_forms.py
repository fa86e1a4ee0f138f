# SPDX-License-Identifier: BSD-3-Clause
"""Which functional form the in-place and out= forms of overloads belong to."""

from __future__ import annotations

import itertools

import pytest
import torch
import upstream_torchgen as upstream
from spec_runs import operator, plan, recording
from torchgen.model import SchemaKind

from codegen.analysis.functional_forms import view_copies
from codegen.plan.autograd import Unrecorded
from codegen.plan.library import OperatorPlan, Plan
from codegen.schema.forms import functional_signature

# Functional forms and others, an entry each: `NAME` is an operator of a tensor.
_SCHEMAS = {
    "functional": "{}(Tensor x) -> Tensor",
    "in-place": "{}(Tensor(a!) x) -> Tensor(a!)",
    "out=": "{}(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
}


def entry(name: str, more: str = "") -> str:
    """An entry of the form that the name is that of."""
    base, _, overload = name.partition(".")
    is_out = overload.endswith("out") or overload.startswith("out")
    kind = "in-place" if base.endswith("_") else "out=" if is_out else "functional"
    kernel = name.replace(".", "_")
    return f"- func: {_SCHEMAS[kind].format(name)}\n{more}  dispatch:\n    CPU: {kernel}\n"


def functional_form(names: str, name: str) -> str | None:
    """The functional form of one of some operators."""
    return _functional(plan("".join(map(entry, names.split()))), name)


def _functional(found: Plan, name: str) -> str | None:
    op = operator(found, name)
    is_by_form = op.traced is not None and op.traced.function == "functionalized_by"
    traced = str(op.traced.target) if op.traced and is_by_form else None
    if op.operator.func.is_out:
        batched = op.batching.form if op.batching else None
        assert traced == (str(batched) if batched else None)
    assert traced == (str(op.form_of) if op.form_of else None)
    return traced


@pytest.mark.parametrize(
    ("names", "form", "expected"),
    [
        ("f f_ f.out", "f_", "f"),
        ("f f_ f.out", "f.out", "f"),
        ("f.a f.b f_.a f_.b", "f_.a", "f.a"),
        ("f.a f.b f_.a f_.b", "f_.b", "f.b"),
        ("f.a f.b f.a_out f.b_out", "f.a_out", "f.a"),
        ("f.a f.b f.a_out f.b_out", "f.b_out", "f.b"),
        ("f.b_out f.a_out f_.b f_.a f.a f.b", "f.b_out", "f.b"),
        ("f f.a f_ f_.a f.out f.a_out", "f.out", "f"),
        ("f f.a f_ f_.a f.out f.a_out", "f.a_out", "f.a"),
        ("f f.a f_ f_.a f.out f.a_out", "f_.a", "f.a"),
    ],
)
def test_forms_of_one_overload_belong_together(names: str, form: str, expected: str) -> None:
    assert functional_form(names, form) == expected


@pytest.mark.parametrize(
    ("names", "form"),
    [
        ("f.a f_.b", "f_.b"),
        ("f f_.b", "f_.b"),
        ("f.a f_.a f_.b", "f_.b"),
        ("f.a f_.a f_", "f_"),
        ("f.a f.b f_.a f_.b f_.c", "f_.c"),
        ("f.a f.b f_.a f_.b f_", "f_"),
        ("f.a f.b_out", "f.b_out"),
        ("f f.b_out", "f.b_out"),
        ("f.a f.a_out f.out", "f.out"),
        ("f.a f.b f.a_out f.b_out f.out", "f.out"),
        ("f.a f.b f.c_out", "f.c_out"),
    ],
)
def test_a_form_is_never_that_of_another_overload(names: str, form: str) -> None:
    assert functional_form(names, form) is None


@pytest.mark.parametrize(
    ("names", "form", "expected"),
    [
        ("f.Tensor f.out", "f.out", "f.Tensor"),
        ("f.Tensor f_", "f_", "f.Tensor"),
        ("f.Tensor_Scalar f_.Scalar", "f_.Scalar", "f.Tensor_Scalar"),
        ("f.dim_IntList f.IntList_out", "f.IntList_out", "f.dim_IntList"),
        ("f.Tensor_mode f.out_mode", "f.out_mode", "f.Tensor_mode"),
    ],
)
def test_some_words_of_the_overload_are_enough_where_there_is_one(
    names: str, form: str, expected: str
) -> None:
    assert functional_form(names, form) == expected


def test_an_out_form_may_be_named_after_what_it_writes() -> None:
    results = "(Tensor(a!) values, Tensor(b!) indices)"
    schema = "(Tensor self, int dim, *, Tensor(a!) values, Tensor(b!) indices) -> " + results
    functional = "(Tensor self, int dim) -> (Tensor values, Tensor indices)"
    found = plan(
        f"- func: sort{functional}\n- func: sort.stable{functional}\n"
        f"- func: sort.values_stable{schema}\n- func: sort.values{schema}\n"
    )
    assert _functional(found, "sort.values") == "sort"
    assert _functional(found, "sort.values_stable") == "sort.stable"


def test_what_autogen_declares_belongs_to_its_entry_whatever_it_is_called() -> None:
    text = entry("f.a", "  autogen: f.b_out\n") + entry("f.b", "  autogen: f.other_out\n")
    text += entry("f_.c", "  autogen: f.c, f.c_out\n") + entry("f_.d", "  autogen: f.d_out\n")
    found = plan(text)
    expected = {"f.b_out": "f.a", "f.other_out": "f.b", "f_.c": "f.c", "f.c_out": "f.c"}
    assert {name: _functional(found, name) for name in expected} == expected
    assert _functional(found, "f_.d") is _functional(found, "f.d_out") is None


def test_an_out_form_of_an_in_place_one_runs_no_other_overload() -> None:
    found = plan(entry("f.a") + entry("f_.d", "  autogen: f.d_out\n"))
    (kernel,) = operator(found, "f.d_out").kernels
    assert str(kernel.declared_form.target) == "f_.d"


def test_an_out_form_that_returns_nothing_is_one() -> None:
    found = plan(
        entry("f.a")
        + entry("f.b")
        + "- func: f.b_out(Tensor x, *, Tensor(a!) out) -> ()\n  dispatch:\n    CPU: f_b_out\n"
    )
    assert _functional(found, "f.b_out") == "f.b"


def test_structured_forms_are_those_that_delegate_whatever_they_are_called() -> None:
    delegates = "  structured_delegate: f.tanh_out\n"
    found = plan(
        entry("f.a")
        + entry("f.tanh_out", "  structured: True\n")
        + f"- func: f.b(Tensor x) -> Tensor\n{delegates}"
        + f"- func: f_.c(Tensor(a!) x) -> Tensor(a!)\n{delegates}"
    )
    assert _functional(found, "f.tanh_out") == _functional(found, "f_.c") == "f.b"


FORMULAS = """\
- name: f.a(Tensor x) -> Tensor
  x: grad * 2
- name: f.b(Tensor x) -> Tensor
  x: grad * 3
"""


def test_an_in_place_form_takes_the_formula_of_its_own_overload_or_none() -> None:
    names = ("f.a", "f.b", "f_.b", "f_.a", "f_.c")
    found = plan("".join(map(entry, names)), FORMULAS)
    plans = {name: operator(found, name) for name in names}
    assert plans.pop("f_.c").on_autograd is Unrecorded.NOT_IMPLEMENTED
    nodes = {name: recording(op).node.name for name, op in plans.items()}
    assert nodes["f_.b"] == nodes["f.b"] == "FBackward1"
    assert nodes["f_.a"] == nodes["f.a"] == "FBackward0"


def test_the_formula_of_another_overload_does_not_stand_in() -> None:
    names = ("f.a", "f.b", "f_.b", "f_.a")
    found = plan("".join(map(entry, names)), FORMULAS.partition("- name: f.b")[0])
    assert not operator(found, "f_.b").recordings
    assert operator(found, "f_.a").recordings


def test_samples_are_those_of_the_overload() -> None:
    names = ("f.a", "f_.a", "f.a_out", "f.b", "f_.b", "f.c")
    sizes = {"f.a": 3, "f.b": 4}
    more = {name: f"  samples:\n    - {{x: [{size}]}}\n" for name, size in sizes.items()}
    found = plan("".join(entry(name, more.get(name, "")) for name in names))
    samples = {name: operator(found, name).samples for name in names}
    for name, size in {"f_.a": 3, "f.a_out": 3, "f_.b": 4}.items():
        assert samples[name] == ({"x": {"tensor": {"size": [size]}}},)
    assert samples["f.c"] == ()


_TYPES = (
    "int SymInt ScalarType Layout MemoryFormat DeviceIndex Device bool SymBool float Scalar str "
    "int? SymInt? ScalarType? bool? int[] int[2] SymInt[] SymInt[3] float[] bool[] bool[3] Tensor "
    "Tensor? Tensor[] Tensor(a) Tensor?[] Generator? Stream complex"
).split()


def test_an_out_form_that_torch_takes_for_that_of_another_overload_has_no_tag_for_it() -> None:
    torchs = pytest.importorskip("torch._library._out_variant", reason="from torch 2.13 on")
    text = "".join(
        f"- func: f{i}.a({first} n, Tensor x) -> Tensor\n"
        f"- func: f{i}.b_out({second} n, Tensor x, *, Tensor(c!) out) -> Tensor(c!)\n"
        for i, (first, second) in enumerate(itertools.product(_TYPES, repeat=2))
    )
    found = [op for op in plan(text).operators if not op.operator.beside]
    for other, out in zip(found[::2], found[1::2], strict=True):
        schemas = (torch._C.parse_schema(op.schema) for op in (out, other))
        assert ("out" in out.tags) is not torchs._signatures_match(*schemas), (
            out.schema,
            other.schema,
        )


# Pairs of upstream's whose names do not say that they are: torch functionalizes these by itself.
UNNAMED = {
    "bernoulli_.float": "bernoulli.p",
    "bernoulli.float_out": "bernoulli.p",
    "floor_divide_.Tensor": "floor_divide",
    "max.unary_out": "max",
    "mean.dtype_out": "mean",
    "min.unary_out": "min",
}


def test_pairs_of_upstream_are_those_of_torchgen() -> None:
    text = upstream.NATIVE_FUNCTIONS.read_text(encoding="utf-8")
    ours = {str(op.operator.name): op for op in plan(text, namespace="aten2").operators}
    groups: dict[object, dict[SchemaKind, str]] = {}
    for function in upstream.parsed().native_functions:
        forms = groups.setdefault(function.func.signature(), {})
        forms[function.func.kind()] = str(function.func.name)
    expected = {
        forms[kind]: forms[SchemaKind.functional]
        for forms in groups.values()
        for kind in (SchemaKind.inplace, SchemaKind.out)
        if kind in forms and _has_results_of(ours, forms[kind], forms.get(SchemaKind.functional))
    }
    assert len(expected) > 1000
    found = {name: str(ours[name].form_of) for name in expected}
    assert {name for name in expected if found[name] != expected[name]} == UNNAMED.keys()
    assert {found[name] for name in UNNAMED} == {"None"}
    assert expected | UNNAMED == expected


def _has_results_of(ours: dict[str, OperatorPlan], name: str, functional: str | None) -> bool:
    """Whether torch's own call of the functional form could stand in for that of the other one."""
    if functional is None:
        return False
    forms = ours[name].operator, ours[functional].operator
    first, second = (functional_signature(form.func) for form in forms)
    return first == second


@pytest.mark.parametrize(
    ("more", "copy"),
    [
        ("  autogen: f_copy\n", "f_copy"),
        ("  autogen: f_functional\n", "f_functional"),
        ("", "f_copy"),  # which is generated
        (
            "- func: f_copy(Tensor x, int n) -> Tensor\n  dispatch: {CPU: f_copy}\n"
            "- func: g_copy(Tensor x) -> Tensor\n  dispatch: {CPU: g_copy}\n",
            "f_copy.generated1",
        ),
        ("- func: f_copy(Tensor x) -> Tensor\n  dispatch: {CPU: f_copy}\n", "f_copy"),
    ],
)
def test_what_copies_a_view(more: str, copy: str) -> None:
    found = plan(f"- func: f(Tensor(a) x) -> Tensor(a)\n  dispatch: {{CPU: f}}\n{more}")
    copies = view_copies([op.operator for op in found.operators])
    assert {str(a): str(b) for a, b in copies.items()} == {"f": copy}
