# SPDX-License-Identifier: BSD-3-Clause
"""The table is whole, its excuses are few, and docs/transforms.md is it."""

import runpy
from dataclasses import replace
from pathlib import Path

import pytest
import test_cells
import torch
from operators import FORMS, OPERATORS
from own_spec import native_functions
from table_rows import KINDS, ROWS, registered
from torch.testing._internal.optests import OpCheckError
from transform_table import COLUMNS, excuse_of, excused_share

from codegen.spec.keys import spec_keys
from codegen.spec.model import Operator

ROOT = Path(__file__).resolve().parents[2]


def row_named(name):
    return next(row for row in ROWS if str(row) == name)


def row_tags(row):
    return row.overload.tags if row.overload is not None else []


def test_every_operator_of_the_dispatcher_has_a_row():
    forms = [row.overload for row in ROWS if row.overload is not None]
    assert sorted(form.name() for form in forms) == sorted(o.name() for o in registered())
    assert {form.name() for form in forms} == {"myns::" + name for name in (*OPERATORS, *FORMS)}


def test_a_row_is_a_form_of_its_operator():
    assert {row.operator for row in ROWS} == set(OPERATORS)
    assert len(ROWS) == len(OPERATORS) * len(KINDS)
    for name, form in FORMS.items():
        kind = "in-place" if form.is_inplace else "out"
        assert row_named(f"{form.functional}-{kind}").overload.name() == f"myns::{name}"


def test_each_way_to_make_a_form_is_in_the_table():
    entries = native_functions()
    used = {key: [entry[key] for entry in entries if key in entry] for key in spec_keys(Operator)}
    for key in (
        "structured", "structured_delegate", "ufunc_inner_loop", "precomputed", "autogen", "meta",
        "layout", "rows",
    ):  # fmt: skip
        assert used[key], key
    assert "pointwise" in used["vmap"]
    assert {"fp32", "promote", "lower_precision_fp"} == set(used["autocast"])


def test_pointwise_operators_have_all_forms_of_one_kernel():
    pointwise = [row for row in ROWS if torch.Tag.pointwise in row_tags(row)]
    assert {row.kind for row in pointwise} == set(KINDS)
    for row in ROWS:
        if row.operator in {other.operator for other in pointwise}:
            assert row.overload is not None, row


@pytest.mark.parametrize("gpu", [False, True], ids=["no_gpu", "gpu"])
def test_at_most_five_percent_of_the_cells_are_excused(gpu):
    assert excused_share(gpu) <= 0.05


@pytest.mark.parametrize(
    "name, is_found, message",
    [
        ("mul.Tensor-functional", test_cells.assert_there_is_no_such_form, "functional"),
        ("mul.Tensor-in-place", test_cells.assert_no_gradient_is_given, "DID NOT RAISE"),
    ],
)
def test_an_excuse_that_is_not_true_is_found(name, is_found, message):
    with pytest.raises((AssertionError, pytest.fail.Exception), match=message):
        is_found(row_named(name))


SUBTRACTION = {
    "functional": torch.ops.aten.sub.Tensor,
    "in-place": torch.ops.aten.sub_.Tensor,
    "out": torch.ops.aten.sub.out,
}
ADDITION = [(row_named(f"add.Tensor-{kind}"), column) for kind in KINDS for column in COLUMNS]
NOT_COMPARED = [
    ("functional", "opcheck"),  # compares an operator with itself
    ("in-place", "opcheck"),
    ("out", "opcheck"),
    ("out", "vmap"),  # of torch's own operators refused
    ("out", "nested vmap"),
]
COMPARED = [
    (row, column)
    for row, column in ADDITION
    if (row.kind, column) not in NOT_COMPARED and not excuse_of(row, column, test_cells.GPU)
]


@pytest.mark.parametrize("row, column", COMPARED, ids=[f"{r}-{column}" for r, column in COMPARED])
def test_a_column_finds_the_values_of_another_operator(row, column):
    with pytest.raises(AssertionError, match="Tensor-likes are not close"):
        COLUMNS[column](replace(row, overload=SUBTRACTION[row.kind]))


@pytest.mark.filterwarnings("ignore:.*Overriding a previously registered kernel.*:UserWarning")
def test_opcheck_finds_a_meta_kernel_that_disagrees():
    def transposed(self, other):
        return torch.empty(torch.broadcast_shapes(self.shape, other.shape)[::-1], device="meta")

    library = torch.library.Library("myns", "IMPL")
    try:
        library.impl("mul.Tensor", transposed, "Meta")
        with pytest.raises(OpCheckError, match="test_faketensor"):
            COLUMNS["opcheck"](row_named("mul.Tensor-functional"))
    finally:
        library._destroy()
    COLUMNS["opcheck"](row_named("mul.Tensor-functional"))


def test_the_page_is_the_table():
    maker = runpy.run_path(str(ROOT / "docs" / "make_transforms.py"))
    message = "docs/transforms.md is out of date: run python docs/make_transforms.py"
    assert maker["page"]() == (ROOT / "docs" / "transforms.md").read_text(encoding="utf-8"), message


def test_the_page_has_every_column_and_the_readme_links_it():
    page = (ROOT / "docs" / "transforms.md").read_text(encoding="utf-8")
    for column in COLUMNS:
        assert f"| {column} | " in page
    assert "(docs/transforms.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
