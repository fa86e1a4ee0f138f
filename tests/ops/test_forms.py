# SPDX-License-Identifier: BSD-3-Clause
"""In-place and out= forms: what they write is what the functional form returns."""

import copy
import subprocess
import sys

import pytest
import torch
from cases import loss_of
from operators import FORMS, OPERATORS
from samples import SAMPLES, Call, tensor
from torch._library._out_variant import to_out_variant
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from torchext.compat import version

INPLACE = [form for form in FORMS.values() if form.is_inplace]
OUT = [form for form in FORMS.values() if not form.is_inplace]
POINTWISE = [form for form in FORMS.values() if SAMPLES[form.functional].is_pointwise]
# Their kernels are classes without an iterator: the wrapper checks types and overlap.
PLAIN = [form for form in FORMS.values() if form not in POINTWISE]


def over(forms):
    return pytest.mark.parametrize("form", forms, ids=[form.name for form in forms])


def samples_of(form, dtype=torch.float64):
    sample = SAMPLES[form.functional]
    for shape in (sample.small_shape, *sample.empty_shapes):
        yield from sample.calls(shape, dtype)


def first_call(form, dtype=torch.float64):
    return next(iter(samples_of(form, dtype)))


def functional(form, call):
    result = OPERATORS[form.functional].call(*call.args, **call.kwargs)
    return result if isinstance(result, tuple) else (result,)


def write(form, call, *outputs):
    """Call the form; an in-place one on its first argument. Returns what it returns, as a tuple."""
    given = dict(zip(form.outputs, outputs, strict=True))
    result = form.call(*call.args, **call.kwargs, **given)
    return result if isinstance(result, tuple) else (result,)


def fits_inplace(form, call):
    (result,) = functional(form, call)
    return result.dtype == call.args[0].dtype and result.shape == call.args[0].shape


def copied(call):
    return call.map_tensors(torch.clone)


def test_every_pointwise_operator_has_both_forms():
    for name, sample in SAMPLES.items():
        if sample.is_pointwise:
            base = name.partition(".")[0]
            assert {f.is_inplace for f in FORMS.values() if f.functional == name} == {True, False}
            assert f"{base}.out" in FORMS


@over(OUT)
def test_an_out_form_writes_what_the_functional_one_returns(form):
    for dtype in SAMPLES[form.functional].dtypes:
        for call in samples_of(form, dtype):
            expected = functional(form, call)
            outputs = [torch.empty_like(result) for result in expected]
            returned = write(form, call, *outputs)
            assert all(a is b for a, b in zip(returned, outputs, strict=True))
            torch.testing.assert_close(tuple(outputs), expected, equal_nan=True)


@over(INPLACE)
def test_an_inplace_form_writes_what_the_functional_one_returns(form):
    for dtype in SAMPLES[form.functional].dtypes:
        for call in samples_of(form, dtype):
            if not fits_inplace(form, call):
                continue
            expected = functional(form, call)
            call = copied(call)
            version = call.args[0]._version
            (returned,) = write(form, call)
            assert returned is call.args[0]
            assert returned._version > version
            torch.testing.assert_close((returned,), expected, equal_nan=True)


@over(OUT)
def test_an_out_tensor_gets_the_size_of_the_result(form, capfd):
    call = first_call(form)
    expected = functional(form, call)
    outputs = [torch.empty(0, dtype=result.dtype) for result in expected]
    write(form, call, *outputs)
    torch.testing.assert_close(tuple(outputs), expected)
    assert "resized" not in capfd.readouterr().err


@over(OUT)
def test_an_out_tensor_of_another_shape_is_resized_with_the_usual_warning(form):
    call = first_call(form)
    expected = functional(form, call)
    outputs = [torch.ones(3, 7, 2, dtype=result.dtype) for result in expected]
    write(form, call, *outputs)
    torch.testing.assert_close(tuple(outputs), expected)


def test_the_warning_of_a_resize_is_that_of_torch():
    code = "import torch, {}; x = torch.ones(2); torch.ops.{}.mul.out(x, x, out=torch.ones(3))"
    texts = [
        _standard_error(code.format(*names))
        for names in (("torch", "aten"), ("torchext.ops", "myns"))
    ]
    warnings = [line for text in texts for line in text.splitlines() if "was resized" in line]
    assert len(warnings) == 2
    assert warnings[0].partition("An output")[2] == warnings[1].partition("An output")[2]


def _standard_error(code):
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr


def strided_like(result):
    """A tensor of the same shape and dtype whose elements are far apart and in another order."""
    shape = result.shape
    wide = torch.zeros([2 * size + 1 for size in reversed(shape)], dtype=result.dtype)
    view = wide[tuple(slice(1, None, 2) for _ in shape)]
    return view.permute(list(reversed(range(view.dim()))))


@over(OUT)
def test_an_out_tensor_keeps_its_strides(form):
    call = first_call(form)
    expected = functional(form, call)
    outputs = [strided_like(result) for result in expected]
    strides = [out.stride() for out in outputs]
    write(form, call, *outputs)
    assert [out.stride() for out in outputs] == strides
    torch.testing.assert_close(tuple(outputs), expected)


@over(INPLACE)
def test_an_inplace_form_writes_through_a_view(form):
    call = first_call(form)
    expected = functional(form, call)
    view = strided_like(call.args[0])
    view.copy_(call.args[0])
    write(form, Call((view, *call.args[1:]), call.kwargs))
    torch.testing.assert_close((view,), expected)


@over(OUT)
def test_an_input_can_be_the_out_tensor(form):
    call = first_call(form)
    expected = functional(form, call)
    alike = [
        index
        for index, argument in enumerate(call.args)
        if isinstance(argument, torch.Tensor)
        and (argument.shape, argument.dtype) == (expected[0].shape, expected[0].dtype)
    ]
    if not alike:
        pytest.skip("no argument is like the result; see the test of resized inputs")
    for index in alike:
        own = copied(call)
        write(form, own, own.args[index])
        torch.testing.assert_close((own.args[index],), expected)


def test_a_kernel_never_reads_what_a_resize_changed():
    myns = torch.ops.myns
    vector = torch.arange(1.0, 5)
    assert myns.dot.out(vector, torch.ones(4), out=vector).item() == 10
    transposed = torch.randn(8, 3).t()
    expected = myns.silu_and_mul(transposed)
    assert torch.equal(myns.silu_and_mul.out(transposed, out=transposed), expected)
    memory = torch.arange(1.0, 9)
    tail = memory[4:]
    assert myns.dot.out(memory[:4], memory[:4], out=tail).item() == 30
    assert memory[:4].tolist() == [1, 2, 3, 4]


def test_a_refused_call_leaves_the_out_tensor_as_it_was():
    vector = torch.arange(1.0, 5)
    view = vector[1:3]
    with pytest.raises(RuntimeError, match="overlaps an input"):
        torch.ops.myns.dot.out(vector, vector, out=view)
    assert (view.shape, vector.tolist()) == ((2,), [1, 2, 3, 4])


def test_an_inplace_sum_keeps_the_dtype_as_that_of_torch():
    x = torch.ones(3, dtype=torch.int32)
    assert torch.equal(torch.ops.myns.cumsum_(x.clone(), 0), x.clone().cumsum_(0))


# What is refused.


@over(OUT)
def test_an_out_tensor_of_another_dtype_is_refused(form):
    call = first_call(form)
    outputs = [torch.empty(result.shape, dtype=torch.int64) for result in functional(form, call)]
    if form.functional == "cumsum":  # as torch.cumsum, which sums in the dtype of the out tensor
        write(form, call, *outputs)
        torch.cumsum(*call.args, out=(expected := torch.empty_like(outputs[0])))
        assert torch.equal(outputs[0], expected)
        return
    before = copy.deepcopy(outputs)
    with pytest.raises(RuntimeError, match="can't be cast to|must have dtype|Found dtype"):
        write(form, call, *outputs)
    assert all(torch.equal(a, b) for a, b in zip(outputs, before))


@over([form for form in POINTWISE if not form.is_inplace])
def test_a_wider_out_tensor_is_taken_as_torch_takes_it(form):
    call = first_call(form, torch.float32)
    (expected,) = functional(form, call)
    out = torch.empty(expected.shape, dtype=torch.float64)
    write(form, call, out)
    torch.testing.assert_close(out, expected.double())


@over(OUT)
def test_an_out_tensor_on_another_device_is_refused(form):
    call = first_call(form)
    outputs = [torch.empty(r.shape, dtype=r.dtype, device="meta") for r in functional(form, call)]
    with pytest.raises(RuntimeError, match="on the same device|must be on cpu|on one device"):
        write(form, call, *outputs)


@over(OUT)
def test_an_out_tensor_that_overlaps_itself_is_refused(form):
    call = first_call(form)
    results = functional(form, call)
    if any(result.numel() < 2 for result in results):
        pytest.skip("one element cannot overlap itself")
    outputs = [torch.zeros((), dtype=r.dtype).expand(r.shape) for r in results]
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        write(form, call, *outputs)


@over(INPLACE)
def test_an_expanded_tensor_is_refused(form):
    call = first_call(form)
    expanded = torch.zeros((), dtype=torch.float64).expand(call.args[0].shape)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        write(form, Call((expanded, *call.args[1:]), call.kwargs))


@over([form for form in OUT if len(form.outputs) == 1])
def test_an_out_tensor_that_overlaps_an_input_in_part_is_refused_or_written(form):
    call = first_call(form)
    (result,) = functional(form, call)
    argument = call.args[0]
    if argument.dtype != result.dtype or result.numel() < 2:
        pytest.skip("the result has another dtype than the input, or one element")
    memory = torch.zeros(argument.numel() + result.numel(), dtype=argument.dtype)
    first = memory[: argument.numel()].view(argument.shape)
    out = memory[1 : 1 + result.numel()].view(result.shape)
    overlapping = Call((first, *call.args[1:]), call.kwargs)
    if OPERATORS[form.functional].is_made_apart:
        first.copy_(argument)
        write(form, overlapping, out)
        torch.testing.assert_close(out, result)
        return
    with pytest.raises(RuntimeError, match="overlaps|single memory location"):
        write(form, overlapping, out)


@over([form for form in POINTWISE if form.is_inplace])
def test_a_result_larger_than_the_tensor_is_refused(form):
    call = first_call(form)
    if len(call.tensors) < 2:
        pytest.skip("one tensor has nothing to broadcast with")
    larger = Call((call.args[0][0], *call.args[1:]), call.kwargs)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        write(form, larger)


@over([form for form in POINTWISE if form.is_inplace])
def test_integers_cannot_hold_a_floating_result(form):
    call = first_call(form, torch.float32)
    integers = Call((torch.ones_like(call.args[0], dtype=torch.int64), *call.args[1:]), call.kwargs)
    if functional(form, integers)[0].dtype == torch.int64:
        pytest.skip("the result is integral")
    with pytest.raises(RuntimeError, match="can't be cast to"):
        write(form, integers)


@over(OUT)
def test_an_out_form_refuses_what_requires_grad(form):
    call = first_call(form).map_tensors(torch.Tensor.requires_grad_)
    with torch.no_grad():
        outputs = [torch.empty_like(result) for result in functional(form, call)]
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        write(form, call, *outputs)


# Meta, tracing, compilation.


@over(OUT)
def test_a_meta_out_tensor_is_resized(form):
    call = first_call(form).map_tensors(lambda t: t.to("meta"))
    expected = functional(form, call)
    outputs = [torch.empty(0, dtype=r.dtype, device="meta") for r in expected]
    write(form, call, *outputs)
    assert [out.shape for out in outputs] == [r.shape for r in expected]


@over(INPLACE)
def test_a_meta_tensor_is_returned_by_the_inplace_form(form):
    call = first_call(form).map_tensors(lambda t: t.to("meta"))
    assert write(form, call)[0] is call.args[0]


@over(list(FORMS.values()))
def test_symbolic_sizes_stay_symbolic(form):
    call = first_call(form, torch.float32)
    mode = FakeTensorMode(shape_env=ShapeEnv())
    outputs = [] if form.is_inplace else [torch.empty_like(r) for r in functional(form, call)]
    with mode:
        returned = write(form, call.map_tensors(mode.from_tensor), *map(mode.from_tensor, outputs))
    replaced = mode.shape_env.replacements.values()
    assert not any(expression.is_number for expression in replaced)
    sizes = [size for part in returned for size in part.size()]
    assert all(isinstance(size, torch.SymInt) for size in sizes)


@over(list(FORMS.values()))
def test_opcheck_passes(form):
    for call in SAMPLES[form.functional].calls(SAMPLES[form.functional].small_shape, torch.float32):
        if form.is_inplace and not fits_inplace(form, call):
            continue
        outputs = [] if form.is_inplace else [torch.empty_like(r) for r in functional(form, call)]
        kwargs = {**call.kwargs, **dict(zip(form.outputs, outputs))}
        torch.library.opcheck(form.call, copied(call).args, kwargs)


@over(OUT)
def test_inductor_finds_no_out_form_to_call_for_the_functional_one(form):
    if version() < (2, 13):
        pytest.skip("the tag of out= forms came with torch 2.13")
    assert to_out_variant(OPERATORS[form.functional].call) is None


@over(INPLACE)
def test_an_inplace_form_differentiates_as_the_functional_one(form):
    call = first_call(form).map_tensors(lambda t: t.requires_grad_())
    expected = torch.autograd.grad(loss_of(functional(form, call)), call.tensors)
    own = Call((call.args[0].clone(), *call.args[1:]), call.kwargs)
    actual = torch.autograd.grad(loss_of(write(form, own)), call.tensors)
    torch.testing.assert_close(actual, expected)


def chained(form):
    """A function that writes to a view of a new tensor, and reads the whole tensor afterwards."""
    outputs, call = form.outputs, form.call
    constants = first_call(form, torch.float32)
    rest, kwargs = constants.args[1:], constants.kwargs

    def function(x, *outs):
        if not outputs:
            whole = torch.zeros(2, *x.shape)
            whole[1].copy_(x)
            call(whole[1], *rest, **kwargs)
            call(whole[1], *rest, **kwargs)
            return whole * 2, x + whole[1]
        call(x, *rest, **kwargs, **dict(zip(outputs, outs)))
        return [out * 2 for out in outs]

    return function, constants.args[0]


# Inductor takes seconds for each: here it compiles one form of each kind.
BY_INDUCTOR = ("add_.Tensor", "sin.out", "cumsum_", "zero_out.out", "muladd.out", "rms_norm.out")


@pytest.mark.usefixtures("fresh_dynamo")
@pytest.mark.parametrize(
    "form, backend",
    [
        pytest.param(
            form,
            backend,
            id=f"{form.name}-{backend}",
            marks=[pytest.mark.slow] * (backend == "inductor" and form.name not in BY_INDUCTOR),
        )
        for form in FORMS.values()
        for backend in ("aot_eager", "inductor")
    ],
)
def test_a_compiled_function_that_writes_does_what_eager_does(form, backend):
    function, x = chained(form)
    outputs = [] if form.is_inplace else functional(form, first_call(form, torch.float32))
    eager = [torch.zeros_like(out) for out in outputs]
    compiled = copy.deepcopy(eager)
    expected = function(x, *eager)
    actual = torch.compile(function, backend=backend, fullgraph=True)(x.clone(), *compiled)
    torch.testing.assert_close(actual, expected)
    torch.testing.assert_close(compiled, eager)


@pytest.mark.usefixtures("fresh_dynamo")
def test_arguments_that_alias_are_functionalized_as_in_eager():
    def function(x):
        head, tail = x[:3], x[1:]
        torch.ops.myns.mul_(head, tail.clone())
        torch.ops.myns.add(tail, 1 + tail, out=head)
        return head + tail

    x = tensor((4,), torch.float32)
    eager, compiled = x.clone(), x.clone()
    with pytest.raises(RuntimeError, match="single memory location"):
        function(eager.clone())

    def apart(x):
        head, tail = x[:2], x[2:]
        torch.ops.myns.mul_(head, tail)
        torch.ops.myns.add(tail, head, out=tail)
        return head + tail

    expected = apart(eager)
    actual = torch.compile(apart, backend="inductor", fullgraph=True)(compiled)
    torch.testing.assert_close((actual, compiled), (expected, eager))


@over(list(FORMS.values()))
def test_functionalize_leaves_no_form_that_writes(form):
    from torch.fx.experimental.proxy_tensor import make_fx

    function, x = chained(form)
    outputs = [] if form.is_inplace else functional(form, first_call(form, torch.float32))
    outputs = [torch.zeros_like(out) for out in outputs]
    expected = function(x.clone(), *copy.deepcopy(outputs))
    graph = make_fx(torch.func.functionalize(function))(x, *copy.deepcopy(outputs))
    torch.testing.assert_close(graph(x, *outputs), expected)
    targets = [str(node.target) for node in graph.graph.nodes]
    assert OPERATORS[form.functional].call.__str__() in targets
    assert str(form.call) not in targets
