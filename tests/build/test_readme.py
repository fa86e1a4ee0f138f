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


@pytest.fixture(scope="module")
def readme_project(clean_python, tmp_path_factory):
    """The files of the README in an empty directory, built in place by the environment's python."""
    folder = tmp_path_factory.mktemp("readme")
    files = dict(FILE.findall(README))
    assert {"native_functions.yaml", "derivatives.yaml", "kernels.cpp", "setup.py"} <= set(files)
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    ninja = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
    build = run([clean_python, "setup.py", "build_ext", "--inplace"], folder, PATH=ninja)
    assert build.status == 0, build.text
    return folder


def test_the_calls_of_the_readme_run(readme_project, clean_python):
    (call,) = CALL.findall(README)
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
