# SPDX-License-Identifier: BSD-3-Clause
"""What README.md tells a newcomer to type works: in an empty directory, with the wheel alone."""

import os
import re
import sys

import pytest
from sample_project import ROOT, python, run

pytestmark = pytest.mark.slow
README = (ROOT / "README.md").read_text()
FILE = re.compile(r"^`([\w./]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CALL = re.compile(r"and call it:\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# Both libraries have a `mul`: each result must differentiate through its own node.
BESIDE_MYNS = """
import torch, torchext.ops, my_ops

weights = [torch.full((3,), 2.0, requires_grad=True) for _ in range(2)]
for weight, mul in zip(weights, (torch.ops.myns.mul, torch.ops.my_ops.mul)):
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for step in range(50):
        result = mul(weight, torch.tensor([1.0, 2.0, 3.0]))
        assert result.grad_fn.name() == "MulBackward0"
        optimizer.zero_grad()
        (result - 6).square().sum().backward()
        optimizer.step()
    torch.testing.assert_close(weight.detach(), torch.tensor([6.0, 3.0, 2.0]), rtol=1e-3, atol=0)
torch.testing.assert_close(*weights, rtol=0, atol=0)

mixed = torch.ops.my_ops.mul(torch.ops.myns.mul(weights[0], weights[1]), weights[1])
expected = torch.autograd.grad((weights[0] * weights[1] * weights[1]).sum(), weights)
torch.testing.assert_close(torch.autograd.grad(mixed.sum(), weights), expected)
"""


ONE_LINE, WITH_KERNEL = README.split("## An operator with a kernel")


def built(text, folder, clean_python):
    """The files of a part of the README in a directory, built there by the environment's python."""
    for name, content in FILE.findall(text):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    ninja = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
    build = run([clean_python, "setup.py", "build_ext", "--inplace"], folder, PATH=ninja)
    assert build.status == 0, build.text
    return folder


@pytest.fixture(scope="module")
def one_line(clean_python, tmp_path_factory):
    """The library of one expression."""
    return built(ONE_LINE, tmp_path_factory.mktemp("one_line"), clean_python)


@pytest.fixture(scope="module")
def readme_project(clean_python, tmp_path_factory):
    """That with kernels, which was the other one before."""
    folder = tmp_path_factory.mktemp("readme")
    files = dict(FILE.findall(ONE_LINE)) | dict(FILE.findall(WITH_KERNEL))
    assert {"native_functions.yaml", "derivatives.yaml", "kernels.cpp", "setup.py"} <= set(files)
    assert len(FILE.findall(ONE_LINE)) == 3
    (folder / "my_ops").mkdir()
    (folder / "my_ops" / "__init__.py").write_text(files["my_ops/__init__.py"])
    return built(WITH_KERNEL, folder, clean_python)


def test_a_library_of_one_line_runs_and_passes_every_check(one_line, clean_python):
    (call,) = CALL.findall(ONE_LINE)
    result = python(call, one_line, clean_python)
    assert result.status == 0, result.text
    assert result.text.count("tensor([") == 2  # both gradients
    check = "import torchext.testing\ntorchext.testing.check('my_ops')\n"
    result = python(check, one_line, clean_python)
    assert result.status == 0, result.text
    assert "swiglu_double_backward" in result.text


def test_the_calls_of_the_readme_run(readme_project, clean_python):
    (call,) = CALL.findall(WITH_KERNEL)
    result = python(call, readme_project, clean_python)
    assert result.status == 0, result.text
    assert "Relu2Backward0" in result.text


def test_the_readmes_library_passes_every_check(readme_project, clean_python):
    check = "import torchext.testing\ntorchext.testing.check('my_ops')\n"
    result = python(check, readme_project, clean_python)
    assert result.status == 0, result.text
    assert "samples made from the schema: relu2, relu2_, relu2.out, mul.Tensor" in result.text


def test_the_readmes_library_trains_beside_myns_in_one_process(readme_project, clean_python):
    result = python(BESIDE_MYNS, readme_project, clean_python)
    assert result.status == 0, result.text


def test_the_readme_names_the_two_commands_that_the_makefile_has():
    makefile = (ROOT / "Makefile").read_text()
    for target in ("demo", "test"):
        assert f"make {target}" in README
        assert f"\n{target}: " in makefile
