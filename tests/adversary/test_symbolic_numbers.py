# SPDX-License-Identifier: BSD-3-Clause
"""A size of a tensor as an argument that is a number, where sizes are symbols."""

import traceback

import pytest
import torch

ROWS = {0: torch.export.Dim("rows", min=3, max=64)}


@pytest.fixture(scope="module")
def ops(loadingtest):
    torch.ops.load_library(str(loadingtest))
    return torch.ops.loadingtest


@pytest.fixture(scope="module")
def theirs():
    """The same as sloped, made with torch.library."""

    @torch.library.custom_op("loadingtest_python::sloped", mutates_args=())
    def sloped(slope: float, x: torch.Tensor, alpha: torch.types.Number = 1) -> torch.Tensor:
        return x * slope * alpha

    sloped.register_fake(lambda slope, x, alpha=1: torch.empty_like(x))
    return torch.ops.loadingtest_python.sloped


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def exported(function):
    return torch.export.export(Module(function), (torch.rand(5, 4),), dynamic_shapes=(ROWS,))


def packaged(function, folder):
    path = str(folder / "model.pt2")
    torch._inductor.aoti_compile_and_package(exported(function), package_path=path)
    return torch._inductor.aoti_load_package(path)


def compare(function, expected):
    for rows in (5, 7):
        x = torch.rand(rows, 4)
        torch.testing.assert_close(function(x), expected(x))


@pytest.mark.parametrize("way", ["aot_eager", "inductor", "cpp wrapper", "export"])
@pytest.mark.parametrize("number", [lambda n: n * 2 - 1, lambda n: n / 2])
def test_a_size_is_a_scalar(ops, way, number):
    def function(x):
        return ops.clamped(ops.sloped(0.5, x, number(x.shape[0])), None, number(x.shape[0]) - 2)

    def expected(x):
        return (x * 0.5 * number(x.shape[0])).clamp(max=number(x.shape[0]) - 2)

    torch._dynamo.reset()
    if way == "export":
        return compare(exported(function).module(), expected)
    options = {"cpp_wrapper": True} if way == "cpp wrapper" else None
    backend = way if way == "aot_eager" else "inductor"
    compiled = torch.compile(
        function, backend=backend, dynamic=True, fullgraph=True, options=options
    )
    compare(compiled, expected)


def test_aotinductor_takes_a_size_as_symint(ops, tmp_path):
    package = packaged(lambda x: ops.grown(x, [2, x.shape[0]], x.shape[0] + 1), tmp_path)
    compare(package, lambda x: torch.ones(2, x.shape[0]) * x.sum() + x.shape[0] + 1)


def test_aotinductor_takes_a_size_as_scalar_of_no_operator_outside_aten(ops, theirs, tmp_path):
    for operator in (ops.sloped, theirs):
        with pytest.raises(Exception) as error:
            packaged(lambda x, op=operator: op(0.5, x, x.shape[0]), tmp_path)
        frames = traceback.extract_tb(error.value.__traceback__)
        assert frames[-1].name in ("fill_args", "serialize_input"), error.value
