# SPDX-License-Identifier: BSD-3-Clause
"""What `expand` prints of derived operators is read as what they are."""

from pathlib import Path

import pytest
import yaml

from codegen.errors import Errors
from codegen.fused.entries import expressions_of
from codegen.fused.floats import floats_of
from codegen.fused.operators import lowered
from codegen.fused.reading import read
from codegen.fused.tree import text
from codegen.fused.writing import named, written_operators
from codegen.spec.load import load_operators

ROOT = Path(__file__).parents[2]
SPECS = {
    spec.parent.name: spec
    for folder in ("pointwise", "rows", "cuda_on_host")
    for spec in sorted((ROOT / "tests" / folder).glob("*/native_functions.yaml"))
    if "pointwise: " in spec.read_text() or "rows: " in spec.read_text()
}


def entries_of(path):
    errors = Errors()
    found = lowered("NS", load_operators(path, path.name, errors), [], errors)
    errors.raise_if_any()
    return found


# Those of which all tensors may be missing, which a spec may not say.
REFUSED = {
    "pointwisetest": ["doubled_backward", "decayed_backward", "decayed_double_backward"],
    "rowstest": ["of_integers_backward"],
}


@pytest.mark.parametrize("spec", SPECS)
def test_printed_entries_are_the_derived_ones(spec, tmp_path):
    found = entries_of(SPECS[spec])
    derived = {n: e for n, e in found.expressions.items() if e.is_derivative}
    path = tmp_path / "derived.yaml"
    path.write_text(written_operators(found))
    loading = Errors()
    again = load_operators(path, "d.yaml", loading)
    loading.raise_if_any()
    assert [operator.name for operator in again] == [*derived]
    refused = []
    for operator in again:
        errors = Errors()
        own = expressions_of(operator, errors)
        if own is None:
            (mistake,) = errors.diagnostics
            assert mistake.message.endswith("needs an argument of type Tensor")
            refused.append(str(operator.name))
        else:
            made = derived[operator.name]
            assert own.results == made.results, operator.name
            known = own.common, made.dtypes, own.kinds, own.of_rows or frozenset()
            assert floats_of(operator.dtypes, *known) == made.floats, operator.name
    assert refused == REFUSED.get(spec, [])
    assert any("let" in entry for entry in yaml.safe_load(path.read_text()))


def test_a_chain_is_written_in_its_own_length():
    """Of which the text without names doubles with each part."""
    tree = read("a", {"a": "tensor"})
    for _ in range(60):
        tree = read("v * (1 - v)", {"v": "tensor"}, {"v": tree})
    local, (result,) = named((tree,), {"a": "tensor"})
    assert len(local) > 25
    assert max(len(text(own)) for own in (*local.values(), result)) < 40


def test_names_are_none_of_arguments():
    tree = read("sigmoid(v0 * v0 + 1) * sigmoid(v0 * v0 + 1)", {"v0": "tensor"})
    local, results = named((tree,), {"v0": "tensor"})
    assert {name: text(own) for name, own in local.items()} == {"v0_": "sigmoid(v0 * v0 + 1)"}
    assert [text(result) for result in results] == ["v0_ * v0_"]
