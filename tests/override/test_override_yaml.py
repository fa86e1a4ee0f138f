# SPDX-License-Identifier: BSD-3-Clause
"""Entries of namespace aten: the library's kernels run for PyTorch's operators, or it is refused.

The libraries are loaded in processes of their own, so that PyTorch stays as it is in this one.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from library_build import build

from torchext.compat import version

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def library() -> Path:
    return build(HERE / "overridetest") / "overridetest_library.so"


@pytest.fixture(scope="session")
def refused() -> Path:
    """The folder of the libraries that cannot be loaded."""
    return build(HERE / "refused")


def run(code: str, **names) -> str:
    """Run Python with torch, torchext and some names; returns what it writes to stderr."""
    given = "".join(f"{name} = {str(value)!r}\n" for name, value in names.items())
    program = f"import torch, torchext\n{given}{code}"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stderr


def test_a_plus_b_runs_the_kernel_and_keeps_its_gradient(library):
    run(
        """
a, b = torch.randn(2, 3, 4, dtype=torch.double, requires_grad=True)
expected = torch.add(a, b, alpha=2).detach()
overridetest = torchext.load_library(library)
assert overridetest.calls() == 0
result = torch.add(a, b, alpha=2)
assert overridetest.calls() == 1
assert torch.equal(result, expected) and result.grad_fn.name() == "AddBackward0"
assert torch.equal((a + b).detach(), torch.add(a, b)) and overridetest.calls() == 3
assert torch.autograd.gradcheck(torch.add, (a, b), check_forward_ad=True)
assert torch.autograd.gradgradcheck(torch.add, (a, b))
""",
        library=library,
    )


def test_an_operator_of_the_library_may_have_the_same_name(library):
    run(
        """
overridetest = torchext.load_library(library)
x = torch.ones(3)
assert overridetest.add.Tensor(x, x).tolist() == [2, 2, 2] and overridetest.calls() == 1
assert (x + x).tolist() == [2, 2, 2] and overridetest.calls() == 2
assert "overridetest::add.Tensor" in torch._C._dispatch_get_all_op_names()
assert "overridetest::square" not in torch._C._dispatch_get_all_op_names()
""",
        library=library,
    )


def test_check_names_the_kernels_of_pytorchs_operators_that_it_does_not_check(library):
    run(
        """
from torchext.testing import check
report = check(library, operators=["add.Tensor"], checks=["meta"], raise_exception=False)
assert "aten::add.Tensor" in report.overrides
line = f"kernels for PyTorch's own, not checked: {', '.join(report.overrides)}"
assert line in str(report).splitlines()
""",
        library=library,
    )


def test_nothing_warns_and_later_overrides_still_do(library):
    text = run(
        """
torchext.load_library(library)
torch.ones(2) + 1
print("-- loaded", file=__import__("sys").stderr)
torch.library.Library("aten", "IMPL").impl("cos", lambda x: torch.sin(x), "CPU")
""",
        library=library,
    )
    loaded, later = text.split("-- loaded")
    assert loaded == ""
    if version() < (2, 14):  # from there on torch does not warn of Python's
        assert "Overriding a previously registered kernel" in later


def test_a_composite_operator_with_a_kernel_for_autograd(library):
    run(
        """
overridetest = torchext.load_library(library)
x = torch.randn(4, dtype=torch.double, requires_grad=True)
assert torch.autograd.gradcheck(torch.square, x)
assert torch.square(x).grad_fn.name() == "MulBackward0"
assert torch._C._dispatch_has_kernel_for_dispatch_key("aten::square", "CPU")
with torch.inference_mode():
    before = overridetest.calls()
    y = torch.tensor([3.0])
    assert torch.square(y).item() == 9 and overridetest.calls() == before + 1
""",
        library=library,
    )


def test_a_key_may_fall_back_to_pytorchs_cpu_kernel(library):
    run(
        """
torchext.load_library(library)
assert torch._C._dispatch_has_kernel_for_dispatch_key("aten::hypot", "PrivateUse1")
""",
        library=library,
    )


def test_torchext_override_stands_above_the_librarys_kernel(library):
    run(
        """
overridetest = torchext.load_library(library)
x = torch.ones(3)
with torchext.override("aten::add.Tensor", lambda a, b, *, alpha=1: torch.add(a, b) * 5):
    assert (x + x).tolist() == [10, 10, 10]
assert overridetest.calls() == 1
assert (x + x).tolist() == [2, 2, 2] and overridetest.calls() == 2
""",
        library=library,
    )


@pytest.mark.parametrize(
    ("name", "messages"),
    [
        (
            "other_schema",
            [
                "the schema of aten::hypot in torch",
                "aten::hypot(Tensor self, Tensor other) -> Tensor\n",
                "aten::hypot(Tensor self, Tensor other, *, Scalar scale=1) -> Tensor",
            ],
        ),
        (
            "unknown_operator",
            [
                "has no operator aten::hypotenuse",
                "aten::hypotenuse(Tensor self, Tensor other) -> Tensor",
            ],
        ),
        (
            "hidden_parts",
            ["aten::matmul is CompositeImplicitAutograd", "register a kernel for Autograd"],
        ),
        ("late_failure", ["something else failed"]),
    ],
)
def test_a_library_that_is_refused_leaves_pytorch_as_it_was(name, messages, refused):
    run(
        """
before = torch._C._dispatch_dump("aten::add.Tensor")
try:
    torchext.load_library(path)
except ImportError as error:
    text = str(error)
else:
    raise AssertionError("it was loaded")
for message in eval(messages):
    assert message in text, text
assert torch._C._dispatch_dump("aten::add.Tensor") == before
assert (torch.ones(2) + torch.ones(2)).tolist() == [2, 2]
""",
        path=refused / f"{name}.so",
        messages=messages,
    )
