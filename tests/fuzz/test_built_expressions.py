# SPDX-License-Identifier: BSD-3-Clause
"""Random expressions that are built, against torch's operators; `make fuzz-expressions`: 1,000."""

import expressions
import pytest

NUMBER, COUNT = 0, 8


def test_what_is_drawn_is_the_same_each_time() -> None:
    assert expressions.drawn(COUNT, NUMBER) == expressions.drawn(COUNT, NUMBER)
    assert expressions.drawn(COUNT, NUMBER) != expressions.drawn(COUNT, NUMBER + 1)


def test_every_kind_is_drawn() -> None:
    entries = [case.entry for case in expressions.drawn(60, NUMBER)]
    parts = ("pointwise", "rows", "Tensor? w", "float a", "Scalar k", "Tensor i", "s[..., None]",
             "-> (Tensor, Tensor)", "cat(", "arange(n)", "softmax", "[n // 2:]", " if ", "lerp",
             "atan2", "gelu", "** 3")  # fmt: skip
    for part in parts:
        assert any(part in entry for entry in entries), part


@pytest.mark.timeout(900)
def test_built_expressions_are_what_torchs_operators_make_of_them() -> None:
    assert expressions.run(NUMBER, COUNT) == 0
