# SPDX-License-Identifier: BSD-3-Clause
"""Each operator and each form as the text of a function of tensors, for what compiles from text."""

from dataclasses import dataclass

import pytest
import torch
from cases import scripted, source_of
from operators import FORMS, OPERATORS
from samples import SAMPLES, Call


@dataclass(frozen=True)
class Program:
    """A call whose arguments other than tensors are constants of the text."""

    name: str  # "add.Tensor", "add_.Tensor", "add.out"
    call: Call
    outputs: tuple = ()  # names of keyword arguments that are written to

    @property
    def overload(self):
        return (OPERATORS.get(self.name) or FORMS[self.name]).call

    @property
    def inputs(self) -> list:
        """Tensors that a run may write to: those of the call, then zeros for the outputs."""
        tensors = [t.clone() for t in self.call.tensors]
        if self.outputs:
            functional = OPERATORS[FORMS[self.name].functional].call
            results = as_tuple(functional(*self.call.args, **self.call.kwargs))
            tensors += [torch.zeros_like(result) for result in results]
        return tensors

    @property
    def function(self):
        """The Python function."""
        namespace = {"torch": torch, "__name__": __name__}
        exec(source_of(self.call, self.outputs, f"torch.ops.{self.overload}"), namespace)
        return namespace["call"]

    @property
    def script(self):
        """The TorchScript function."""
        return scripted(self.call, self.overload)

    def expected(self) -> tuple:
        return as_tuple(self.function(*self.inputs))


def as_tuple(result) -> tuple:
    return result if isinstance(result, tuple) else (result,)


def programs_of(name: str) -> list:
    """One for each call of the sample; in-place forms without those that change the dtype."""
    form = FORMS.get(name)
    sample = SAMPLES[form.functional if form else name]
    calls = list(sample.calls(sample.small_shape, torch.float32))
    if form is None:
        return [Program(name, call) for call in calls]
    if form.is_inplace:
        calls = [call for call in calls if "dtype" not in call.kwargs]
    return [Program(name, call, form.outputs) for call in calls]


def over_everything(condition=None):
    """Parametrize over the names of operators and forms, those whose overload `condition` takes."""
    everything = {**{name: OPERATORS[name] for name in SAMPLES if name in OPERATORS}, **FORMS}
    names = [n for n, entry in everything.items() if condition is None or condition(entry.call)]
    return pytest.mark.parametrize("name", names)
