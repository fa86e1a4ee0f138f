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


def over_operators(condition=None):
    samples = _listed_samples(condition)
    return pytest.mark.parametrize("sample", samples, ids=[sample.name for sample in samples])


def over_operators_and(argument, values_of, condition=None):
    """Parametrize over (sample, value) for every value that `values_of` a sample gives."""
    pairs = [(s, value) for s in _listed_samples(condition) for value in values_of(s)]
    ids = [f"{s.name}-{str(value).removeprefix('torch.')}" for s, value in pairs]
    return pytest.mark.parametrize(f"sample, {argument}", pairs, ids=ids)


def run(sample: Sample, call: Call):
    return operator_of(sample).call(*call.args, **call.kwargs)


def first_call(sample: Sample, dtype=torch.float64) -> Call:
    return next(iter(sample.calls(sample.small_shape, dtype)))


def requiring_grad(call: Call) -> Call:
    return call.map_tensors(lambda t: t.detach().clone().requires_grad_())


def parts(result) -> list:
    """The results that are there: a masked result of a backward operator is None."""
    results = result if isinstance(result, (tuple, list)) else (result,)
    return [part for part in results if part is not None]


def function_of_tensors(sample: Sample, call: Call):
    """The call as a function of its tensors alone; a single result is not in a tuple."""

    operator = operator_of(sample).call
    # Plain lists and no Call: what is traced should be the operator, not this table.
    constants = [None if isinstance(value, torch.Tensor) else value for value in call.args]
    positions = [i for i, value in enumerate(call.args) if isinstance(value, torch.Tensor)]
    keywords = dict(call.kwargs)

    def function(*tensors):
        arguments = list(constants)
        for position, tensor in zip(positions, tensors):
            arguments[position] = tensor
        results = parts(operator(*arguments, **keywords))
        return results[0] if len(results) == 1 else tuple(results)

    return function


def loss_of(result) -> torch.Tensor:
    """A real scalar whose gradient for each result differs from element to element."""
    return sum((part * part.conj()).real.sum() for part in parts(result))


def gradients(sample: Sample, call: Call, inputs=None) -> tuple:
    """Gradients of the loss of a call for `inputs`, by default all its tensors."""
    inputs = call.tensors if inputs is None else inputs
    return torch.autograd.grad(loss_of(run(sample, call)), inputs, materialize_grads=True)


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
