# SPDX-License-Identifier: BSD-3-Clause
"""Schemas that `autogen:` derives, by torchgen's rules."""

from __future__ import annotations

import pytest
from spec_runs import operator, plan

from codegen.schema.forms import derive_schema, form_tag, scatter_form, viewed
from codegen.schema.parser import parse_name, parse_schema


@pytest.mark.parametrize(
    ("schema", "name", "expected"),
    [
        (
            "f(Tensor x, int n=1) -> Tensor",
            "f.out",
            "f.out(Tensor x, int n=1, *, Tensor(a!) out) -> Tensor(a!)",
        ),
        (
            "f.a(Tensor x) -> (Tensor, Tensor)",
            "f.a_out",
            "f.a_out(Tensor x, *, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))",
        ),
        (
            "f(Tensor x) -> Tensor[]",
            "f.out",
            "f.out(Tensor x, *, Tensor(a!)[] out) -> ()",
        ),
        (
            "f(Tensor x) -> (Tensor, int)",
            "f.out",
            "f.out(Tensor x, *, Tensor(a!) out0) -> int",
        ),
        (
            "f(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
            "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
            "f.out",
            "f.out(int[] size, *, MemoryFormat? memory_format=None, Tensor(a!) out) -> Tensor(a!)",
        ),
        (
            "f_(Tensor(a!) self, Tensor x) -> Tensor(a!)",
            "f",
            "f(Tensor self, Tensor x) -> Tensor",
        ),
        (
            "f_(Tensor(a!) self, Tensor x) -> Tensor(a!)",
            "f.out",
            "f.out(Tensor self, Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
        ),
        (
            "f.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
            "f",
            "f(Tensor x) -> Tensor",
        ),
        (
            "f(Tensor(a!) x, Tensor y) -> ()",
            "f.functional",
            "f.functional(Tensor x, Tensor y) -> Tensor x_out",
        ),
        (
            "f(Tensor x, Tensor(a!) state) -> Tensor",
            "f.functional",
            "f.functional(Tensor x, Tensor state) -> (Tensor, Tensor state_out)",
        ),
        (
            "f(Tensor x, Tensor(a!) state) -> Tensor",
            "f.out",
            "f.out(Tensor x, Tensor(a!) state, *, Tensor(b!) out) -> Tensor(b!)",
        ),
        (
            "f.a(Tensor x, int n, *, Scalar s=1) -> Tensor",
            "f_.a",
            "f_.a(Tensor(a!) x, int n, *, Scalar s=1) -> Tensor(a!)",
        ),
        (
            "__and__(Tensor x, Tensor y) -> Tensor",
            "__iand__",
            "__iand__(Tensor(a!) x, Tensor y) -> Tensor(a!)",
        ),
        (
            "f_(Tensor(a!)[] self, float s) -> ()",
            "f",
            "f(Tensor[] self, float s) -> Tensor[] self_out",
        ),
    ],
)
def test_derives_the_form_of_this_name(schema: str, name: str, expected: str) -> None:
    assert str(derive_schema(parse_schema(schema), parse_name(name))) == expected


@pytest.mark.parametrize(
    ("schema", "name", "reason"),
    [
        ("f(Tensor x) -> Tensor", "f.other", "'f.other' is neither an out= form (its overload does "
         "not end in 'out'), an in-place one (its name does not end in '_') nor functional"),
        ("f(Tensor x) -> Tensor", "g_", "'g_' is called after another operator, 'g'"),
        (
            "f(Tensor x) -> Tensor",
            "f_copy_",
            "the in-place form of 'f' has another name than 'f_copy_'",
        ),
        ("f(Tensor x) -> Tensor", "g.out", "'g.out' is called after another operator, 'g'"),
        ("f_(Tensor(a!) x) -> Tensor(a!)", "g", "'g' is called after another operator, 'g'"),
        ("f(Tensor x) -> (Tensor, Tensor)", "f_", "'f' returns something else than a Tensor, which "
         "'f_' would write"),
        ("f(int n, Tensor x) -> Tensor", "f_", "the first argument of 'f' is no Tensor that 'f_' "
         "could write to"),
        ("f(*, Tensor x) -> Tensor", "f_", "the first argument of 'f' is no Tensor that 'f_' could "
         "write to"),
        ("f(Tensor x) -> int", "f.out", "'f' returns no tensor that 'f.out' could be written to"),
    ],
)  # fmt: skip
def test_says_why_there_is_no_such_form(schema: str, name: str, reason: str) -> None:
    assert derive_schema(parse_schema(schema), parse_name(name)) == reason


def test_declared_forms_are_operators_behind_their_entry() -> None:
    found = plan(
        "- func: f(Tensor x) -> Tensor\n  autogen: f.out\n  tags: [core, nondeterministic_seeded]\n"
        "- func: g(Tensor x) -> Tensor\n"
    )
    assert [str(op.operator.name) for op in found.operators] == ["f", "f.out", "g"]
    out = operator(found, "f.out")
    (kernel,) = out.kernels
    assert kernel.key == "CompositeExplicitAutograd"
    assert str(kernel.declared_form.target) == "f"
    assert out.tags == ("generated", "nondeterministic_seeded", "pt2_compliant_tag")
    assert out.spec_line == "native_functions.yaml:1"


def test_two_entries_may_declare_the_same_form() -> None:
    found = plan(
        "- func: f(Tensor self) -> Tensor\n  autogen: f.out\n"
        "- func: f_(Tensor(a!) self) -> Tensor(a!)\n  autogen: f, f.out\n"
    )
    assert [str(op.operator.name) for op in found.operators] == ["f", "f.out", "f_"]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("f(Tensor(a) x, int d, int e) -> Tensor(a)",
         "f_scatter(Tensor x, Tensor src, int d, int e) -> Tensor"),
        ("f(int d, Tensor(a) src, *, int e) -> Tensor(a)",
         "f_scatter(int d, Tensor src, Tensor src_, *, int e) -> Tensor"),
        ("f.two(Tensor(a) x, int d) -> Tensor(a)[]",
         "f_scatter.two(Tensor x, Tensor src, int d, int number=0) -> Tensor"),
        ("f(Tensor(a) x, *, int number) -> Tensor(a)[]",
         "f_scatter(Tensor x, Tensor src, *, int number, int number_=0) -> Tensor"),
    ],
)  # fmt: skip
def test_the_form_that_writes_to_a_view(schema: str, expected: str) -> None:
    assert str(scatter_form(parse_schema(schema))) == expected


@pytest.mark.parametrize(
    "schema",
    [
        "f(Tensor x) -> Tensor",
        "f(Tensor(a) x, Tensor(a) y) -> Tensor(a)",
        "f(Tensor(a)[] xs) -> Tensor(a)",
        "f(Tensor(a)? x) -> Tensor(a)",
        "f(*, Tensor(a) x) -> Tensor(a)",
        "f(Tensor(a) x) -> (Tensor(a), Tensor)",
        "f(Tensor(a!) x) -> Tensor(a!)",
        "f(Tensor(a) x) -> Tensor(a)?",
    ],
)
def test_what_is_no_view_of_one_tensor(schema: str) -> None:
    assert viewed(parse_schema(schema)) is None
    assert scatter_form(parse_schema(schema)) is None


@pytest.mark.parametrize(
    ("schema", "tag"),
    [
        ("f_(Tensor(a!) x, Tensor y) -> Tensor(a!)", "inplace"),
        ("f_(Tensor x, Tensor(a!) y) -> Tensor(a!)", None),
        ("f_(Tensor(a!) x, Tensor(b!) y) -> Tensor(a!)", None),
        ("f_(*, Tensor(a!) x) -> Tensor(a!)", "out"),
        ("f_(Tensor(a!) x) -> ()", None),
        ("f(Tensor(a!) x) -> Tensor(a!)", None),
        ("f_(Tensor x) -> Tensor", None),
        ("f.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", "out"),
        ("f.out(Tensor x, *, Tensor(a!) out) -> ()", "out"),
        ("f.out(Tensor(a!) x, *, Tensor(b!) out) -> Tensor(b!)", None),
        ("f.out(Tensor x, *, Tensor(a!)[] out) -> ()", None),
    ],
)
def test_the_tag_of_a_form(schema: str, tag: str | None) -> None:
    assert form_tag(parse_schema(schema)) == tag
