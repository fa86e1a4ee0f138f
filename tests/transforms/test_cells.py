# SPDX-License-Identifier: BSD-3-Clause
"""Every cell of the table: it passes, or the reason for which it is excused is a fact."""

import json
from pathlib import Path

import pytest
import torch
from cases import parts
from table_rows import KINDS, kind_of, registered
from transform_table import COLUMNS, Reason, cells, excuse_of

import torchext


def runs_cuda_kernels() -> bool:
    record = Path(torchext.library.find_library("torchext")).with_suffix(".json")
    return torch.cuda.is_available() and json.loads(record.read_text())["cuda_kernels"]


GPU = runs_cuda_kernels()


def assert_there_is_no_such_form(row):
    name = row.operator.partition(".")[0] + ("_" if row.kind == "in-place" else "")
    named = [overload for overload in registered() if overload.overloadpacket.__name__ == name]
    assert row.kind in KINDS and row.kind not in [kind_of(overload) for overload in named]


def assert_no_gradient_is_given(row):
    """Either the result says so, or backward does, by the operator's name."""
    for subject in row.subjects():
        given = [t.requires_grad_() for t in subject.given()]
        for result in parts(subject.pure(*given)):
            if result.requires_grad:
                with pytest.raises(RuntimeError, match=f"myns::{row.operator.partition('.')[0]}"):
                    result.sum().backward()


def assert_refused(row, column, excuse):
    with pytest.raises(excuse.error, match=excuse.match):
        COLUMNS[column](row)
    if torchs := row.of_torch():
        with pytest.raises(excuse.error, match=excuse.torch_match or excuse.match):
            COLUMNS[column](torchs)


@pytest.mark.parametrize("row, column", cells(), ids=[f"{r}-{column}" for r, column in cells()])
def test_cell(row, column):
    excuse = excuse_of(row, column, GPU)
    reason = excuse and excuse.reason
    if reason is None:
        COLUMNS[column](row)
    elif reason is Reason.NO_SUCH_FORM:
        assert_there_is_no_such_form(row)
    elif reason is Reason.NEEDS_A_GPU:
        pytest.skip("no GPU is visible, or the library has no CUDA kernels")
    elif reason is Reason.NOT_DIFFERENTIABLE:
        assert_no_gradient_is_given(row)
    else:
        assert_refused(row, column, excuse)
