# SPDX-License-Identifier: BSD-3-Clause
"""Forty-one entries of PyTorch's derivatives.yaml, mirrored and compared with aten everywhere.

`make upstream` does it for all of them; this sample is varied over what formulas use, with
one entry for each way of using it.
"""

from __future__ import annotations

import os
from pathlib import Path
from unittest import mock

import pytest
import torch

from . import report, run
from .calls import Overload

BUILD = Path(__file__).absolute().parents[2] / "build" / "tests" / "upstream"
# What aten lacks as well, so that fewer than all can be compared.
AT_LEAST = {
    "schema": (43, 7), "value": (43, 7), "flags": (43, 7), "reverse": (43, 7), "forward": (41, 7),
    "double": (40, 6), "writes": (10, 6),  # to what stands in a list of views aten writes nothing
}  # fmt: skip
VIEWS = 7


@pytest.fixture(scope="module")
def made() -> dict:
    with mock.patch.dict(os.environ):  # the build sets some for the whole process
        return run.run_sample(BUILD)


@pytest.mark.slow
def test_every_entry_is_accepted_compiles_and_links(made):
    for title, count in (
        ("entries", len(run.sample_entries()) - VIEWS),
        ("entries that return views", VIEWS),
    ):
        assert set(made[title].values()) == {count}, report.text(made)
    assert made["errors of no entry"] == []


@pytest.mark.slow
@pytest.mark.parametrize("column", report.ALL)
def test_the_mirror_equals_aten(made, column):
    rows = [row for row in made["falls short"] if row["what"] == column]
    assert [row for row in rows if not row["explanation"]] == []
    found = made["columns"][column]["tested"], made["columns of views"][column]["tested"]
    assert all(count >= least for count, least in zip(found, AT_LEAST[column])), found


@pytest.mark.slow
def test_calls_are_left_out_only_where_a_list_is_refused(made):
    # its callers hand a default on, `stride=[]`, which its own schema does not have
    assert made["calls refused"].keys() == {"avg_pool2d_backward"}
    columns = made["operators"]["avg_pool2d_backward"]
    assert columns["value"]["status"] == "match"
    assert columns["value"]["calls"] >= columns["value"]["refused"] > 0


@pytest.mark.parametrize(
    ("name", "size", "stride", "taken"),
    [
        ("avg_pool2d_backward", [2, 2], [1, 1], True),
        ("avg_pool2d_backward", [2], [1], True),
        ("avg_pool2d_backward", [2, 2], [], False),
        ("avg_pool2d_backward", [2, 2, 2], [1], False),
        ("avg_pool2d", [2, 2], [], True),  # the default
        ("avg_pool2d", [2, 2], [1, 1, 1], False),
    ],
)
def test_the_length_of_a_list_is_that_of_its_schema(name, size, stride, taken):
    tensors = [None] * (2 if name.endswith("backward") else 1)
    overload = Overload(getattr(torch.ops.aten, name).default)
    assert overload.takes_lists(((*tensors, size, stride), {})) is taken
    assert overload.takes_lists(((*tensors, size), {"stride": stride})) is taken


@pytest.mark.slow
def test_every_operator_of_the_sample_is_reached(made):
    assert made["not tested"] == {}
