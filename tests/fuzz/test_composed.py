# SPDX-License-Identifier: BSD-3-Clause
"""Operators that the fuzzer composes, against their references; `make fuzz-operators`: 10,000."""

from __future__ import annotations

import composed
import pytest
from compositions import overload_sets, texts
from hypothesis import given
from spec_runs import run
from test_fuzz import fuzzed

NUMBER, COUNT = 0, 12


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("composed")


def test_every_composed_spec_is_accepted(tmp_path) -> None:
    @fuzzed(200)
    @given(overload_sets())
    def accept(cases):
        native, derivatives, _ = texts(cases, "lib")
        result = run(tmp_path, native, derivatives or None)
        assert result.status == 0, result.report

    accept()


def test_what_is_drawn_is_the_same_each_time() -> None:
    assert composed.drawn(COUNT, NUMBER) == composed.drawn(COUNT, NUMBER)
    assert composed.drawn(COUNT, NUMBER) != composed.drawn(COUNT, NUMBER + 1)


def test_every_kind_is_drawn() -> None:
    schemas = [case.schema for case in composed.drawn(400, NUMBER)]
    parts = ("-> Tensor(a)", "-> Tensor(a)[]", "(Tensor(a!), Tensor)", "-> ()", "Tensor?",
             "(Tensor(b!), Tensor(a!))", "(a!)? out",
             "Tensor(a!) buffer", "-> Tensor[]", "Tensor(c!) ", ", int)")  # fmt: skip
    for part in parts:
        assert any(part in schema for schema in schemas), part
    names = [schema.partition("(")[0].partition(".")[0] for schema in schemas]
    assert len(set(names)) < len(names)


@pytest.mark.timeout(900)
def test_composed_operators_are_what_their_references_are() -> None:
    assert composed.run(NUMBER, COUNT, check=False) == 0


@pytest.mark.timeout(900)
def test_any_number_of_written_arguments_in_any_order() -> None:
    assert composed.run(NUMBER, COUNT, check=False, kind="any_written") == 0
