# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own native_functions.yaml, unchanged, against what torchgen makes of it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torchgen.model
import upstream_torchgen as upstream
from spec_runs import plan
from torchgen.model import is_structured_dispatch_key
from upstream_keys import BESIDE, CHANGES, FORMULAS
from upstream_output import Output
from upstream_specs import (
    cases,
    check_syntax,
    covering_shard,
    entry_texts,
    entry_values,
    generated_text,
)

from codegen.analysis.structured import is_structured_kernel
from codegen.errors import Location, Source
from codegen.plan.kernels import Boxed
from codegen.schema.parser import parse_schema
from codegen.spec.dispatch_keys import is_guarded
from codegen.spec.keys import spec_keys
from codegen.spec.model import DispatchEntry, Operator

ROOT = Path(__file__).resolve().parents[2]
ENTRIES = 2584  # of torch 2.13
KEYS = {name: field.metadata["without_effect"] for name, field in spec_keys(Operator).items()}
UFUNC_ADD = """
namespace aten2::native::ufunc {
template <typename T>
T add(T self, T other, T alpha) {
  return self + alpha * other;
}
} // namespace aten2::native::ufunc
"""
# yaml has a loader in C where it was built with libyaml; this runs the command without it.
_WITHOUT_LIBYAML = (
    "import runpy, sys, yaml; vars(yaml).pop('CSafeLoader', None); "
    "runpy.run_module('codegen', run_name='__main__', alter_sys=True)"
)


def generate(out: Path, *python: str, spec: Path = upstream.NATIVE_FUNCTIONS) -> None:
    command = [sys.executable, *(python or ("-m", "codegen")), "--namespace", "aten2"]
    command += ["--native-functions", str(spec), "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Output:
    folder = tmp_path_factory.mktemp("aten2")
    generate(folder)
    return Output(folder)


@pytest.fixture(scope="module")
def definitions(output: Output) -> dict[str, tuple[str, frozenset[str]]]:
    """Operator to its schema and tags."""
    found = list(output.definitions())
    named = {schema.partition("(")[0]: (schema, tags) for schema, tags in found}
    assert len(named) == len(found), "an operator is defined twice"
    return named


def test_every_entry_is_taken(output, definitions):
    names = {str(f.func.name) for f in upstream.entries()}
    assert len(names) == len(entry_texts())
    if torch.__version__.startswith("2.13."):
        assert len(names) == ENTRIES
    assert names <= set(definitions)
    assert "rejected" not in json.loads((output.folder / "manifest.json").read_text())


def test_the_output_is_the_same_without_libyaml(output, tmp_path):
    generate(tmp_path, "-c", _WITHOUT_LIBYAML)
    files = [p.relative_to(output.folder) for p in output.folder.rglob("*") if p.suffix != ".json"]
    for path in filter(lambda p: (output.folder / p).is_file(), files):
        assert (tmp_path / path).read_bytes() == (output.folder / path).read_bytes()
    assert len(list(tmp_path.rglob("*.*"))) == len(list(output.folder.rglob("*.*")))


def test_schemas_are_those_of_torchgen(definitions):
    for function in upstream.parsed().native_functions:
        # torch's Python reads the alias set of a list and not those of its elements
        expected = re.sub(r"-> Tensor\((\w)\)\[\]$", r"-> Tensor(\1)[](\1)", str(function.func))
        assert definitions[str(function.func.name)][0] == expected


def test_view_forms_and_out_forms_of_composite_entries_are_more_than_torchgen_has(definitions):
    names = {str(f.func.name) for f in upstream.parsed().native_functions}
    more = set(definitions) - names
    more -= {name for name in more if re.search(r"(\.|_)functional\d*$", name)}
    forms, views = {str(name) for name in upstream.implicit_autogen()}, upstream.view_forms()
    assert more == forms | views and not forms & views
    assert all(torch._C.parse_schema(definitions[name][0]).overload_name for name in forms)


def test_the_dispatcher_reads_the_alias_sets_of_torchgen(definitions):
    for function in upstream.parsed().native_functions:
        schema = torch._C.parse_schema(definitions[str(function.func.name)][0])
        expected = [a.annotation for a in function.func.arguments.flat_all]
        expected += [r.annotation for r in function.func.returns]
        for value, annotation in zip([*schema.arguments, *schema.returns], expected, strict=True):
            if annotation is None:
                assert value.alias_info is None, schema
            elif value.type.kind() == "ListType":  # its sets are those of its elements
                assert f"Tensor({annotation})[" in str(schema)
                assert value.alias_info.is_write == annotation.is_write, schema
            else:
                before, after = set(annotation.alias_set), set(annotation.alias_set_after)
                assert value.alias_info.before_set == before, schema
                assert value.alias_info.after_set == (after or before), schema
                assert value.alias_info.is_write == annotation.is_write, schema


def test_tags_of_the_yaml_are_those_of_torchgen(definitions):
    for function in upstream.parsed().native_functions:
        ours = definitions[str(function.func.name)][1]
        # torchgen tags out= and in-place forms by their schemas as well, since 2.13.
        by_form = {"out"} if function.func.is_out_fn() else set()
        by_form |= {"inplace"} if function.func.name.name.inplace else set()
        assert function.tags - by_form <= ours <= function.tags, function.func.name


def test_structured_keys_are_those_of_torchgen():
    schema = parse_schema("op(Tensor self) -> Tensor")
    place = Location(Source("spec.yaml", ""), 1, 1)
    structured = Operator(place, schema, structured=True)
    for key in torchgen.model.dispatch_keys:
        entry = DispatchEntry(key.name, "kernel", place)
        assert is_structured_kernel(structured, entry) == is_structured_dispatch_key(key), key
    for function in upstream.entries():
        for index in upstream.parsed().backend_indices.values():
            metadata = index.get_kernel(function)
            assert metadata is None or metadata.structured == (
                function.structured and is_structured_dispatch_key(index.dispatch_key)
            )


def test_kernels_are_declared_with_the_types_of_torchgen(output):
    expected = {
        (str(function.func.name), index.dispatch_key.name): upstream.kernel_function(
            function, index, "aten2"
        )
        for function, index in upstream.kernels()
    }
    assert len(expected) > 2000
    declared = output.declarations()
    assert declared.keys() == expected.keys()
    for place, function in expected.items():
        assert declared[place] == function, place


def test_declared_forms_have_the_kernels_of_torchgen(definitions):
    text = upstream.NATIVE_FUNCTIONS.read_text(encoding="utf-8")
    ours = {str(op.operator.name): op for op in plan(text, namespace="aten2").operators}
    generated = [f for f in upstream.parsed().native_functions if upstream.is_generated(f)]
    assert len(generated) > 500
    for function in generated:
        indices = upstream.parsed().backend_indices.values()
        expected = {i.dispatch_key.name for i in indices if i.get_kernel(function) is not None}
        kernels = ours[str(function.func.name)].kernels
        found = {kernel.key for kernel in kernels if kernel.runs is not Boxed.WITHOUT_BIT}
        assert found == expected, function.func


def test_every_declared_kernel_is_registered_under_its_key(output):
    declared, registered = output.declarations(), output.registrations()
    assert registered.keys() == declared.keys()
    for place, registration in registered.items():
        function = declared[place]
        assert registration.function == function.name, place
        types = f"{function.result}(*)({','.join(type_ for type_, _ in function.parameters)})"
        assert registration.cast in (None, types), place
        assert registration.needs_cuda == place[1].endswith("CUDA"), place


def _check_wrappers(output: Output, spec: Path) -> set[str]:
    """Compare the wrappers of all kernels with torchgen's; returns the keys that have any."""
    registered, guarded_keys = output.registrations(), set()
    for function, index in upstream.kernels(spec):
        key = index.dispatch_key.name
        # torchgen guards the keys of CUDA and XPU. Other devices that there can be several of,
        # such as MTIA and PrivateUse1, are out of tree for it, and are treated alike here.
        assert is_guarded(key) or not index.device_guard, key
        expected = upstream.wrapper(function, index, guarded=is_guarded(key))
        actual = registered[str(function.func.name), key].wrapper
        assert (actual or upstream.Wrapper(frozenset(), None)) == expected, (function.func, key)
        guarded_keys |= {key} if is_guarded(key) else set()
    return guarded_keys


def test_device_checks_and_guards_are_those_of_torchgen(output):
    keys = _check_wrappers(output, upstream.NATIVE_FUNCTIONS)
    assert keys >= {"CUDA", "SparseCUDA", "SparseCsrCUDA", "QuantizedCUDA", "NestedTensorCUDA"}
    assert keys >= {"XPU", "MTIA"}
    assert not [key for key in keys if key.startswith("Composite") or key.endswith("CPU")]


def test_device_checks_and_guards_of_other_signatures_are_those_of_torchgen(tmp_path):
    schemas = (
        "device_alone(Tensor a, *, Device? device=None) -> Tensor",
        "options(*, ScalarType? dtype, Layout? layout, Device? device, bool? pin_memory) -> Tensor",
        "keyword_tensor(Tensor[] a, Tensor? b, *, Tensor c) -> Tensor",
        "self_last(Tensor?[] a, Tensor b, Tensor self) -> Tensor",
        "out_first.out(Tensor a, *, Tensor(a!) out) -> Tensor(a!)",
        "out_first(Tensor a) -> Tensor",
        "no_tensor(int a) -> Tensor",
    )
    spec = tmp_path / "native_functions.yaml"
    entries = (f"- func: {s}\n  dispatch:\n    CUDA, CPU: f{i}\n" for i, s in enumerate(schemas))
    spec.write_text("".join(entries), encoding="utf-8")
    generate(tmp_path / "out", spec=spec)
    assert _check_wrappers(Output(tmp_path / "out"), spec) == {"CUDA"}


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output for 200 entries that have every combination of dispatch keys and of flags, and
    for the other forms of those that are structured."""
    chosen = covering_shard(200)
    everything = set().union(*map(cases, entry_values()))
    assert set().union(*(cases(entry_values()[i]) for i in chosen)) == everything
    assert len(chosen) >= 200
    folder = tmp_path_factory.mktemp("shard")
    spec = folder / "native_functions.yaml"
    spec.write_text("".join(entry_texts()[i] for i in chosen), encoding="utf-8")
    generate(folder / "out", spec=spec)
    (folder / "out" / "ufunc").mkdir()
    (folder / "out" / "ufunc" / "add.h").write_text(UFUNC_ADD, encoding="utf-8")
    return folder / "out"


@pytest.mark.slow
def test_a_shard_of_every_combination_compiles(shard):
    """With what is for CUDA; without are the libraries that other tests build."""
    manifest = json.loads((shard / "manifest.json").read_text(encoding="utf-8"))
    sources = [path for path in manifest["sources"] if not path.endswith(".cu")]
    assert "src/ufunc_add.cpp" in sources
    with_cuda = "-DTORCHEXT_WITH_CUDA"
    assert check_syntax(shard, sources, manifest["include_dirs"], with_cuda) == ""


def test_every_key_has_an_example():
    assert set(CHANGES) == set(KEYS)


@pytest.mark.parametrize("key", KEYS)
def test_a_change_of_a_key_changes_the_output_or_is_documented_not_to(key, tmp_path):
    entry, value = CHANGES[key]
    assert entry.get(key) != value
    formulas, (beside, beside_after) = FORMULAS.get(key), BESIDE.get(key, ([], []))
    before = generated_text(tmp_path, [entry, *beside], formulas)
    after = generated_text(tmp_path, [{**entry, key: value}, *beside_after], formulas)
    assert (before == after) == (KEYS[key] is not None)


@pytest.mark.slow
def test_keys_documented_to_change_nothing_change_no_entry_of_upstream(tmp_path):
    without_effect = {key for key, reason in KEYS.items() if reason is not None}
    assert without_effect <= {key for entry in entry_values() for key in entry}
    entries = [
        {k: v for k, v in entry.items() if k not in without_effect} for entry in entry_values()
    ]
    assert generated_text(tmp_path, entries) == generated_text(tmp_path, entry_values())
