# SPDX-License-Identifier: BSD-3-Clause
"""The sample table and the two YAML files speak of the same operators."""

import pytest
import torch
from cases import has_kernels, over_operators
from operators import OPERATORS
from samples import SAMPLES

import torchext


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_has_a_sample(name):
    assert name in SAMPLES, f"add an entry for {name} to tests/ops/samples.py"


@pytest.mark.parametrize("name", SAMPLES)
def test_every_sample_is_of_an_operator(name):
    assert name in OPERATORS, f"native_functions.yaml has no {name}"


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_is_registered(name):
    assert OPERATORS[name].call.name().startswith(OPERATORS[name].qualified_name)


@pytest.mark.parametrize("name", OPERATORS)
def test_the_package_gives_the_dispatcher_operator(name):
    base_name = OPERATORS[name].base_name
    assert getattr(torchext.ops, base_name) is getattr(torch.ops.myns, base_name)


@over_operators(has_kernels)
def test_every_operator_with_kernels_has_a_formula(sample):
    assert OPERATORS[sample.name].has_formula


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator_is_tagged_fit_for_compile(name):
    assert torch.Tag.pt2_compliant_tag in OPERATORS[name].call.tags
