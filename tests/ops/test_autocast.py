# SPDX-License-Identifier: BSD-3-Clause
"""autocast: the policies of native_functions.yaml, against what torch's own operators get."""

import pytest
import torch
from cases import function_of_tensors, loss_of, parts, run
from operators import FORMS, OPERATORS, autocast_dtype, read_policies
from samples import SAMPLES, Call, tensor

POLICIES = read_policies()
DTYPES = (torch.bfloat16, torch.float16, torch.float32, torch.float64)


def autocast(dtype=torch.bfloat16):
    return torch.autocast("cpu", dtype=dtype)


def call_in(name, dtype):
    return next(iter(SAMPLES[name].calls(SAMPLES[name].small_shape, dtype)))


def test_every_policy_is_some_operators():
    assert set(POLICIES.values()) == {"lower_precision_fp", "fp32", "promote"}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", POLICIES)
def test_arguments_are_cast_as_the_policy_says(name, dtype):
    call = call_in(name, dtype)
    if POLICIES[name] == "promote" and dtype == torch.float16:
        pytest.skip("float16 and bfloat16 together: torch's own operators refuse them too")
    with autocast():
        result = run(SAMPLES[name], call)
    wanted = autocast_dtype(POLICIES[name], {dtype}, torch.bfloat16)
    own = call if dtype == torch.float64 else call.map_tensors(lambda t: t.to(wanted))
    expected = run(SAMPLES[name], own)
    assert result.dtype == expected.dtype
    torch.testing.assert_close(result, expected)


def test_promotion_takes_the_widest():
    a, b = torch.ones(3), torch.ones(3, dtype=torch.bfloat16)
    with autocast():
        assert torch.ops.myns.dot(a, b).dtype == torch.float32
        assert torch.ops.myns.dot(b, b).dtype == torch.bfloat16
        with pytest.raises(RuntimeError, match="Unexpected floating ScalarType"):
            torch.ops.myns.dot(b.half(), b)


@pytest.mark.parametrize("name", [name for name in OPERATORS if name not in POLICIES])
def test_an_operator_without_a_policy_is_left_alone(name):
    if OPERATORS[name].is_composite:
        pytest.skip("its parts are cast")
    call = call_in(name, torch.float32)
    expected = run(SAMPLES[name], call)
    with autocast():
        torch.testing.assert_close(run(SAMPLES[name], call), expected)


@pytest.mark.parametrize("name", POLICIES)
def test_gradients_pass_through_the_casts(name):
    call = Call(call_in(name, torch.float32).args).map_tensors(lambda t: t.requires_grad_())
    with autocast():
        result = run(SAMPLES[name], call)
    grads = torch.autograd.grad(loss_of(result), call.tensors)
    assert {grad.dtype for grad in grads} == {torch.float32}


@pytest.mark.usefixtures("fresh_dynamo")
@pytest.mark.parametrize("name", POLICIES)
def test_compiled_under_autocast(name):
    call = call_in(name, torch.float32)
    operator = OPERATORS[name].call

    def function(*tensors):
        with autocast():
            return operator(*call.with_tensors(tensors).args)

    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(*call.tensors), function(*call.tensors))


WRITING = [form for form in FORMS.values() if form.functional in POLICIES]
PATHS = {
    "eager": lambda function: function,
    "vmap": torch.func.vmap,
    "functionalize": torch.func.functionalize,
    "compiled": lambda f: torch.compile(f, backend="aot_eager", fullgraph=True),
}


@pytest.mark.usefixtures("fresh_dynamo")
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("form", WRITING, ids=[form.name for form in WRITING])
def test_forms_that_write_have_no_policy(form, dtype, path):
    call = call_in(form.functional, dtype)
    results = parts(run(SAMPLES[form.functional], call))
    function = function_of_tensors(SAMPLES[form.functional], call, form.call)

    def written(with_autocast):
        given = [t.clone() for t in call.tensors] + [
            torch.zeros_like(r) for r, _ in zip(results, form.outputs)
        ]

        def called(*own):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=with_autocast):
                return function(*own)

        if path == "vmap":
            given = [torch.stack([t, t]) for t in given]
        PATHS[path](called)(*given)
        return given

    torch.testing.assert_close(written(True), written(False), rtol=0, atol=0)


def test_casts_of_a_parameter_are_cached():
    weight = torch.nn.Parameter(tensor((4, 8), torch.float32))
    with autocast():
        results = [torch.ops.myns.silu_and_mul(weight) for _ in range(2)]
    assert {result.dtype for result in results} == {torch.bfloat16}
    first, second = (result.grad_fn.next_functions[0][0] for result in results)
    assert first is second and "ToCopy" in first.name()
    torch.autograd.grad(results[1].sum(), weight)


def test_outside_of_autocast_nothing_is_cast():
    x = tensor((3, 4), torch.bfloat16)
    assert torch.ops.myns.softmax(x, 1).dtype == torch.bfloat16
