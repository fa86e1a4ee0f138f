# SPDX-License-Identifier: BSD-3-Clause
"""The rows of the table: the operators that the dispatcher knows, each in three forms."""

from dataclasses import dataclass, replace

import torch
from cases import function_of_tensors, outputs_of, parts, reference_of_tensors
from operators import OPERATORS
from own_spec import derived_of_elements
from samples import SAMPLES, Call

KINDS = ("functional", "in-place", "out")


@dataclass(frozen=True)
class Row:
    """One form of one operator."""

    operator: str  # the functional form, as native_functions.yaml spells it: "mul.Tensor"
    kind: str  # one of KINDS
    overload: torch._ops.OpOverload | None  # None: the dispatcher has no such form

    def __str__(self) -> str:
        return f"{self.operator}-{self.kind}"

    @property
    def outputs(self) -> list:
        return outputs_of(self.overload)

    def of_torch(self) -> "Row | None":
        """The same row with the operator of aten that has this schema, if there is one."""
        schema = self.overload._schema
        packet = getattr(torch.ops.aten, schema.name.removeprefix("myns::"), None)
        other = getattr(packet, schema.overload_name or "default", None)
        if other is None or _types(other) != _types(self.overload):
            return None
        return replace(self, overload=other)

    @property
    def is_differentiable(self) -> bool:
        """A formula, or parts that have formulas, say how."""
        operator = OPERATORS[self.operator]
        return operator.has_formula or operator.is_composite

    def subjects(self, dtype=torch.float64, shape=None) -> list:
        """The sample's calls that this form takes: an in-place one needs room for its result."""
        sample = SAMPLES[self.operator]
        calls = sample.calls(shape or sample.small_shape, dtype)
        found = [Subject(self, call) for call in calls]
        found = [s for s in found if self.kind != "in-place" or s.fits_its_first_tensor()]
        assert found, f"no sample of {self} has a result that fits its first argument"
        return found


class Subject:
    """One call of one form: what transforms are applied to, and what it is compared with."""

    def __init__(self, row: Row, call: Call):
        self.row = row
        self.call = call
        self.function = function_of_tensors(SAMPLES[row.operator], call, row.overload)
        self.reference = reference_of_tensors(SAMPLES[row.operator], call)
        self._results = [torch.empty_like(part) for part in self.expected(*call.tensors)]

    def expected(self, *tensors) -> list:
        """The results of the reference, which is made of torch's operators."""
        return parts(self.reference(*tensors))

    def fits_its_first_tensor(self) -> bool:
        first = self.call.tensors[0]
        return [(r.shape, r.dtype) for r in self._results] == [(first.shape, first.dtype)]

    def given(self) -> list:
        """New arguments for `function`: copies of the call's tensors, then out= tensors."""
        return [t.clone() for t in self.call.tensors] + self.outputs()

    def outputs(self) -> list:
        """Tensors for the out= form, which hold something else than the result."""
        if self.row.kind != "out":
            return []
        return [torch.full(r.shape, 5, dtype=r.dtype) for r in self._results]

    def call_on(self, given) -> Call:
        """The call of the form itself on the arguments of `function`, or what stands for them."""
        count = len(self.call.tensors)
        call = self.call.with_tensors(given[:count])
        return Call(call.args, {**call.kwargs, **dict(zip(self.row.outputs, given[count:]))})

    def written(self, given) -> list:
        """Those of the arguments of `function` that it writes to."""
        return given[:1] if self.row.kind == "in-place" else given[len(self.call.tensors) :]

    @property
    def pure(self):
        """What the form writes or returns, as a function that leaves its arguments alone."""
        call, outputs = self.function, self.outputs  # what is traced should not be this object

        def functional(*tensors):
            return tuple(parts(call(*tensors)))

        def in_place(first, *others):
            copied = first.clone()
            call(copied, *others)
            return (copied,)

        def out(*tensors):
            written = outputs()
            call(*tensors, *written)
            return tuple(written)

        return dict(zip(KINDS, (functional, in_place, out)))[self.row.kind]

    def check(self, given, returned):
        """Assert that a call on `given()` returned and wrote what the reference gives."""
        expected = self.expected(*self.call.tensors)
        torch.testing.assert_close(parts(returned), expected)
        if self.row.kind != "functional":
            torch.testing.assert_close(self.written(given), expected)
        read = given[self.row.kind == "in-place" : len(self.call.tensors)]
        before = self.call.tensors[self.row.kind == "in-place" :]
        torch.testing.assert_close(read, before, rtol=0, atol=0)


def registered() -> list:
    """Every overload of `myns` that the dispatcher has, but those that follow by elements."""
    names = sorted(torch._C._dispatch_get_all_op_names())
    own = {name.removeprefix("myns::") for name in names if name.startswith("myns::")}
    assert own >= derived_of_elements()
    split = [name.partition(".") for name in sorted(own - derived_of_elements())]
    return [getattr(getattr(torch.ops.myns, base), o or "default") for base, _, o in split]


def kind_of(overload) -> str:
    if outputs_of(overload):
        return "out"
    return "in-place" if overload._schema.is_mutable else "functional"


def _types(overload) -> list:
    return [str(argument.type) for argument in overload._schema.arguments]


def _family(overload):
    """What the forms of one operator have in common: the name, and the arguments bar out=."""
    name = overload._schema.name
    if kind_of(overload) == "in-place":
        name = name.removesuffix("_")
    arguments = [(a.name, str(a.type)) for a in overload._schema.arguments if not a.is_out]
    return name, tuple(arguments)


def _operator_name(overload) -> str:
    return overload.name().removeprefix("myns::")


def make_rows() -> list:
    """Three rows an operator; two overloads that would share a row are an error."""
    families = {}
    for overload in registered():
        forms = families.setdefault(_family(overload), {})
        other = forms.setdefault(kind_of(overload), overload)
        assert other is overload, f"{other} and {overload} are the same form of one operator"
    rows = []
    for forms in families.values():
        name = _operator_name(forms.get("functional") or next(iter(forms.values())))
        rows += [Row(name, kind, forms.get(kind)) for kind in KINDS]
    return sorted(rows, key=lambda row: (row.operator, KINDS.index(row.kind)))


ROWS = make_rows()
