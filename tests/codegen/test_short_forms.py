# SPDX-License-Identifier: BSD-3-Clause
"""The short ways of writing an entry generate what upstream's form does, and `expand` prints it."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest
import upstream_specs as upstream
from spec_runs import output, run
from upstream_output import unfolded

from codegen.__main__ import main
from codegen.errors import Errors
from codegen.spec.expansion import _Block, expanded
from codegen.spec.load import load_operators
from codegen.spec.yaml_reader import YamlReader

ROOT = Path(__file__).resolve().parents[2]
SHORT = """\
# of the file

- func: sin(Tensor self) -> Tensor
  # above the forms
  forms: [sin_, sin.out]  # behind the forms
  samples:
    - self: [3, 4]   # a sample
    # between two
    - self: []
  structured_inherits: TensorIteratorBase
  meta: unary_float
  # above the kernels
  dispatch: CPU, CUDA  # behind the kernels
  dtypes: [AllAndComplex, Half]
  doc: |
    Sine: of all.

    # no comment

# between entries
- func: softmax(Tensor self, int dim, Tensor? w=None) -> Tensor
  autogen: softmax.my_out
  forms: softmax_, softmax.out
  layout: contiguous
  meta: {like: self}
  dispatch: CPU

- {func: "g(Tensor x, str s=': ') -> Tensor", forms: [g.out, g_],
   dispatch: CompositeExplicitAutograd}

- func: relu_(Tensor(a!) self) -> Tensor(a!)
  dispatch: [CPU, PrivateUse1]  # two

- func: cumsum.one(Tensor self, int dim, *, bool up=True) -> Tensor
  forms:
    - cumsum_.one
    - cumsum.one_out
  structured: True
  precomputed: [dim -> int dim]
  tags: core
  autocast: fp32
  dispatch: {CPU: cumsum_cpu}
# of the end
"""
LONG = """\
# of the file

- func: sin(Tensor self) -> Tensor
  # above the forms
  # behind the forms
  structured_delegate: sin.out
  samples:
    - self: [3, 4]   # a sample
    # between two
    - self: []
  doc: |
    Sine: of all.

    # no comment
  device_check: NoCheck
  tags: pointwise

- func: sin_(Tensor(a!) self) -> Tensor(a!)
  structured_delegate: sin.out
  device_check: NoCheck
  tags: pointwise

- func: sin.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  device_check: NoCheck
  tags: pointwise
  structured_inherits: TensorIteratorBase
  # above the kernels
  # behind the kernels
  dispatch:
    CPU: sin_cpu
    CUDA: sin_cuda
  dtypes: [AllAndComplex, Half]
  meta: unary_float
  vmap: pointwise

# between entries
- func: softmax(Tensor self, int dim, Tensor? w=None) -> Tensor
  autogen: [softmax.my_out, softmax_, softmax.out]
  layout:
    self: contiguous
    w: contiguous
  meta: {like: self}
  dispatch:
    CPU: softmax_cpu

- func: "g(Tensor x, str s=': ') -> Tensor"
  dispatch:
    CompositeExplicitAutograd: g
  autogen: [g.out, g_]

- func: relu_(Tensor(a!) self) -> Tensor(a!)
  # two
  dispatch:
    CPU: relu_cpu_
    PrivateUse1: relu_privateuse1_

- func: cumsum.one(Tensor self, int dim, *, bool up=True) -> Tensor
  structured_delegate: cumsum.one_out
  tags: core
  autocast: fp32

- func: cumsum_.one(Tensor(a!) self, int dim, *, bool up=True) -> Tensor(a!)
  structured_delegate: cumsum.one_out
  tags: core

- func: cumsum.one_out(Tensor self, int dim, *, bool up=True, Tensor(a!) out) -> Tensor(a!)
  structured: True
  tags: core
  precomputed: [dim -> int dim]
  dispatch: {CPU: cumsum_cpu}
# of the end
"""
# Where an entry stands differs between the two files.
PLACE = re.compile(r'native_functions\.yaml:\d+|#line \d+ "native_functions\.yaml"')


def long_text(folder: Path, text: str) -> str:
    path = folder / "native_functions.yaml"
    path.write_text(text, encoding="utf-8")
    errors = Errors()
    found = expanded(path, path.name, errors)
    errors.raise_if_any()
    return found


def generated(folder: Path, text: str) -> dict[str, str]:
    folder.mkdir()
    result = run(folder, text)
    assert result.status == 0, result.report
    texts = ((name, unfolded(data.decode())) for name, data in output(folder / "out").items())
    return {name: PLACE.sub("", text) for name, text in texts}


def test_the_long_form_with_its_comments(tmp_path: Path) -> None:
    assert long_text(tmp_path, SHORT) == LONG
    assert long_text(tmp_path, LONG) == LONG


def test_a_list_may_be_indented(tmp_path: Path) -> None:
    def indented(text: str) -> str:
        return "".join(f"  {line}" if line.strip() else line for line in text.splitlines(True))

    assert long_text(tmp_path, indented(SHORT)) == indented(LONG)


@pytest.mark.parametrize("text", [SHORT, (ROOT / "native_functions.yaml").read_text()])
def test_both_forms_generate_the_same_files(text: str, tmp_path: Path) -> None:
    long = long_text(tmp_path, text)
    assert "forms:" not in long
    short, other = generated(tmp_path / "a", text), generated(tmp_path / "b", long)
    assert short.keys() == other.keys() and short
    assert [name for name in short if short[name] != other[name]] == []


@pytest.mark.parametrize("text", [SHORT, (ROOT / "native_functions.yaml").read_text()])
def test_no_comment_is_lost(text: str, tmp_path: Path) -> None:
    comments = re.findall(r"(?m)(?:^|\s)(# .*)$", text)
    long = long_text(tmp_path, text)
    assert [comment for comment in comments if comment not in long] == []


@pytest.mark.parametrize("keys", ["CPU", "[CPU]", "[CPU,\n    CUDA]"])
def test_a_comment_behind_an_alias_is_printed(keys: str, tmp_path: Path) -> None:
    comment = "#" * 20
    text = (
        f"- func: f(Tensor x) -> Tensor\n  dispatch: &keys {keys}\n\n"
        f"- func: g(Tensor x) -> Tensor\n  dispatch: *keys {comment}\n"
    )
    assert re.findall("#+", long_text(tmp_path, text)) == [comment]


def test_a_key_that_stands_in_the_entry_is_printed_as_it_stands(tmp_path: Path) -> None:
    own = "  autogen:  [f.other_out]   # its own\n"
    text = f"- func: f(Tensor x) -> Tensor\n  forms: [f.out]\n  structured: True\n{own}"
    native = f"{text}  dispatch: CPU\n"
    assert own in long_text(tmp_path, native)
    assert run(tmp_path, native).report == ""


def test_upstreams_entries_are_in_the_long_form(tmp_path: Path) -> None:
    text = upstream.NATIVE_FUNCTIONS.read_text(encoding="utf-8")
    assert long_text(tmp_path, text) == text


def test_every_entry_of_upstream_is_printed_as_it_stands() -> None:
    """But for blank lines between keys, and comments that are indented like an entry's."""
    reader = YamlReader(upstream.NATIVE_FUNCTIONS, "native_functions.yaml", Errors())
    lines, count = reader.source.lines, 0
    for entry in reader.entries():
        block = _Block(lines, entry)
        printed = [line.strip() for line in block.text(entry) if line.strip()]
        stands = [line.strip() for line in lines[block.first : block.last + 1] if line.strip()]
        assert printed == stands
        count += 1
    assert count > 2000


def test_mistakes_are_shown_where_they_were_written(tmp_path: Path) -> None:
    text = SHORT.replace("CPU, CUDA", "CPU, CUDAA").replace("forms: [sin_,", "forms: [sine_,")
    result = run(tmp_path, text)
    assert "native_functions.yaml:5:11: error: it is no form of 'sin'" in result.report
    assert "native_functions.yaml:13:18: error: unknown dispatch key 'CUDAA'" in result.report
    assert result.status == 1 and not (tmp_path / "out").exists()


def test_generated_code_names_the_lines_that_were_written(tmp_path: Path) -> None:
    (tmp_path / "n.yaml").write_text(SHORT)
    errors = Errors()
    found = load_operators(tmp_path / "n.yaml", "n.yaml", errors)
    errors.raise_if_any()
    lines = {str(op.name): op.location.line for op in found}
    assert lines == {
        "sin": 3, "sin_": 5, "sin.out": 5, "softmax": 21, "g": 28, "relu_": 31,
        "cumsum.one": 34, "cumsum_.one": 36, "cumsum.one_out": 37,
    }  # fmt: skip


def test_the_command_prints_it(tmp_path: Path) -> None:
    path = tmp_path / "n.yaml"
    path.write_text(SHORT, encoding="utf-8")
    printed, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        assert main(["expand", str(path)]) == 0
        assert printed.getvalue() == LONG
        path.write_text("- func: f(Tensor x) -> Tensor\n  forms: [g_]\n")
        assert main(["expand", str(path)]) == 1
        assert main(["expand", str(tmp_path / "none.yaml")]) == 1
    assert printed.getvalue() == LONG
    assert "n.yaml:2:11: error: it is no form of 'f'" in said.getvalue()
