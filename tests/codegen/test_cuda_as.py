# SPDX-License-Identifier: BSD-3-Clause
"""`gen --cuda-as KEY`: the kernels for CUDA alone, registered for another key."""

import json
import re

import pytest

from codegen.__main__ import main

SPEC = """
- func: plain(Tensor x) -> Tensor
  dispatch: {CPU: plain_cpu, CUDA: plain_cuda}

- func: scaled.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  structured_inherits: TensorIteratorBase
  dispatch: {CPU: scaled_cpu, CUDA: scaled_cuda}

- func: scaled(Tensor x) -> Tensor
  structured_delegate: scaled.out

- func: ruled(Tensor x) -> Tensor
  meta: {like: x}
  dispatch: CPU, CUDA

- func: falls_back(Tensor x) -> Tensor
  dispatch: {CPU: falls_back_cpu, CUDA: cpu_fallback}

- func: of_the_cpu(Tensor x) -> Tensor
  dispatch: {CPU: of_the_cpu}
"""


@pytest.fixture
def generated(tmp_path):
    spec = tmp_path / "native_functions.yaml"
    spec.write_text(SPEC)
    out = tmp_path / "out"
    words = ["--namespace", "ns", "--native-functions", str(spec), "--out", str(out)]
    assert main([*words, "--cuda-as", "PrivateUse1"]) == 0
    return out


def test_what_is_written_registers_kernels_and_nothing_else(generated):
    parts = json.loads((generated / "manifest.json").read_text())["parts"]
    kinds = {re.sub(r"(_\d+)?\.cpp", "", part) for part in parts}
    assert kinds == {"src/dispatch", "src/library", "src/ops", "src/rules"}


def test_each_kernel_for_cuda_is_registered_for_the_other_key(generated):
    text = (generated / "src" / "dispatch_0.cpp").read_text()
    assert re.findall(r"DispatchKey::(\w+)", text) == ["PrivateUse1"]
    assert re.findall(r'm\.impl\("(\S+)"', text) == ["plain", "scaled.out", "scaled", "ruled"]
    assert "TORCHEXT_WITH_CUDA" not in text
    assert all(f"{name}_cuda" in text for name in ("plain", "structured_scaled", "ruled"))
    assert "_cpu" not in text


def test_a_key_that_is_no_backend_is_refused(tmp_path, capsys):
    words = ["--namespace", "ns", "--native-functions", "x.yaml", "--out", str(tmp_path)]
    with pytest.raises(SystemExit):
        main([*words, "--cuda-as", "Autograd"])
    assert "argument --cuda-as: invalid choice: 'Autograd'" in capsys.readouterr().err
