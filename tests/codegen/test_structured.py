# SPDX-License-Identifier: BSD-3-Clause
"""Structured operators of PyTorch's own native_functions.yaml, against torchgen's."""

from __future__ import annotations

from functools import cache

import pytest
import torchgen.api.structured as structured
import upstream_torchgen as upstream
from spec_runs import operator, plan
from torchgen.api import meta
from torchgen.dest.register_dispatch_key import RegisterDispatchKey
from torchgen.gen import get_grouped_native_functions
from torchgen.model import BackendIndex, NativeFunctionsGroup
from upstream_torchgen import spelling

from codegen.errors import SpecError
from codegen.plan.library import OperatorPlan, Plan
from codegen.spec.dispatch_keys import is_guarded


@cache
def aten2() -> Plan:
    text = upstream.NATIVE_FUNCTIONS.read_text(encoding="utf-8")
    return plan(text, namespace="aten2")


@cache
def by_name() -> dict[str, OperatorPlan]:
    return {str(op.operator.name): op for op in aten2().operators}


@cache
def groups() -> list[NativeFunctionsGroup]:
    found = get_grouped_native_functions(upstream.parsed().native_functions)
    return [g for g in found if isinstance(g, NativeFunctionsGroup) and g.structured]


def bindings(found: list) -> list[tuple[str, str]]:
    # Two names of one type.
    return [
        (spelling(b.type).replace("at::ArrayRef<int64_t>", "at::IntArrayRef"), b.name)
        for b in found
    ]


def parameters(found: tuple) -> list[tuple[str, str]]:
    return [(spelling(p.type), p.name) for p in found]


def structured_keys(group: NativeFunctionsGroup) -> dict[str, str]:
    """Dispatch key to the kernel that torchgen names for it."""
    found = {}
    for index in upstream.parsed().backend_indices.values():
        metadata = index.get_kernel(group)
        if metadata is not None and metadata.structured:
            found[index.dispatch_key.name] = metadata.kernel
    return found


def test_the_structured_operators_are_those_of_torchgen() -> None:
    ours = {name for name, op in by_name().items() if op.structured}
    assert ours == {str(g.out.func.name) for g in groups()}
    assert len(ours) > 250


def test_meta_functions_have_the_types_and_bases_of_torchgen() -> None:
    for group in groups():
        ours = by_name()[str(group.out.func.name)].structured
        assert ours.meta_class == f"aten2::meta::structured_{meta.name(group)}"
        base = group.out.structured_inherits
        assert ours.is_iterator == (base == "TensorIteratorBase")
        assert parameters(ours.meta.parameters) == bindings(structured.meta_arguments(group))
        assert (ours.meta.result == "meta_return_ty") == bool(group.out.precomputed)


def test_kernels_have_the_names_and_types_of_torchgen() -> None:
    for group in groups():
        ours = by_name()[str(group.out.func.name)].structured
        names = {key: k.name for k in ours.kernels for key in k.keys}
        expected = {k: f"aten2::native::structured_{n}" for k, n in structured_keys(group).items()}
        assert names == expected, group.out.func
        assert parameters(ours.impl.parameters) == bindings(structured.impl_arguments(group))


def test_precomputed_values_are_those_of_torchgen() -> None:
    seen = 0
    for group in groups():
        if group.out.precomputed is None:
            continue
        elements = [*group.out.precomputed.replace.values(), group.out.precomputed.add]
        arguments = [argument for arguments in elements for argument in arguments]
        types = [structured.argument_type(a, binds=a.name) for a in arguments]
        expected = [
            (spelling(t.cpp_type(strip_ref=True)), a.name) for t, a in zip(types, arguments)
        ]
        ours = by_name()[str(group.out.func.name)].structured
        assert parameters(ours.precomputed) == expected
        seen += 1
    assert seen >= 9


def _generates(index: BackendIndex, group: NativeFunctionsGroup) -> bool:
    """Whether torchgen generates the forms' kernels for a key."""
    key = index.dispatch_key.name
    if key in ("Meta", "CompositeExplicitAutogradNonFunctional"):
        return True
    metadata = index.get_kernel(group)
    return metadata is not None and metadata.structured


def test_every_form_has_kernels_for_the_keys_of_torchgen() -> None:
    for group in groups():
        for form in group.functions():
            expected = {
                index.dispatch_key.name
                for index in upstream.parsed().backend_indices.values()
                if _generates(index, group)
            }
            if form is group.out:
                expected.discard("CompositeExplicitAutogradNonFunctional")
            ours = by_name()[str(form.func.name)]
            assert {k.key for k in ours.kernels if k.structured} == expected, form.func


def test_device_checks_of_the_forms_are_those_of_torchgen_and_meta_has_them_too() -> None:
    for group in groups():
        for form in group.functions():
            arguments = [*form.func.arguments.out, *form.func.arguments.flat_positional]
            text = RegisterDispatchKey.gen_device_check(form.device_check, arguments, "f")
            expected = {a.name for a in arguments if f'"{a.name}")' in text}
            for kernel in by_name()[str(form.func.name)].kernels:
                if kernel.structured:
                    checked = {t.name for t in kernel.device_checks}
                    has_check = is_guarded(kernel.key) or kernel.key == "Meta"
                    assert checked == (expected if has_check else set()), form.func


# What the packaged file has no example of.

FORMS = """\
- func: f(Tensor self, Tensor[] rest, int n) -> Tensor
  structured_delegate: f.out
- func: f_(Tensor(a!) self, Tensor[] rest, int n) -> Tensor(a!)
  structured_delegate: f.out
- func: f.out(Tensor self, Tensor[] rest, int n, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  dispatch:
    CPU: f_cpu
    CUDA, PrivateUse1: cpu_fallback
"""


def test_a_fallback_serves_all_forms() -> None:
    found = plan(FORMS)
    for name in ("f", "f_", "f.out"):
        kernels = {k.key: k for k in operator(found, name).kernels}
        assert kernels["CUDA"].falls_back and kernels["PrivateUse1"].falls_back
        assert kernels["CPU"].structured and not kernels["CPU"].needs_cuda


def test_the_results_of_a_plain_meta_class_are_kept_apart_from_its_inputs() -> None:
    found = plan(FORMS)
    kernel = next(k for k in operator(found, "f.out").kernels if k.key == "CPU")
    assert kernel.structured.separated == ("self", "rest")
    without_inplace = FORMS.replace("- func: f_", "- func: g_").split("- func: g_")
    rest = without_inplace[0] + "- func: f.out" + FORMS.split("- func: f.out")[1]
    kernel = next(k for k in operator(plan(rest), "f.out").kernels if k.key == "CPU")
    assert kernel.structured.separated == (None, "self", "rest")


def test_a_traced_call_becomes_that_of_the_functional_form() -> None:
    found = plan(FORMS)
    assert [str(operator(found, n).traced.target) for n in ("f_", "f.out")] == ["f", "f"]
    assert operator(found, "f").traced is None


def test_an_out_form_is_batched_by_the_functional_form() -> None:
    found = plan(FORMS)
    assert str(operator(found, "f.out").batching.form) == "f"
    functions = [operator(found, name).batching.function for name in ("f", "f_")]
    assert functions == ["each_example"] * 2


@pytest.mark.parametrize("key", ["FuncTorchBatched", "FuncTorchBatchedDecomposition"])
def test_an_entry_with_a_batching_rule_keeps_it(key) -> None:
    forms = """\
- func: g(Tensor x) -> Tensor
- func: g.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: g_out
"""
    assert str(operator(plan(forms), "g.out").batching.form) == "g"
    assert operator(plan(f"{forms}    {key}: g_batched\n"), "g.out").batching is None


def test_tags_of_the_forms() -> None:
    found = plan(FORMS)
    unsafe = "cudagraph_unsafe"  # on CUDA all of them fall back
    assert operator(found, "f_").tags == ("inplace", unsafe, "pt2_compliant_tag")
    assert operator(found, "f.out").tags == (unsafe, "pt2_compliant_tag")


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        ("Integral", ["Byte", "Char", "Short", "Int", "Long"]),
        ("Floating, Half, Float", ["Float", "Double", "Half"]),
        ("Complex, Bool", ["ComplexFloat", "ComplexDouble", "Bool"]),
    ],
)
def test_dtypes_of_a_ufunc_are_those_of_torchgen(dtypes: str, expected: list[str]) -> None:
    from torchgen.model import UfuncInnerLoop, UfuncKey

    loop = UfuncInnerLoop.parse(f"f ({dtypes})", UfuncKey.Generic)
    assert sorted(d.name for d in loop.supported_dtypes) == sorted(expected)
    native = UFUNC.replace("DTYPES", dtypes)
    ufunc = operator(plan(native), "f.out").structured.ufunc
    assert [dtype for dtype, _ in ufunc.cpu] == expected
    assert ufunc.cpu == ufunc.cuda


UFUNC = """\
- func: f(Tensor self, Scalar a, int b) -> Tensor
  structured_delegate: f.out
- func: f.out(Tensor self, Scalar a, int b, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  structured_inherits: TensorIteratorBase
  ufunc_inner_loop: f (DTYPES)
"""


def test_a_cpu_scalar_loop_is_for_the_cpu_alone() -> None:
    loops = "\n    Generic: f (Floating)\n    CPUScalar: g (Half)"
    native = UFUNC.replace(" f (DTYPES)", loops)
    ufunc = operator(plan(native), "f.out").structured.ufunc
    assert dict(ufunc.cpu) == {"Float": "f", "Double": "f", "Half": "g"}
    assert dict(ufunc.cuda) == {"Float": "f", "Double": "f"}
    assert ufunc.scalars == (("a", True), ("b", False))


def test_one_class_in_two_operators_is_refused() -> None:
    other = FORMS.replace("f(", "g(").replace("f_(", "g_(").replace("f.out", "g.out")
    with pytest.raises(SpecError, match="'g.out' has the class 'lib::native::structured_f_cpu'"):
        plan(FORMS + other)
