# SPDX-License-Identifier: BSD-3-Clause
"""What is registered for torch.vmap: rules, calls for each example, and what draws numbers."""

from __future__ import annotations

import re

import pytest
from spec_runs import operator, plan

from codegen.emit import batching as emitted
from codegen.plan.library import BatchingRule

_BATCHED, _MODE = "FuncTorchBatched", "FuncTorchVmapMode"
_RANDOM = "  tags: nondeterministic_seeded\n"


def batching(
    schema: str, more: str = "", dispatch: str = "CPU: f", name: str = "f"
) -> BatchingRule | None:
    """Of the operator `f`, or a form of it."""
    entry = f"- func: {schema}\n{more}"
    entry += f"  dispatch:\n    {dispatch}\n" if dispatch else ""
    return operator(plan(entry), name).batching


def test_without_a_rule_there_is_a_call_for_each_example() -> None:
    for schema in (
        "f(Tensor x) -> Tensor",
        "f(Tensor[] xs, Tensor?[] ys) -> Tensor[]",
        "f(Tensor(a) x) -> Tensor(a)",
        "f(Tensor x, Tensor(a!) y) -> (Tensor, int)",
        "f(Dict(str, Tensor) x) -> Tensor",
        "f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
    ):
        assert batching(schema) == BatchingRule("each_example")


def test_what_torch_batches_otherwise_is_left_to_it() -> None:
    assert batching("f(int n) -> Tensor") is None
    assert batching("f(Tensor x) -> Tensor", dispatch="") is None
    assert batching("f(Tensor x) -> Tensor", "  manual_kernel_registration: True\n", "") is None
    assert batching("f(Tensor x) -> Tensor", dispatch=f"CPU, {_BATCHED}: f") is None
    assert batching("f(Tensor x, ...) -> Tensor") is None
    assert batching("f(Tensor x) -> ...") is None


@pytest.mark.parametrize("is_by_tag", [True, False])
def test_what_draws_numbers_is_called_in_every_vmap(is_by_tag) -> None:
    generator = "" if is_by_tag else ", Generator? generator"
    tag = _RANDOM if is_by_tag else ""
    draws = (("draws", True),)
    found = batching(f"f(Tensor x{generator}) -> Tensor", tag)
    assert found == BatchingRule("each_example", keys=(_BATCHED, _MODE), facts=draws)
    found = batching(f"f(Tensor x{generator}) -> Tensor", f"{tag}  vmap: pointwise\n")
    assert found == BatchingRule("pointwise_rule", keys=(_BATCHED, _MODE), facts=draws)
    found = batching(f"f(int n{generator}) -> Tensor", tag)
    assert found == BatchingRule("each_example", keys=(_MODE,), facts=draws)


def test_forms_draw_as_the_functional_one() -> None:
    forms = f"""\
- func: f(Tensor x) -> Tensor
  autogen: f.out
{_RANDOM}  dispatch:
    CPU: f
- func: f_(Tensor(a!) x) -> Tensor(a!)
  dispatch:
    CPU: f_
"""
    found = plan(forms)
    assert operator(found, "f_").batching == operator(found, "f").batching
    assert operator(found, "f.out").batching == BatchingRule("refused_random_out", keys=(_MODE,))


def test_the_headers_of_what_is_registered_are_included() -> None:
    def headers(native: str) -> set[str]:
        (file,) = emitted.emit(plan(native))
        return set(re.findall(r"#include <torchext/generated/(\w+)\.h>", file.text))

    one = "- func: f(Tensor x) -> Tensor\n  dispatch: {CPU: f}\n"
    out = "- func: f.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)\n  dispatch: {CPU: f}\n"
    assert headers(one) == {"batching"}
    assert headers(one + out) == {"batching", "declared_forms"}


def test_a_kernel_of_the_librarys_own_keeps_what_is_batched() -> None:
    own = f"CPU: f, {_BATCHED}: g".replace(", ", "\n    ")
    found = batching("f(Tensor x) -> Tensor", _RANDOM, own)
    assert found == BatchingRule("randomness_of_own_rule", keys=(_MODE,))
    found = batching("f(Tensor x) -> Tensor", _RANDOM, f"{own}\n    {_MODE}: h")
    assert found is None
    found = batching("f(Tensor x) -> Tensor", _RANDOM, f"CPU: f\n    {_MODE}: h")
    assert found == BatchingRule("each_example", facts=(("draws", True),))


def test_a_composite_operator_is_served_by_its_parts_in_every_vmap() -> None:
    def keys(more: str, dispatch: str = "", schema: str = "f(Tensor x) -> Tensor") -> set[str]:
        entry = f"- func: {schema}\n{more}" + (f"  dispatch:\n{dispatch}" if dispatch else "")
        (op,) = plan(entry).operators
        assert op.batching is None or op.batching.function != "each_example"
        return {kernel.key for kernel in op.kernels if kernel.key.startswith("FuncTorch")}

    both = {"FuncTorchBatchedDecomposition", _MODE}
    assert keys("") == keys(_RANDOM) == both
    assert keys("  vmap: pointwise\n") == set()
    own = f"    CompositeImplicitAutograd: f\n    {_BATCHED}: g\n"
    assert keys("", own) == {_BATCHED}
    # what stands above its parts, casts or a formula, is not passed by where nothing is batched
    assert keys("  autocast: fp32\n") == {"FuncTorchBatchedDecomposition"}
    assert keys("", "    CPU: g\n    CompositeImplicitAutograd: f\n") == both - {_MODE}
    out = "f.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)"
    assert keys("", schema=out) == {"FuncTorchBatchedDecomposition"}


def test_what_no_gradient_flows_through_says_so() -> None:
    found = batching("f(Tensor x) -> Tensor", "  differentiable: False\n")
    assert found == BatchingRule("each_example", facts=(("differentiable", False),))


def test_a_pointwise_rule_is_told_what_meta_says_of_shapes() -> None:
    def facts(*checks: str) -> dict[str, object]:
        meta = f"  vmap: pointwise\n  meta: {{like: x, check: {list(checks)}}}\n"
        found = batching("f(Tensor x, Tensor y, Tensor z, int n) -> Tensor", meta)
        assert found is not None and found.function == "pointwise_rule"
        return dict(found.facts)

    assert facts() == {"one_shape": ("x",)}
    assert facts("x.shape == y.shape") == {"one_shape": ("x", "y")}
    assert facts("z.numel == n") == {"one_shape": ("x",), "examined": ("z",)}


def test_a_leading_rule_is_told_what_meta_says_of_shapes() -> None:
    def facts(*checks: str) -> dict[str, object]:
        meta = f"  vmap: leading(x, z)\n  meta: {{like: x, check: {list(checks)}}}\n"
        found = batching("f(Tensor x, Tensor y, Tensor z, int n) -> Tensor", meta)
        assert found is not None and (found.function, found.rows) == ("leading_rule", ("x", "z"))
        return dict(found.facts)

    assert facts() == {}
    assert facts("x.shape[-1] == n", "z.dim == 2") == {"least_ranks": (("x", 1), ("z", 2))}
    assert facts("z.numel == n", "y.numel == n") == {"examined": ("z",)}
