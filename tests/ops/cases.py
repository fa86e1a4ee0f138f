# SPDX-License-Identifier: BSD-3-Clause
"""Parametrization over the sample table, and what several test files do with a call."""

import pytest
import torch
from operators import OPERATORS
from samples import SAMPLES, Call, Sample


def operator_of(sample: Sample):
    return OPERATORS[sample.name]


def is_differentiable(sample: Sample) -> bool:
    return operator_of(sample).has_formula or operator_of(sample).is_composite


def has_kernels(sample: Sample) -> bool:
    """Not composite: its errors, nodes and Meta kernel are this library's own."""
    return not operator_of(sample).is_composite


def _listed_samples(condition) -> list:
    # A sample whose operator is gone fails in test_samples.py, once, instead of everywhere.
    listed = [sample for sample in SAMPLES.values() if sample.name in OPERATORS]
    return [sample for sample in listed if condition is None or condition(sample)]


def _parameters(sample: Sample, *values):
    """A sample and values. What computes second derivatives takes longer than all others: its cases
    are slow ones, as tests/checks are, where torchext.testing.check has it."""
    marks = [pytest.mark.slow] if sample.name.endswith("_double_backward") else []
    ids = [sample.name, *(str(value).removeprefix("torch.") for value in values)]
    return pytest.param(sample, *values, id="-".join(ids), marks=marks)


def over_operators(condition=None):
    return pytest.mark.parametrize("sample", [_parameters(s) for s in _listed_samples(condition)])


def over_operators_and(argument, values_of, condition=None):
    """Parametrize over (sample, value) for every value that `values_of` a sample gives."""
    samples = _listed_samples(condition)
    parameters = [_parameters(sample, value) for sample in samples for value in values_of(sample)]
    return pytest.mark.parametrize(f"sample, {argument}", parameters)


def run(sample: Sample, call: Call):
    return operator_of(sample).call(*call.args, **call.kwargs)


def first_call(sample: Sample, dtype=torch.float64) -> Call:
    return next(iter(sample.calls(sample.small_shape, dtype)))


def requiring_grad(call: Call) -> Call:
    return call.map_tensors(lambda t: t.detach().clone().requires_grad_())


def outputs_of(operator) -> list:
    """The names of an operator's out= arguments."""
    return [argument.name for argument in operator._schema.arguments if argument.is_out]


def parts(result) -> list:
    """The results that are there: a masked result of a backward operator is None."""
    results = result if isinstance(result, (tuple, list)) else (result,)
    return [part for part in results if part is not None]


def function_of_tensors(sample: Sample, call: Call, form=None):
    """The call as a function of its tensors alone; a single result is not in a tuple.

    `form` is the operator to call, by default the functional one; its out= tensors are given after
    the others.
    """

    operator = form or operator_of(sample).call
    # Plain lists and no Call: what is traced should be the operator, not this table.
    constants = [None if isinstance(value, torch.Tensor) else value for value in call.args]
    positions = [i for i, value in enumerate(call.args) if isinstance(value, torch.Tensor)]
    keywords = dict(call.kwargs)
    outputs = outputs_of(operator)

    def function(*tensors):
        arguments = list(constants)
        for position, tensor in zip(positions, tensors):
            arguments[position] = tensor
        written = dict(zip(outputs, tensors[len(positions) :]))
        results = parts(operator(*arguments, **keywords, **written))
        return results[0] if len(results) == 1 else tuple(results)

    return function


def reference_of_tensors(sample: Sample, call: Call):
    """The reference as a function of the call's tensors: of those results that there are."""
    found = run(sample, call)
    kept = [part is not None for part in found] if isinstance(found, (tuple, list)) else [True]

    def function(*tensors):
        results = sample.expected(call.with_tensors(tensors))
        results = results if isinstance(results, (tuple, list)) else (results,)
        results = [part for part, keep in zip(results, kept) if keep]
        return results[0] if len(results) == 1 else tuple(results)

    return function


def source_of(call: Call, outputs, operator: str) -> str:
    """Python and TorchScript of a function of the call's tensors, then of the out= tensors; all
    other arguments are constants of the text. `operator` is how they spell it."""
    names = [f"t{index}" for index, _ in enumerate(call.tensors)]
    remaining = iter(names)
    arguments = [
        next(remaining) if isinstance(value, torch.Tensor) else repr(value) for value in call.args
    ]
    arguments += [f"{name}={value!r}" for name, value in call.kwargs.items()]
    arguments += [f"{name}={name}" for name in outputs]
    signature = ", ".join([*names, *outputs])
    return f"def call({signature}):\n    return {operator}({', '.join(arguments)})\n"


def scripted(call: Call, form):
    """The TorchScript function of `source_of`; the overload is resolved by the types."""
    source = source_of(call, outputs_of(form), f"torch.ops.{form.overloadpacket}")
    return torch.jit.CompilationUnit(source).call


def loss_of(result) -> torch.Tensor:
    """A real scalar whose gradient for each result differs from element to element."""
    return sum((part * part.conj()).real.sum() for part in parts(result))


def gradients(sample: Sample, call: Call, inputs=None) -> tuple:
    """Gradients of the loss of a call for `inputs`, by default all its tensors."""
    inputs = call.tensors if inputs is None else inputs
    return torch.autograd.grad(loss_of(run(sample, call)), inputs, materialize_grads=True)


def all_arguments(tensors):
    return tuple(range(len(tensors)))


def gradient_of(function, tensors):
    return torch.func.grad(lambda *given: loss_of(function(*given)), all_arguments(tensors))


def direction(t):
    """A tangent or cotangent whose elements all differ."""
    numbers = torch.linspace(-1, 2, t.numel(), dtype=torch.float64).view(t.shape)
    return torch.complex(numbers, 1 - numbers).to(t.dtype) if t.is_complex() else numbers


def directions(tensors):
    return tuple(direction(t) for t in tensors)


def assert_same_results(actual, expected):
    """Values, dtypes and shapes; an absent result may stand for a structural zero of backward."""
    if not isinstance(expected, tuple):
        torch.testing.assert_close(actual, expected, equal_nan=True)
        return
    assert len(actual) == len(expected)
    for part, reference in zip(actual, expected):
        if part is None:
            assert reference is None or not reference.any()
        elif reference is not None:
            torch.testing.assert_close(part, reference, equal_nan=True)


def assert_within_rounding(sample: Sample, call: Call, actual):
    """The results of a call are the reference's, or within what rounding its arguments changes.

    Where large numbers cancel, that is more than the usual tolerances.
    """
    expected = sample.expected(call)
    if not isinstance(expected, tuple):
        expected, actual = (expected,), (actual,)
    wide = call.map_tensors(lambda t: t.double())
    others = [sample.expected(wide)]
    others += [sample.expected(wide.map_tensors(_nearly)) for _ in range(8)]
    others = [other if isinstance(other, tuple) else (other,) for other in others]
    assert_same_results(actual, tuple(map(_explained, actual, expected, *others)))


def _nearly(t):
    eps = torch.finfo(torch.float32).eps
    return t * (1 + 4 * eps * torch.empty_like(t).uniform_(-1, 1))


def _explained(actual, expected, exact, *others):
    """The reference's values, and the operator's where the arguments' rounding explains them."""
    if actual is None or expected is None or expected.dtype != torch.float32:
        return expected
    change = torch.stack([(other - exact).abs() for other in others]).amax(0)
    change = change.amax() if change.numel() else change
    return torch.where((actual - exact).abs() <= change, actual, expected)
