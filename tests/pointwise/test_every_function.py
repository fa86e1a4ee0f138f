# SPDX-License-Identifier: BSD-3-Clause
"""The C++ of every function of expressions, beside torch's: by dtype, at special values."""

import itertools
import re
import sys
from pathlib import Path

import pytest
import torch
import yaml

sys.path.insert(0, str(Path(__file__).parents[1] / "fused"))
from torch_values import value_of

from codegen.fused.functions import functions
from codegen.fused.reading import read
from codegen.fused.tree import Call, in_order

SPEC = Path(__file__).parent / "pointwisetest" / "native_functions.yaml"
ENTRIES = {
    entry["func"].partition("(")[0]: entry
    for entry in yaml.safe_load(SPEC.read_text())
    if entry["func"].startswith("of_")
}
FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
SPECIAL = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.0, -2.5, 3.0, -3.0, 20.0, 21.0, 90.0, -90.0]
SPECIAL += [1e-30, float("inf"), -float("inf"), float("nan")]


def expressions(name):
    arguments = re.findall(r"Tensor (\w+)", ENTRIES[name]["func"])
    kinds = dict.fromkeys(arguments, "tensor")
    return arguments, [read(line, kinds) for line in map(str, ENTRIES[name]["pointwise"])]


def compare(name, op, given):
    """Every result of an operator beside torch's, which are computed in float64."""
    arguments, trees = expressions(name)
    results = getattr(op, name)(*given)
    is_whole = not given[0].is_floating_point()
    wide = [x if is_whole else x.double() for x in given]
    assert len(results) == len(trees) > 2
    for line, tree, found in zip(ENTRIES[name]["pointwise"], trees, results, strict=True):
        expected = value_of(tree, dict(zip(arguments, wide)))
        assert found.dtype == (torch.bool if expected.dtype == torch.bool else given[0].dtype), line
        torch.testing.assert_close(
            found,
            expected.to(found.dtype),
            equal_nan=True,
            **({} if is_whole or found.dtype == torch.bool else tolerance(found.dtype)),
            msg=lambda words, line=line: f"{line}\n{words}",
        )


def tolerance(dtype):
    """What approximations in float32, as torch's kernels are too, may differ by."""
    computed = torch.float64 if dtype == torch.float64 else torch.float32
    own = torch.finfo(dtype).eps  # a rounding
    return {"rtol": own * (8 if dtype == computed else 1), "atol": 4 * torch.finfo(computed).eps}


def test_every_function_stands_in_one_of_the_operators():
    trees = itertools.chain(*(expressions(name)[1] for name in ENTRIES))
    called = {p.function for p in in_order(*trees) if isinstance(p, Call)}
    assert called == {
        name
        for name, function in functions().items()
        if not function.is_of_rows and function.kind != "given"
    }


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", ENTRIES)
def test_functions_of_floats_are_torchs(pointwisetest, name, dtype):
    torch.manual_seed(2)
    count = len(expressions(name)[0])
    compare(name, pointwisetest, [(torch.randn(500) * 3).to(dtype) for _ in range(count)])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", ENTRIES)
def test_functions_of_special_values_are_torchs(pointwisetest, name, dtype):
    count = len(expressions(name)[0])
    given = zip(*itertools.product(SPECIAL, repeat=count), strict=True)
    compare(name, pointwisetest, [torch.tensor(x, dtype=dtype) for x in given])


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("name", ["of_one_number", "of_numbers"])
def test_functions_of_integers_are_torchs(pointwisetest, name, dtype):
    torch.manual_seed(2)
    low = 0 if dtype == torch.uint8 else -9
    given = [torch.randint(low, 10, (500,), dtype=dtype) for _ in expressions(name)[0]]
    if name == "of_numbers":
        given[1] = given[1].abs() + 1  # no divisor is zero, no power negative
    compare(name, pointwisetest, given)
