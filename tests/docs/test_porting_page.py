# SPDX-License-Identifier: BSD-3-Clause
"""docs/porting.md is made of examples/torchlpc, and the generator takes its YAML."""

import re
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "torchlpc"
sys.path.insert(0, str(ROOT / "tests" / "codegen"))

from spec_runs import plan  # noqa: E402


def test_the_page_is_made_of_the_example():
    maker = runpy.run_path(str(ROOT / "docs" / "make_porting.py"))
    message = "docs/porting.md is out of date: run python docs/make_porting.py"
    assert maker["page"]() == (ROOT / "docs" / "porting.md").read_text(encoding="utf-8"), message


def test_the_example_is_accepted():
    texts = [(EXAMPLE / name).read_text() for name in ("native_functions.yaml", "derivatives.yaml")]
    operators = plan(*texts, namespace="torchlpc").operators
    assert [op.operator.func.name.base for op in operators] == ["lpc", "scan"]


def test_the_other_yaml_of_the_page_is_accepted():
    page = (ROOT / "docs" / "porting.template.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n(?!\{)(.*?)```", page, re.DOTALL)
    native, derivatives = blocks
    operators = plan(native, derivatives, namespace="pooling").operators
    assert [op.operator.func.name.base for op in operators] == ["pool_rows", "pool_rows_backward"]
