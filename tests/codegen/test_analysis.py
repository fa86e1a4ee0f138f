# SPDX-License-Identifier: BSD-3-Clause
"""What analysis decides: shards, guards, nodes and what they save, names of the C++ API."""

from __future__ import annotations

import json
import re

import pytest
from spec_runs import operator, plan, recording

from codegen.emit import autograd, dispatch, nodes, operator_table, rules
from codegen.errors import SpecError
from codegen.plan.autograd import EdgeTo, SavedFrom, Unrecorded, Views
from codegen.plan.kernels import Boxed, KernelPlan
from codegen.plan.library import NodePlan


def spec(*schemas: str, dispatch: str = "CPU: kernel", more: str = "") -> str:
    keys = f"  dispatch: {{{dispatch}}}\n" if dispatch else ""
    return "".join(f'- func: "{schema}"\n{keys}{more}' for schema in schemas)


def formulas(schema: str, **lines: str) -> str:
    text = "".join(f'  {name.replace("__", ", ")}: "{text}"\n' for name, text in lines.items())
    return f"- name: {schema}\n{text}"


def node(schema: str, **lines: str) -> NodePlan:
    (op,) = plan(spec(schema), formulas(schema, **lines)).operators
    return recording(op).node


def kernel(schema: str, dispatch: str = "CUDA: kernel", more: str = "") -> KernelPlan:
    op, *_ = plan(spec(schema, dispatch=dispatch, more=more)).operators
    return op.kernels[0]


# Shards and groups.


def names_of_shards(count: int, first: int = 0) -> dict[str, int]:
    found = plan(spec(*(f"op{i}(Tensor x) -> Tensor" for i in range(first, first + count))))
    return {str(op.operator.name): op.shard for op in found.operators}


def test_an_operator_stays_in_its_shard_when_others_come_and_go() -> None:
    before, after = names_of_shards(200), names_of_shards(200, first=3)
    assert {name: after[name] for name in before if name in after} == {
        name: shard for name, shard in before.items() if name in after
    }


def test_a_library_that_doubles_keeps_each_shard_or_splits_it_in_two() -> None:
    small, large = names_of_shards(240), names_of_shards(480)
    assert all(large[name] % 4 == shard for name, shard in small.items())


@pytest.mark.parametrize(("operators", "shards"), [(1, 1), (64, 1), (65, 2), (160, 4), (5000, 64)])
def test_shards_are_a_power_of_two(operators: int, shards: int) -> None:
    from codegen.analysis.library import _shard_count

    assert _shard_count(operators) == shards


def test_forms_of_an_operator_are_one_group() -> None:
    found = plan(
        spec(
            "mul(Tensor self) -> Tensor",
            "mul_(Tensor(a!) self) -> Tensor(a!)",
            "mul.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
            "__iand__(Tensor(a!) self) -> Tensor(a!)",
            "_Private(Tensor self) -> Tensor",
        )
    )
    assert list(found.groups()) == ["mul", "__iand__", "_private"]
    assert len(found.groups()["mul"]) == 3
    assert len({op.shard for op in found.groups()["mul"]}) == 1


# Kernels.


def test_without_dispatch_an_operator_has_one_composite_kernel() -> None:
    found = plan(
        spec(
            "f.a(Tensor x) -> Tensor",
            "g.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
            "delete(Tensor x) -> Tensor",
            dispatch="",
        )
    )
    kernels = [k for op in found.operators for k in op.kernels]
    assert [(k.key, k.function) for k in kernels if k.is_declared] == [
        ("CompositeImplicitAutograd", "lib::native::f"),
        ("CompositeImplicitAutograd", "lib::native::g_out"),
        ("CompositeImplicitAutograd", "lib::native::delete_"),
    ]


def test_a_composite_kernel_runs_under_vmap_too() -> None:
    key = "FuncTorchBatchedDecomposition"

    def kernels(dispatch: str, more: str = "") -> dict[str, tuple[str, bool]]:
        (op,) = plan(spec("f(Tensor x) -> Tensor", dispatch=dispatch, more=more)).operators
        return {k.key: (k.function, k.is_declared) for k in op.kernels}

    found = kernels("CompositeImplicitAutograd: f")
    assert found[key] == ("lib::native::f", False)
    assert found["CompositeImplicitAutograd"] == ("lib::native::f", True)
    own = kernels(f"CompositeImplicitAutograd: f, {key}: g")
    assert own[key] == ("lib::native::g", True)
    assert key not in kernels("CPU: f")
    assert key not in kernels("CompositeImplicitAutograd: f", more="  vmap: pointwise\n")


def test_a_manual_registration_has_no_kernel() -> None:
    native = spec("f(Tensor x) -> Tensor", dispatch="", more="  manual_kernel_registration: True\n")
    assert operator(plan(native), "f").kernels == ()


def test_a_kernel_takes_symint_where_its_name_says_so() -> None:
    schema = "f(Tensor x, SymInt n) -> Tensor"
    types = [
        kernel(schema, f"CPU: {name}").signature.parameters[1].type  # type: ignore[union-attr]
        for name in ("k", "k_symint", "k_symint_cpu")
    ]
    assert types == ["int64_t", "c10::SymInt", "c10::SymInt"]


def test_a_kernel_without_a_signature_is_boxed() -> None:
    assert kernel("f(Tensor x, Any y) -> Tensor").signature is None


def test_a_kernel_of_another_namespace_is_found_there() -> None:
    assert kernel("f(Tensor x) -> Tensor", "CPU: at::k").function == "at::native::k"


def test_one_function_with_two_signatures_needs_a_cast() -> None:
    found = plan(spec("f(Tensor x) -> Tensor", "f.n(Tensor x, int n) -> Tensor"))
    assert [op.kernels[0].is_overloaded for op in found.operators] == [True, True]
    found = plan(spec("f(Tensor x) -> Tensor", "g(Tensor y) -> Tensor"))
    assert [op.kernels[0].is_overloaded for op in found.operators] == [False, False]


def test_composite_kernels_speak_for_private_operators() -> None:
    def speaking(schema: str, *others: str) -> dict[str, bool]:
        dispatch = "CPU: f, CompositeExplicitAutograd: g"
        op, *_ = plan(spec(schema, *others, dispatch=dispatch)).operators
        return {kernel.key: kernel.speaks_for for kernel in op.kernels}

    public, private = "f(Tensor x) -> Tensor", "_f(Tensor x) -> Tensor"
    assert speaking(public, private) == {"CPU": False, "CompositeExplicitAutograd": True}
    assert not any(speaking(private, public).values()) and not any(speaking(public).values())


def test_lists_of_tensors_that_may_be_missing_are_copied_without_lazy_bits() -> None:
    def bits(schema: str) -> dict[str, Boxed]:
        (op,) = [op for op in plan(spec(schema)).operators if not op.operator.beside]
        found = {kernel.key: kernel.runs for kernel in op.kernels}
        return {key: found[key] for key in ("Conjugate", "Negative", "ZeroTensor") if key in found}

    copied = {"Conjugate": Boxed.WITHOUT_BIT, "Negative": Boxed.WITHOUT_BIT}
    assert bits("f(Tensor x, Tensor?[] ys) -> Tensor") == copied
    assert bits("f(Tensor(a) x, Tensor?[] ys) -> Tensor(a)") == {}
    assert bits("f(Tensor x, Tensor[] ys, Tensor? z) -> Tensor") == {}


@pytest.mark.parametrize(
    ("key", "is_guarded", "needs_cuda"),
    [
        ("CPU", False, False),
        ("Meta", False, False),
        ("SparseCPU", False, False),
        ("MkldnnCPU", False, False),
        ("CUDA", True, True),
        ("SparseCUDA", True, True),
        ("QuantizedCUDA", True, True),
        ("PrivateUse1", True, False),
        ("XPU", True, False),
        ("CompositeImplicitAutograd", False, False),
        ("CompositeExplicitAutograd", False, False),
        ("Autograd", False, False),
        ("AutogradCUDA", False, False),
    ],
)
def test_kernels_of_devices_with_several_indices_have_a_guard(
    key: str, is_guarded: bool, needs_cuda: bool
) -> None:
    found = kernel("f(Tensor x, Tensor y) -> Tensor", f"{key}: k")
    assert (found.device_guard == ("x",), found.needs_cuda) == (is_guarded, needs_cuda)
    assert bool(found.device_checks) == is_guarded


@pytest.mark.parametrize("key", ["CPU", "CUDA", "Meta", "CompositeImplicitAutograd"])
def test_kernels_are_given_tensors_that_are_there(key: str) -> None:
    func = "f(Tensor x, Tensor? y, Tensor[] z, Tensor?[] w, int n, *, Tensor(a!) out) -> Tensor(a!)"
    found = kernel(func, f"{key}: k")
    assert [item.name for item in found.required] == ["x", "out"]
    assert found.is_wrapped
    assert not kernel("f(Tensor x, int n) -> int", "Autograd: k").is_wrapped


def test_kernels_are_given_lists_of_the_length_that_the_schema_says() -> None:
    found = kernel(
        "f(Tensor x, int[2] a, float[3]? b, int[1] c, bool[3] d, SymInt[2] e=[], Tensor[2] g)"
        " -> Tensor",
        "CPU: k",
    )
    assert [(c.argument, c.lengths) for c in found.lengths] == [
        ("a", (2,)), ("b", (3,)), ("e", (2, 0)), ("g", (2,)),
    ]  # fmt: skip


def test_a_fallback_is_registered_where_cuda_is_not() -> None:
    (op,) = plan(spec("f(Tensor x) -> Tensor", dispatch="CPU: k, CUDA: cpu_fallback")).operators
    fallback = op.kernels[1]
    assert fallback.runs is Boxed.CPU_FALLBACK
    assert not fallback.needs_cuda and not fallback.is_wrapped


def test_a_fallback_takes_tensors_of_any_devices_where_none_is_checked() -> None:
    check = "  device_check: NoCheck\n"
    specs = spec("f(Tensor x) -> Tensor", dispatch="CPU: k, CUDA: cpu_fallback", more=check)
    (op,) = plan(specs).operators
    assert op.kernels[1].runs is Boxed.CPU_FALLBACK_OF_ANY


@pytest.mark.parametrize(
    ("schema", "guard"),
    [
        ("f(Tensor x, Tensor self) -> Tensor", "self"),
        ("f(int n, Tensor? x, Tensor y, Tensor z) -> Tensor", "x y"),
        ("f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", "out"),
        ("f(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", "self"),
        ("f(Tensor[] xs, Tensor?[] ys, Tensor? self) -> Tensor", "self xs ys"),
        ("f(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
         "bool? pin_memory=None) -> Tensor", "device"),
        ("f(Tensor self, Device device) -> Tensor", "self"),
        ("f(int n) -> int", ""),
    ],
)  # fmt: skip
def test_the_guard_takes_the_device_of(schema: str, guard: str) -> None:
    assert kernel(schema).device_guard == tuple(guard.split())


def test_kernels_that_differ_in_the_function_and_its_device_share_a_wrapper() -> None:
    keys = "CPU: f, CUDA: g, SparseCPU: s, SparseCsrCPU: t"
    native = spec("foo(Tensor x) -> Tensor", "foo_1(Tensor x) -> Tensor", dispatch=keys)
    wrappers = [w for op in plan(native).operators for w in op.wrappers]
    groups = [[kernel.key for kernel in w.kernels] for w in wrappers]
    assert groups == [["CPU", "CUDA"], ["SparseCPU", "SparseCsrCPU"]] * 2
    assert len({w.name for w in wrappers}) == len(wrappers)


def test_the_meta_kernel_of_a_rule_shares_the_wrapper_of_the_others() -> None:
    rule = "  meta: {like: x}\n"
    (op,) = plan(spec("f(Tensor x) -> Tensor", dispatch="CPU: f, CUDA: g", more=rule)).operators
    (wrapper,) = op.wrappers
    assert [kernel.key for kernel in wrapper.kernels] == ["CPU", "CUDA", "Meta"]
    assert wrapper.serves_meta and wrapper.kernel.key == "CPU"
    # what its kernel looks at is looked at on the CPU too, where it is all there
    assert [t.name for t in wrapper.kernel.device_checks] == ["x"]
    assert not op.kernels[0].device_checks


def test_a_kernel_that_is_called_otherwise_has_a_wrapper_of_its_own() -> None:
    keys = "CPU: f, CUDA: g_symint"
    (op,) = plan(spec("f(Tensor x, SymInt n) -> Tensor", dispatch=keys)).operators
    assert [[k.key for k in w.kernels] for w in op.wrappers] == [["CPU"], ["CUDA"]]
    assert [w.name for w in op.wrappers] == ["cpu_f", "cuda_f"]


def test_a_wrapper_serves_meta_where_its_kernel_is_one_of_those() -> None:
    keys = "CPU: f, CUDA: g, XPU: h_symint, PrivateUse1: i_symint"
    native = spec("f(Tensor x, SymInt n) -> Tensor", dispatch=keys, more="  meta: {like: x}\n")
    (op,) = plan(native).operators
    assert [([k.key for k in w.kernels], w.serves_meta) for w in op.wrappers] == [
        (["CPU", "CUDA", "Meta"], True),
        (["XPU", "PrivateUse1"], False),
    ]


@pytest.mark.parametrize("more", ["", "  layout: {x: contiguous}\n"])
def test_a_function_that_serves_meta_runs_no_kernel_there(more: str) -> None:
    rule = f"  meta: {{like: x}}\n{more}"
    found = plan(spec("f(Tensor x) -> Tensor", dispatch="CPU: f, CUDA: g", more=rule))
    text = "".join(file.text for file in dispatch.emit(found))
    (kernel_call,) = re.findall(r"( *)kKernel\(", text)
    assert "\n  if constexpr (kHome != Home::kMeta) {\n" in text and kernel_call == "    "


def test_all_tensors_must_be_on_one_device() -> None:
    found = kernel("f(Tensor x, Tensor? y, int n, Tensor[] z, Tensor?[] w) -> Tensor")
    assert [tensors.name for tensors in found.device_checks] == ["x", "y", "z", "w"]


def test_checks_and_guards_can_be_left_out() -> None:
    schema = "f(Tensor x, Tensor y) -> Tensor"
    unchecked = kernel(schema, more="  device_check: NoCheck\n")
    assert (unchecked.device_checks, unchecked.device_guard) == ((), ("x",))
    assert kernel(schema, more="  device_guard: False\n").device_guard == ()


@pytest.mark.parametrize(
    ("kernels", "is_unsafe"),
    [
        ("CPU: f\n    CUDA, PrivateUse1: cpu_fallback", True),
        ("CPU: f\n    CUDA: g\n    PrivateUse1: cpu_fallback", False),
        ("CPU, CUDA: f", False),
    ],
)
def test_what_falls_back_on_cuda_is_kept_out_of_cuda_graphs(kernels: str, is_unsafe: bool) -> None:
    text = f"- func: f(Tensor x) -> Tensor\n  autogen: f.out\n  dispatch:\n    {kernels}\n"
    tags = {str(op.operator.name): op.tags for op in plan(text).operators}
    assert set(tags) == {"f", "f.out"}
    assert all(("cudagraph_unsafe" in own) == is_unsafe for own in tags.values())


def test_a_functional_form_made_of_what_falls_back_is_kept_out_of_cuda_graphs() -> None:
    text = """\
- func: f_(Tensor(a!) self, Tensor x) -> Tensor(a!)
  autogen: f
  dispatch:
    CPU: f_
    CUDA: cpu_fallback
"""
    tags = {str(op.operator.name): op.tags for op in plan(text).operators}
    assert set(tags) == {"f_", "f"}
    assert all("cudagraph_unsafe" in own for own in tags.values())


def test_tags_say_that_an_operator_is_compliant() -> None:
    schema = "f(Tensor x) -> Tensor"
    (op,) = plan(spec(schema, more="  tags: [core]\n")).operators
    assert op.tags == ("core", "pt2_compliant_tag")
    (op,) = plan(spec(schema, more="  tags: [core]\n  pt2_compliant: False\n")).operators
    assert op.tags == ("core",)
    (op,) = plan(spec(schema, more="  tags: [pt2_compliant_tag, core]\n")).operators
    assert op.tags == ("pt2_compliant_tag", "core")


# The C++ API.


def api_names(*schemas: str, more: str = "") -> list[str | None]:
    return [op.api and op.api.name for op in plan(spec(*schemas, more=more)).operators]


def test_overloads_share_a_name_where_cpp_tells_them_apart() -> None:
    names = api_names("f(Tensor x) -> Tensor", "f.n(Tensor x, int n) -> Tensor")
    assert names == ["f", "f"]


def test_an_overload_that_only_writes_elsewhere_has_its_own_name() -> None:
    names = api_names("f(Tensor x) -> Tensor", "f.inplace(Tensor! x) -> ()")
    assert names == ["f", "f_inplace"]


def test_overloads_of_the_same_types_have_names_of_their_own() -> None:
    names = api_names("f(Tensor x) -> Tensor", "f.b(Tensor y) -> Tensor", "f.c(Tensor z) -> int")
    assert names == ["f", "f_b", "f_c"]
    names = api_names("f.a(Tensor x) -> Tensor", "f.b(Tensor y) -> Tensor", "f.c(int n) -> Tensor")
    assert names == ["f_a", "f_b", "f"]
    names = api_names("f.a(Tensor x, SymInt n) -> Tensor", "f.b(Tensor x, int n) -> Tensor")
    assert names == ["f_a", "f_b"]
    names = api_names("f_a.b(Tensor x) -> Tensor", "f.a(Tensor x) -> Tensor", "f(Tensor x) -> int")
    assert names == ["f_a_b", "f_a", "f"]


def test_a_function_that_takes_symint_has_atens_second_name() -> None:
    schemas = "f(Tensor x, SymInt[2] n) -> Tensor", "g(Tensor x, int n) -> Tensor"
    found = plan(spec(*schemas, "f.out(Tensor x, SymInt[2] n, *, Tensor(a!) out) -> Tensor(a!)"))
    names = [(op.api.name, op.api.symint_name) for op in found.operators]
    assert names == [("f", "f_symint"), ("g", None), ("f_out", "f_out_symint")]
    assert found.group_of_api["f_symint"] == "f"


def test_an_operator_of_its_own_keeps_the_second_name() -> None:
    found = plan(spec("f(Tensor x, SymInt n) -> Tensor", "f_symint(Tensor x, SymInt n) -> Tensor"))
    names = [(op.api.name, op.api.symint_name) for op in found.operators]
    assert names == [("f", None), ("f_symint", "f_symint_symint")]


def test_an_out_form_has_its_own_name_with_outputs_first() -> None:
    op, *_ = plan(spec("f.out(Tensor x, int n=1, *, Tensor(a!) out) -> Tensor(a!)")).operators
    assert (op.api.name, op.api.signature.names) == ("f_out", "out, x, n")


def test_the_functions_of_a_library_are_all_different() -> None:
    schemas = ["f(Tensor x) -> Tensor", "f.x(Tensor y) -> Tensor", "f_x(Tensor x) -> Tensor"]
    schemas += ["f_x.b(Tensor! x) -> ()"]
    with pytest.raises(SpecError, match=r"has the C\+\+ name of"):
        plan(spec(*schemas))


def test_defaults_stand_where_cpp_allows_them() -> None:
    (op,) = plan(
        spec("f(Tensor x, int n=1, int[] s, *, int m=2, Tensor y, bool k=True) -> ()")
    ).operators
    assert op.api is not None
    assert [p.default for p in op.api.signature.parameters] == [
        None,
        None,
        None,
        None,
        None,
        "true",
    ]


def test_a_default_can_be_left_out() -> None:
    (op,) = plan(
        spec("f(Tensor x, int n=1) -> Tensor", more="  cpp_no_default_args: [n]\n")
    ).operators
    assert op.api is not None and op.api.signature.parameters[1].default is None


def test_a_binding_by_hand_is_not_generated() -> None:
    assert api_names("f(Tensor x) -> Tensor", more="  manual_cpp_binding: True\n") == [None]


def test_an_operator_without_a_signature_has_no_function() -> None:
    assert api_names("f(Tensor x, Any y) -> Tensor") == [None]


# Nodes.


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mul", "MulBackward0"),
        ("rms_norm", "RmsNormBackward0"),
        ("rms_norm_backward", "RmsNormBackwardBackward0"),
        ("_softmax", "SoftmaxBackward0"),
        ("conv2d", "Conv2DBackward0"),
        ("fast_forward", "FastBackward0"),
    ],
)
def test_a_node_is_named_as_upstream(name: str, expected: str) -> None:
    assert node(f"{name}(Tensor self) -> Tensor", self="grad").name == expected


def test_nodes_of_overloads_are_numbered_in_order() -> None:
    schemas = ["mul.B(Tensor x) -> Tensor", "mul.A(Tensor x) -> Tensor", "neg(Tensor x) -> Tensor"]
    entries = [formulas(schema, x="grad") for schema in schemas]
    found = plan(spec(*schemas), entries[1] + entries[2] + entries[0])
    nodes = {str(op.operator.name): recording(op).node.name for op in found.operators}
    assert nodes == {
        "mul.A": "MulBackward0",
        "neg": "NegBackward0",
        "mul.B": "MulBackward1",
    }


def saved(found: NodePlan) -> dict[str, tuple[int, ...]]:
    return {item.member: item.edges for item in found.saved}


def test_only_what_a_formula_names_is_saved() -> None:
    found = node("f(Tensor x, Tensor y, int n, str s) -> Tensor", x="grad * n", y="grad")
    assert saved(found) == {"n": ()}


def test_nothing_is_saved_for_tangents() -> None:
    found = node("f(Tensor x, Tensor y) -> Tensor", x="grad", y="grad", result="x_t * y_p")
    assert saved(found) == {}


def test_a_tensor_is_saved_for_the_gradients_that_need_it() -> None:
    found = node("mul(Tensor x, Tensor y) -> Tensor", x="grad * y", y="grad * x")
    assert saved(found) == {"y_": (0,), "x_": (1,)}


def test_a_tensor_that_all_gradients_need_has_no_condition() -> None:
    found = node("f(Tensor x, Tensor y) -> Tensor", x="grad * y * y", y="grad * y")
    assert saved(found) == {"y_": ()}
    assert saved(node("f(Tensor x) -> Tensor", x="grad * x")) == {"x_": ()}
    assert saved(node("f(Tensor x, Tensor y) -> Tensor", x__y="both(grad, x)")) == {"x_": ()}


def test_attributes_are_saved_in_place_of_tensors() -> None:
    found = node("f(Tensor x, Tensor y) -> Tensor", x="g(grad, y.sym_sizes(), y.dim())", y="grad")
    assert saved(found) == {"y_sym_sizes": (), "y_dim": ()}


def test_a_result_is_saved_after_the_kernel() -> None:
    found = node("f(Tensor x) -> Tensor", x="grad * result")
    assert [(item.member, item.is_output) for item in found.saved] == [("result_", True)]
    found = node(
        "f(Tensor x) -> (Tensor, Tensor values)", x="grads[0] * result0 + grads[1] * values"
    )
    assert [item.member for item in found.saved] == ["result0_", "values_"]


def test_a_result_called_like_an_argument_is_told_apart() -> None:
    found = node("f(Tensor x, Tensor result) -> Tensor", x="grad * result * result_return")
    assert [(item.member, item.is_output) for item in found.saved] == [
        ("result_", False),
        ("result_return_", True),
    ]


def test_the_gradients_of_named_results_are_found_by_name() -> None:
    found = node("f(Tensor x) -> (Tensor a, Tensor b)", x="grad_a + grad_b")
    assert found.gradients[0].grads == (("grad_a", 0), ("grad_b", 1))


def test_gradients_count_only_results_that_have_them() -> None:
    schema = "f(Tensor x) -> (Tensor a, Tensor i, Tensor b)"
    derivatives = (
        f"- name: {schema}\n  output_differentiability: [True, False, True]\n  x: grad_a + grad_b\n"
    )
    (op,) = plan(spec(schema), derivatives).operators
    assert recording(op).node.gradients[0].grads == (("grad_a", 0), ("grad_b", 1))
    assert [r.is_differentiable for r in recording(op).results] == [True, False, True]


def test_edges_are_the_tensors_with_formulas() -> None:
    schema = "f(Tensor x, Tensor? y, Tensor[] z, Tensor w, int n) -> Tensor"
    (op,) = plan(
        spec(schema), formulas(schema, x="grad", y="grad", z="g(grad)", w="non_differentiable")
    ).operators
    found = recording(op).node
    edges = [(e.argument, e.is_list, e.is_optional) for e in found.edges]
    assert edges == [("x", False, False), ("y", False, True), ("z", True, False)]
    assert [t.name for t in recording(op).refused.without_tangent] == ["x", "y", "z"]
    assert recording(op).refused.without_formula == ()


def test_a_tensor_without_a_formula_must_not_require_grad() -> None:
    schema = "f(Tensor x, Tensor y) -> Tensor"
    (op,) = plan(spec(schema), formulas(schema, x="grad")).operators
    assert [t.name for t in recording(op).refused.without_formula] == ["y"]


def test_the_mask_is_seen() -> None:
    found = node("f(Tensor x, Tensor y) -> Tensor", x__y="g(grad, grad_input_mask)")
    assert [(g.edges, g.needs_mask) for g in found.gradients] == [((0, 1), True)]


def test_operators_of_the_library_are_called_by_their_full_name() -> None:
    found = node("f(Tensor x) -> Tensor", x="lib::f(grad) + at::h(grad)")
    assert found.gradients[0].expression == "::lib::f(grad) + at::h(grad)"


def test_operators_of_the_library_that_formulas_call_are_known() -> None:
    lines = formulas("f(Tensor x) -> Tensor", x="lib::g(grad) + at::h(x)", result="lib::k(x_t)")
    (op, *_) = plan(spec(*(f"{n}(Tensor x) -> Tensor" for n in "fgk")), lines).operators
    assert (recording(op).node.calls, recording(op).calls) == (("g",), ("k",))


def test_the_length_of_a_list_is_checked_where_its_elements_are_read() -> None:
    schema = "f(Tensor[] xs, Tensor[] ys, Tensor[] zs) -> Tensor[]"
    found = node(schema, xs="grads[i] * ys[i] * int64_t(zs.size())", ys="grads[i]", zs="grads[i]")
    assert [gradient.lists for gradient in found.gradients] == [(("ys", "ys"),), (), ()]


def gradients_text(schema: str, **lines: str) -> str:
    """The C++ of a node's gradients, in as few lines as there are statements."""
    text = "".join(f.text for f in nodes.emit(plan(spec(schema), formulas(schema, **lines))))
    return " ".join(text.partition("static void ")[2].partition("NodeDefinition")[0].split())


def test_one_gradient_is_asked_for_once() -> None:
    found = gradients_text("f(Tensor x) -> Tensor", x="g(grad, grad_input_mask)")
    assert found.count("needs[0]) {") == 1 and "outputs.store(0, computed);" in found
    found = gradients_text("f(Tensor[] xs) -> Tensor", xs="g(grad)")
    assert found.count("needs[0]) {") == 1 and "outputs.store(0, computed);" in found


@pytest.mark.parametrize(
    ("results", "formula", "named"),
    [
        ("(Tensor a, Tensor b)", "grad_a + grad_b", '{{"a", 0}, {"b", 1}}'),
        ("Tensor[]", "g(grads)", '{{"result", -1}}'),  # any of them
        ("Tensor", "grad", None),
    ],
)
def test_gradients_that_may_be_undefined_are_named(
    results: str, formula: str, named: str | None
) -> None:
    found = gradients_text(f"f(Tensor x) -> {results}", x=formula)
    explained = f'explain_undefined(error, "lib::f", {named}, grads);'
    assert explained in found if named else "explain_undefined" not in found


def test_a_node_of_a_dispatch_key_has_it_in_its_name() -> None:
    schema = "f(Tensor x) -> Tensor"
    lines = (
        f"- name: {schema}\n  dispatch:\n    Default: {{x: grad}}\n    AutogradCPU: {{x: grad}}\n"
    )
    (op,) = plan(spec(schema), lines).operators
    names = {key: found.node.name for key, found in op.recordings}
    assert names == {"Autograd": "FBackward0", "AutogradCPU": "FBackwardAutogradCPU0"}


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        ("f(Tensor x, Tensor x_) -> Tensor", "x x_"),
        ("f(Tensor x_, Tensor x) -> Tensor", "x x_"),
        ("f(Tensor x, Tensor delete, Tensor node, Tensor keys) -> Tensor", "x delete node keys"),
        ("f(Tensor x, Tensor ranges, Tensor computed) -> Tensor", "x ranges computed"),
        ("f(Tensor x, Tensor lock, Tensor grad_inputs) -> Tensor", "x lock grad_inputs"),
        ("f(Tensor x, int n, Tensor name) -> Tensor", "x x.dim() n name"),
    ],
)
def test_members_and_locals_of_a_node_are_all_different(schema: str, names: str) -> None:
    found = node(schema, x=" * ".join(["grad", *names.split()]))
    used = [item.member for item in found.saved]
    used += [item.local for item in found.saved if item.local != item.member]
    assert len(set(used)) == len(used), used


def test_an_argument_cannot_be_taken_for_a_saved_attribute() -> None:
    schema = "f(Tensor x, int x_dim) -> Tensor"
    with pytest.raises(SpecError, match=r"the argument 'x_dim' has the name of a saved x\.dim\(\)"):
        node(schema, x="grad * x.dim() * x_dim")


# What stands on the autograd keys without formulas.


@pytest.mark.parametrize(
    ("schema", "dispatch", "refuses", "tracks"),
    [
        ("f(Tensor x) -> Tensor", "CPU: k", True, False),
        ("f(Tensor x) -> int", "CPU: k", False, False),
        ("f(int n) -> Tensor", "CPU: k", False, False),
        ("f(Tensor x) -> Tensor", "CompositeImplicitAutograd: k", False, False),
        ("f(Tensor x) -> Tensor", "CompositeExplicitAutograd: k", True, False),
        ("f(Tensor x) -> Tensor", "'CPU: k, Autograd': a", False, False),
        ("f_(Tensor(a!) self) -> Tensor(a!)", "CPU: k", True, True),
        ("f.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", "CPU: k", True, True),
        ("f(Tensor! x) -> ()", "CPU: k", True, True),
        ("f(Tensor(a) x) -> Tensor(a)", "CPU: k", True, True),
        ("f(Tensor(a) x) -> Tensor(a)", "'CPU: k, ADInplaceOrView': a", True, False),
    ],
)
def test_no_gradient_is_lost_in_silence(
    schema: str, dispatch: str, refuses: bool, tracks: bool
) -> None:
    op, *_ = plan(spec(schema, dispatch=dispatch.replace("'", ""))).operators
    assert not op.recordings
    found = (op.on_autograd is Unrecorded.NOT_IMPLEMENTED, op.tracked is not None)
    assert found == (refuses, tracks)


@pytest.mark.parametrize(
    ("dispatch", "views", "differentiable"),
    [
        ("{Default: {x: non_differentiable}, AutogradCPU: {x: grad}}", Views.DIFFERENTIABLE, True),
        ("{AutogradCPU: {x: grad}}", Views.DIFFERENTIABLE, True),
        ("{Default: {x: grad}, AutogradCPU: {x: non_differentiable}}", Views.DIFFERENTIABLE, True),
        ("{Default: {x: non_differentiable}}", Views.IGNORED, False),
    ],
)
def test_a_formula_of_one_device_makes_views_and_batches_differentiable(
    dispatch: str, views: Views, differentiable: bool
) -> None:
    schema = "f(Tensor(a) x) -> Tensor(a)"
    lines = f"- name: {schema}\n  dispatch: {dispatch}\n"
    op, *_ = plan(spec(schema), lines).operators
    assert op.tracked is views
    assert (("differentiable", False) in op.batching.facts) is not differentiable


def test_a_number_that_stands_for_a_list_is_repeated_without_a_name_in_cpp() -> None:
    native = spec("f(Tensor x, int[2] s) -> Tensor", more="  manual_cpp_binding: True\n")
    lines = formulas("f(Tensor x, int[2] s) -> Tensor", x="grad * s[1]")
    (op,) = plan(native, lines).operators
    assert op.api is None
    assert [(check.argument, check.lengths) for check in op.repeated] == [("s", (2,))]


def test_an_operator_can_be_declared_to_have_no_gradient() -> None:
    native = spec("f(Tensor x) -> Tensor", more="  differentiable: False\n")
    assert operator(plan(native), "f").on_autograd is Unrecorded.IGNORED


def test_a_tangent_needs_a_gradient() -> None:
    schema = "f(Tensor x) -> Tensor"
    with pytest.raises(SpecError, match="a tangent without a gradient"):
        plan(spec(schema), formulas(schema, result="x"))


IN_PLACE = """\
- func: f.a(Tensor self) -> Tensor y
  dispatch: {CPU: f_a}
- func: f.b(Tensor self) -> Tensor y
  dispatch: {CPU: f_b}
- func: f_.b(Tensor(a!) self) -> Tensor(a!)
  dispatch: {CPU: f_b_}
"""
OUT_OF_PLACE_FORMULAS = """\
- name: f.a(Tensor self) -> Tensor y
  self: grad * y
  y: self_t * y
- name: f.b(Tensor self) -> Tensor y
  self: grad * y * 2
  y: self_t * y * 2
"""


def test_an_in_place_form_inherits_the_formula_of_its_own_overload() -> None:
    found = plan(IN_PLACE, OUT_OF_PLACE_FORMULAS)
    nodes = {str(op.operator.name): recording(op).node for op in found.operators}
    assert nodes["f_.b"] is not None and nodes["f.b"] is not None
    assert nodes["f_.b"].name == nodes["f.b"].name == "FBackward1"


def test_an_in_place_form_has_the_results_of_its_functional_form_whatever_their_names() -> None:
    recorded = recording(operator(plan(IN_PLACE, OUT_OF_PLACE_FORMULAS), "f_.b"))
    assert [(s.origin, s.source) for s in recorded.saves_after] == [(SavedFrom.WRITTEN, "self")]
    assert [tangent.name for tangent in recorded.tangents] == ["self_tangent"]


@pytest.mark.parametrize("flags", ["[false, true]", "[no, Yes]", "[False, True]"])
def test_flags_are_read_as_yaml_reads_them(flags: str) -> None:
    schema = "f(Tensor self) -> (Tensor, Tensor)"
    text = f"- name: {schema}\n  output_differentiability: {flags}\n  self: grad * 2\n"
    results = recording(operator(plan(spec(schema), text), "f")).results
    assert [(r.is_differentiable, r.condition) for r in results] == [(False, None), (True, None)]


@pytest.mark.parametrize("name", ["default", "keys", "node", "plain"])
def test_the_old_value_has_one_name_whatever_the_argument_is_called(name: str) -> None:
    schema = f"f_(Tensor(a!) {name}, Tensor other) -> Tensor(a!)"
    lines = {name: "non_differentiable", "other": f"grad * {name}", "result": f"other_t * {name}"}
    op, *_ = plan(spec(schema), formulas(schema, **lines)).operators
    recorded = recording(op)
    (written,) = recorded.overwritten.originals
    (item,) = [i for t in recorded.tangents for i in t.inputs if i.is_original]
    assert item.parameter == f"original_{written}"
    assert [(s.origin, s.source) for s in recorded.saves] == [(SavedFrom.ORIGINAL, written)]
    assert recorded.watched == ("other", written)


def test_what_is_overwritten_without_a_differentiable_result_refuses_gradients() -> None:
    schema = "f_(Tensor(a!) self, Tensor(b!) other, Tensor y) -> (Tensor(a!), Tensor(b!))"
    flags = "  output_differentiability: [True, False]\n"
    text = formulas(schema, self="grad", other="non_differentiable", y="grad")
    op, _ = plan(spec(schema), text.replace("\n", f"\n{flags}", 1)).operators
    assert [t.name for t in recording(op).refused.without_formula] == ["other"]
    assert "other" in [t.name for t in recording(op).refused.without_tangent]


@pytest.mark.parametrize(
    ("functional", "tagged"),
    [
        ("f(Tensor x, int[2] n=1) -> Tensor", False),
        ("f.other(Tensor x, SymInt[] n=[1, 1]) -> Tensor", False),
        ("f(Tensor x, int[2] n=1) -> (Tensor, Tensor)", True),
        ("f(Tensor x, float n=1) -> Tensor", True),
        ("f(Tensor x, int[2] m=1) -> Tensor", True),
        ("g(Tensor x, int[2] n=1) -> Tensor", True),
        ("f_(Tensor(a!) x, int[2] n=1) -> Tensor(a!)", True),
    ],
)
def test_an_out_form_is_tagged_where_torch_takes_it_for_no_functional_one(
    functional: str, tagged: bool
) -> None:
    found = plan(spec(functional, "f.out(Tensor x, int[2] n=1, *, Tensor(a!) out) -> Tensor(a!)"))
    assert ("out" in operator(found, "f.out").tags) == tagged


@pytest.mark.parametrize(
    ("formula", "is_copied"),
    [
        ("grad * buffer", True),
        ("grad * buffer.sizes().size() * buffer", True),
        ("grad.reshape(buffer.sizes())", False),
        ("grad * 2", False),
    ],
)
def test_what_is_written_aside_and_read_by_a_formula_is_traced_on_copies(
    formula: str, is_copied: bool
) -> None:
    schema = "f(Tensor x, Tensor(a!) buffer) -> Tensor"
    found = plan(spec(schema), formulas(schema, x=formula))
    assert operator(found, "f").is_traced_on_copies == is_copied
    assert recording(operator(found, "f")).overwritten.asides == (("buffer",) if is_copied else ())
    assert [str(op.operator.func) for op in found.operators][1:] == (
        ["f.functional(Tensor x, Tensor buffer) -> (Tensor, Tensor buffer_out)"] * is_copied
    )


@pytest.mark.parametrize("key", ["Default", "AutogradCUDA"])
def test_the_formulas_of_every_key_are_looked_at(key: str) -> None:
    schema = "f(Tensor x, Tensor(a!) buffer) -> Tensor"
    reads = {k: "buffer" if k == key else "2" for k in ("Default", "AutogradCUDA")}
    lines = "".join(f"    {k}:\n      x: grad * {read}\n" for k, read in reads.items())
    found = plan(spec(schema), f"- name: {schema}\n  dispatch:\n{lines}")
    assert operator(found, "f").is_traced_on_copies


def test_a_result_without_a_gradient_that_is_an_argument_is_saved_aside() -> None:
    schema = "f(Tensor x, Tensor(a!) buffer) -> (Tensor, Tensor(a!))"
    flags = "  output_differentiability: [True, False]\n"
    text = formulas(schema, x="grad * result1").replace("\n", f"\n{flags}", 1)
    recorded = recording(operator(plan(spec(schema), text), "f"))
    assert recorded.overwritten.asides == ("buffer",)
    (saved,) = recorded.saves_after
    assert (saved.origin, saved.source, saved.given) == (SavedFrom.ASIDE, "buffer", None)


def test_every_new_result_is_compared_with_every_argument() -> None:
    schema = "f(Tensor x, Tensor(a!) out, Tensor[] ys) -> (Tensor(a!), Tensor, int)"
    text = formulas(schema, x="grads[0] + grads[1]", ys="non_differentiable")
    recorded = recording(operator(plan(spec(schema), text), "f"))
    assert [r.name for r in recorded.results if r.is_new] == ["result1"]
    assert recorded.tensors == ("x", "out", "ys")
    assert not recorded.may_share
    tagged = spec(schema).replace("\n", "\n  tags: maybe_aliasing_or_mutating\n", 1)
    assert recording(operator(plan(tagged, text), "f")).may_share


def test_a_kernel_that_is_given_its_result_is_another_overload() -> None:
    told, new = "f(Tensor x) -> Tensor", "g(Tensor x) -> Tensor"
    found = plan(spec(told, more="  meta:\n    like: x\n") + spec(new))
    assert [op.kernels[0].is_overloaded for op in found.operators] == [True, True]


def edges(found, name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The arguments that a node has gradients of, and those that the kernel's go to, in brackets
    where it must be a view."""
    recorded = recording(operator(found, name))
    texts = {EdgeTo.ARGUMENT: "{}", EdgeTo.VIEW: "[{}]", EdgeTo.NOWHERE: ""}
    to = tuple(texts[to].format(parameter) for parameter, to in recorded.edges)
    return tuple(edge.argument for edge in recorded.node.edges), to


def test_what_is_written_to_is_the_first_edge_wherever_it_stands() -> None:
    schema = "f(Tensor x, Tensor(a!) out) -> Tensor(a!)"
    found = plan(spec(schema), formulas(schema, x="grad", out="grad * 2"))
    assert edges(found, "f") == (("out", "x"), ("out", "x"))
    found = plan(spec(schema), formulas(schema, x="grad", out="non_differentiable"))
    assert edges(found, "f") == (("out", "x"), ("[out]", "x"))
    (lost,) = [g for g in recording(operator(found, "f")).node.gradients if g.is_missing]
    assert (lost.edges, lost.is_lost) == ((0,), True)


@pytest.mark.parametrize("first", ["float s", "Tensor[] s", "Tensor s"])
def test_an_in_place_form_may_write_to_another_argument_than_the_first(first: str) -> None:
    new, in_place = f"f({first}, Tensor x) -> Tensor", f"f_({first}, Tensor(a!) x) -> Tensor(a!)"
    found = plan(spec(new) + spec(in_place), formulas(new, x="grad * 2"))
    assert edges(found, "f") == edges(found, "f_") == (("x",), ("x",))
    if first == "Tensor s":
        found = plan(spec(new) + spec(in_place), formulas(new, s="grad", x="grad * 2"))
        assert edges(found, "f") == edges(found, "f_") == (("x", "s"), ("x", "s"))
        found = plan(spec(new) + spec(in_place), formulas(new, s="grad"))
        assert edges(found, "f") == (("x", "s"), ("", "s"))
        assert edges(found, "f_") == (("x", "s"), ("[x]", "s"))


def test_a_view_may_be_written_to_where_one_result_alone_is_differentiable() -> None:
    schema = "f(Tensor(a!) x, Tensor y) -> (Tensor(a!), Tensor)"
    found = plan(spec(schema), formulas(schema, x="grad", y="grad"))
    assert recording(operator(found, "f")).refused.views == ()
    found = plan(spec(schema), formulas(schema, x="grads[0]", y="grads[1]"))
    assert recording(operator(found, "f")).refused.views == ("x",)


def test_what_may_be_missing_and_has_no_gradient_is_saved_aside() -> None:
    schema = "f(Tensor x, Tensor(a!)? buffer=None) -> (Tensor, Tensor(a!))"
    flags = "  output_differentiability: [True, False]\n"
    text = formulas(schema, x="grad * result1").replace("\n", f"\n{flags}", 1)
    recorded = recording(operator(plan(spec(schema), text), "f"))
    assert recorded.overwritten.asides == ("buffer",)
    (saved,) = recorded.saves_after
    assert (saved.origin, saved.source, saved.given) == (SavedFrom.ASIDE, "result1", "buffer")


# Rules of `meta:`, and the text of kernels.


def rule(schema: str, *lines: str) -> str:
    text = spec(schema, more="".join(f"  {line}\n" for line in ("meta:", *lines)))
    (source,) = (file for file in rules.emit(plan(text)) if file.role == "part")
    return source.text


def test_a_condition_of_a_rule_can_ask_for_what_is_not_in_a_list() -> None:
    schema = "f(Tensor x, int n) -> Tensor"
    inside = rule(schema, "  like: x", "  check: n in (1, 2)")
    outside = rule(schema, "  like: x", "  check: n not in (1, 2)")
    assert "negated" not in inside and outside.count("shape::negated(") == 1


def test_the_sides_of_a_conditional_shape_are_sizes() -> None:
    schema = "f(Tensor x, Tensor y, bool flag) -> Tensor"
    text = rule(schema, "  size: x.shape if flag else y.shape", "  dtype: x.dtype")
    assert text.count("shape::sizes(") >= 2
    number = rule(schema, '  size: "[2 if flag else 3]"', "  dtype: x.dtype")
    assert "? c10::SymInt(2) : c10::SymInt(3)" in number


def test_a_result_that_may_be_missing_is_the_argument_where_that_is_given() -> None:
    schema = "f(Tensor x, Tensor(a!)? out=None) -> Tensor(a!)"
    found = plan(spec(schema), formulas(schema, x="grad"))
    (text,) = (file.text for file in autograd.emit(found) if "autograd_f(" in file.text)
    assert re.search(r"(\w+) = given_or\(out, \1\);", text)


def test_what_is_made_a_view_in_place_keeps_its_history() -> None:
    def kept(schema: str, more: str = "") -> bool:
        name = schema.partition("(")[0]
        op = operator(plan(spec(schema, more=more), formulas(schema, x="grad")), name)
        (found,) = recording(op).results
        return found.is_inplace_view

    assert kept("f_(Tensor(a!) x) -> Tensor(a!)", "  tags: inplace_view\n")
    assert not kept("f_(Tensor(a!) x) -> Tensor(a!)")
    assert not kept("f(Tensor x) -> Tensor")


def test_the_out_form_of_a_kernel_that_makes_its_results_runs_it_and_copies() -> None:
    more = "  meta: {like: x}\n  allocates: True\n  autogen: f.out\n"
    found = plan(spec("f(Tensor x) -> Tensor", dispatch="CPU: f", more=more))
    forms = {k.key: k.declared_form for k in operator(found, "f.out").kernels if k.declared_form}
    assert {key: (form.function, str(form.target)) for key, form in forms.items()} == {
        "CompositeExplicitAutograd": ("out_form_of", "f")
    }
    assert not any(k.declared_form for k in operator(found, "f").kernels)


def test_what_a_rule_says_of_results_that_the_kernel_makes() -> None:
    def expected(meta: str, more: str = "") -> tuple[str, ...] | None:
        more = f"  meta: {{{meta}}}\n{more}"
        (op,) = plan(spec("f(Tensor x) -> Tensor", dispatch="CPU: f", more=more)).operators
        found = next(k for k in op.kernels if k.key == "CPU").expected
        return None if found is None else found.results

    assert expected("check: [x.dim == 1]") == ()
    assert expected("like: x", "  allocates: True\n") == ("out",)
    assert expected("like: x") is None  # the kernel is given it
    assert kernel("f(Tensor x) -> Tensor", "CPU: f").expected is None


def test_an_operator_with_a_rule_returns_what_it_writes_to_in_its_place() -> None:
    def returned(schema: str, name: str, more: str = "") -> set[tuple[str | int, ...]]:
        more = f"  meta: {{like: x}}\n{more}"
        op = operator(plan(spec(schema, dispatch="CPU: f", more=more)), name)
        return {k.structured.returned for k in op.kernels if k.structured}

    assert returned("f(Tensor x) -> Tensor", "f") == {()}
    assert returned("f(Tensor x) -> Tensor", "f.out", "  autogen: f.out\n") == {()}
    mixed = "f(Tensor x, Tensor(a!) state) -> (Tensor(a!), Tensor)"
    assert returned(mixed, "f") == {("state", 0)}


def test_sizes_are_told_by_values_only_where_the_word_stands() -> None:
    def is_given_results(size: str) -> bool:
        more = f"  meta: {{size: '{size}', dtype: a.dtype}}\n"
        (op,) = plan(spec("f(Tensor a, int b) -> Tensor", dispatch="CPU: f", more=more)).operators
        return next(k for k in op.kernels if k.key == "CPU").structured is not None

    assert is_given_results("[b, a.dim]")
    assert not is_given_results("[b, dynamic]")


def test_the_old_value_is_kept_for_what_reads_it_only() -> None:
    def originals(gradient: str, tangent: str) -> tuple[str, ...]:
        text = spec("f_(Tensor(a!) self) -> Tensor(a!)")
        lines = formulas("f_(Tensor(a!) self) -> Tensor(a!)", self=gradient, result=tangent)
        return recording(operator(plan(text, lines), "f_")).overwritten.originals

    assert originals("grad * 2", "self_t * 2") == ()
    assert originals("grad * result", "self_t * result") == ()
    assert originals("grad * self", "self_t * 2") == ("self",)
    assert originals("grad * 2", "self_t * original_self_p") == ("self",)


def test_what_has_no_gradient_has_no_tangent_in_formulas_of_tangents() -> None:
    schema = "f(Tensor x, Tensor y, Tensor? w, int n) -> Tensor"
    lines = formulas(schema, x="grad", y="non_differentiable", result="g(x_t, y, w, n, result)")
    (op,) = plan(spec(schema), lines).operators
    (tangent,) = recording(op).tangents
    assert tangent.expression == "g(x_t, without_tangent(y), w, n, result)"


def test_what_is_read_beside_what_is_written_is_kept_for_tangents() -> None:
    def reads(schema: str, tangent: str, more: str = "") -> tuple[str, ...]:
        text = spec(schema, more=more)
        lines = formulas(schema, x="grad * y", y="grad * 2", result=tangent)
        op = operator(plan(text, lines), schema.partition("(")[0])
        return recording(op).overwritten.read

    both = "x_t * y_p + original_x_p * y_t"
    assert reads("f_(Tensor(a!) x, Tensor y) -> Tensor(a!)", both) == ("y",)
    assert reads("f_(Tensor(a!) x, Tensor y) -> Tensor(a!)", "x_t + y_t * 2") == ()
    for written in ("x_t.mul_(2).add_(y_t)", "x_t_raw.add_(y_t_raw)", "add_out(x_t, x_t, y_t)"):
        assert reads("f_(Tensor(a!) x, Tensor y) -> Tensor(a!)", written) == ("y",)
    assert reads("f(Tensor x, Tensor y) -> Tensor", "x_t * y_p + x_p * y_t") == ()
    beside = "f(Tensor x, Tensor y, Tensor(a!) seen) -> Tensor"
    assert reads(beside, "x_t * y_p + x_p * y_t") == ("x", "y")


def test_the_table_says_what_differentiates_by_a_kernel_of_its_own() -> None:
    def has_own(dispatch: str, lines: str | None = None) -> bool:
        (file,) = operator_table.emit(plan(spec("f(Tensor x) -> Tensor", dispatch=dispatch), lines))
        (entry,) = json.loads(file.text)["operators"]
        return entry["own_autograd"]

    schema = "f(Tensor x) -> Tensor"
    assert not has_own("CPU: f") and not has_own("CPU: f", formulas(schema, x="grad"))
    assert has_own("CPU: f, Autograd: g") and has_own("CPU: f, AutogradCUDA: g")
    keyed = f"- name: {schema}\n  dispatch: {{AutogradCPU: {{x: grad}}}}\n"
    assert has_own("CPU: f", keyed)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2", 2), ("2.5", 2.5), ("True", True), ("2j", {"complex": [0.0, 2.0]}),
        ("1.5-2j", {"complex": [1.5, -2.0]}), ("-1+0.5j", {"complex": [-1.0, 0.5]}),
        ("False", False), ("true", True),
    ],
)  # fmt: skip
def test_a_number_of_a_sample_is_read(text: str, value: object) -> None:
    more = f"  samples: [{{x: [3], s: {text}}}]\n"
    (op,) = plan(spec("f(Tensor x, Scalar s) -> Tensor", more=more)).operators
    assert [sample["s"] for sample in op.samples] == [value]
