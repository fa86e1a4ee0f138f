# SPDX-License-Identifier: BSD-3-Clause
"""Templates: text with holes, and nothing forgotten."""

from __future__ import annotations

import pytest

from codegen.cpp.template import fill


def test_a_hole_in_a_line_takes_text() -> None:
    assert fill("int $name = $value;", name="x", value="1") == "int x = 1;\n"


def test_a_hole_in_a_line_joins_a_list_with_commas() -> None:
    assert fill("f($arguments);", arguments=["a", "b"]) == "f(a, b);\n"
    assert fill("f($arguments);", arguments=[]) == "f();\n"


def test_a_hole_alone_takes_lines_at_its_indentation() -> None:
    text = fill("{\n    $body\n}", body=["a;", "if (b) {\n  c;\n}"])
    assert text == "{\n    a;\n    if (b) {\n      c;\n    }\n}\n"


def test_an_empty_list_drops_its_line() -> None:
    assert fill("a\n  $nothing\nb", nothing=[]) == "a\nb\n"


def test_an_empty_text_leaves_an_empty_line() -> None:
    assert fill("a\n  $nothing\nb", nothing="") == "a\n\nb\n"


def test_empty_lines_of_a_value_are_not_indented() -> None:
    assert fill("  $body", body="a\n\nb") == "  a\n\n  b\n"


def test_braces_and_percent_signs_are_plain() -> None:
    assert fill("auto x = {%d, {}};") == "auto x = {%d, {}};\n"


def test_dollars_in_a_value_stay() -> None:
    assert fill("$a", a="$b") == "$b\n"
    assert fill("x $a", a="$b") == "x $b\n"


def test_a_hole_may_stand_twice() -> None:
    assert fill("$a + $a", a="x") == "x + x\n"


def test_line_breaks_around_the_template_are_dropped() -> None:
    assert fill("\n\nx\n\n") == "x\n"


def test_a_hole_without_a_value_is_an_error() -> None:
    with pytest.raises(KeyError, match=r"no value for the hole \$name"):
        fill("$name")


def test_a_value_without_a_hole_is_an_error() -> None:
    with pytest.raises(KeyError, match="no hole for extra, more"):
        fill("x", more="1", extra="2")
