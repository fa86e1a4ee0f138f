# SPDX-License-Identifier: BSD-3-Clause
"""Results do not depend on how arguments lie in memory; pointwise results have torch's strides."""

import torch
from cases import assert_within_rounding, over_operators_and, run
from layouts import LAYOUTS, in_layout

DTYPES = (torch.float32, torch.bfloat16)
LARGEST = 200  # elements: small enough that the order of a sum does not show


class NamedLayout:
    """A layout that prints as its name in test ids."""

    def __init__(self, layout):
        self.layout = layout

    def __str__(self):
        return self.layout.__name__


def _shapes(sample, layout):
    small = [shape for shape in sample.shapes if torch.Size(shape).numel() <= LARGEST]
    return [shape for shape in small if len(shape) in LAYOUTS[layout]]


def _layouts_of(sample):
    return [NamedLayout(layout) for layout in LAYOUTS if _shapes(sample, layout)]


def calls_in_layout(sample, layout, dtype):
    """Calls with all tensors in a layout, and with only the first in it."""
    for shape in _shapes(sample, layout):
        for call in sample.calls(shape, dtype):
            yield call.map_tensors(lambda t: in_layout(layout, t))
            first, *others = call.tensors
            if others:
                yield call.with_tensors([in_layout(layout, first), *others])


@over_operators_and("layout", _layouts_of)
def test_result_does_not_depend_on_the_layout(sample, layout):
    for dtype in filter(sample.dtypes.__contains__, DTYPES):
        for call in calls_in_layout(sample, layout.layout, dtype):
            contiguous = call.map_tensors(lambda t: t.clone(memory_format=torch.contiguous_format))
            # a row of equal numbers has a gradient in which large ones cancel
            assert_within_rounding(sample, contiguous, run(sample, call))


@over_operators_and("layout", _layouts_of, lambda sample: sample.is_pointwise)
def test_strides_of_a_pointwise_result_are_those_of_torch(sample, layout):
    for dtype in (torch.float32, torch.int64):
        if dtype in sample.dtypes:
            for call in calls_in_layout(sample, layout.layout, dtype):
                expected = sample.reference(*call.args, **call.kwargs)
                assert run(sample, call).stride() == expected.stride()


def test_zero_out_of_channels_last_is_contiguous():
    argument = torch.ones(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    assert torch.ops.myns.zero_out(argument).is_contiguous()
