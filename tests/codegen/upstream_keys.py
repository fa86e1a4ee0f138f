# SPDX-License-Identifier: BSD-3-Clause
"""For every key of native_functions.yaml an entry without it, and what the key is then set to."""

from __future__ import annotations

from typing import Any

from upstream_specs import Entry

_PLAIN: Entry = {
    "func": "op(Tensor self, int n=1) -> Tensor",
    "dispatch": {"CPU": "op_cpu", "CUDA": "op_cuda"},
}
_WITHOUT_KERNELS: Entry = {"func": "op(Tensor self, int n=1) -> Tensor"}
_INPLACE: Entry = {"func": "op_(Tensor(a!) self) -> Tensor(a!)", "dispatch": {"CPU": "op_cpu_"}}
_OUT: Entry = {
    "func": "op.out(Tensor self, int n, *, Tensor(a!) out) -> Tensor(a!)",
    "dispatch": {"CPU": "op_out_cpu", "SparseCPU": "op_out_sparse"},
}
_STRUCTURED: Entry = {**_OUT, "structured": True}
_DELEGATE: Entry = {"func": "op(Tensor self, int n) -> Tensor", "structured_delegate": "op.out"}
_UFUNC: Entry = {
    "func": _OUT["func"],
    "structured": True,
    "structured_inherits": "TensorIteratorBase",
}

CHANGES: dict[str, tuple[Entry, Any]] = {
    "func": (_PLAIN, "op(Tensor self, int n=2) -> Tensor"),
    "dispatch": (_PLAIN, {"CPU": "op_cpu"}),
    "tags": (_PLAIN, ["core"]),
    "doc": (_PLAIN, "What it does."),
    "pt2_compliant": (_PLAIN, False),
    "differentiable": (_PLAIN, False),
    "complex_autograd": (_PLAIN, False),
    "device_check": (_PLAIN, "NoCheck"),
    "device_guard": (_PLAIN, False),
    "manual_kernel_registration": (_WITHOUT_KERNELS, True),
    "autogen": (_PLAIN, "op.out"),
    "use_const_ref_for_mutable_tensors": (_INPLACE, True),
    "cpp_no_default_args": (_PLAIN, ["n"]),
    "structured": (_OUT, True),
    "structured_delegate": ({"func": "op_(Tensor(a!) self, int n) -> Tensor(a!)"}, "op.out"),
    "structured_inherits": (_STRUCTURED, "TensorIteratorBase"),
    "precomputed": (_STRUCTURED, ["n -> int m"]),
    "ufunc_inner_loop": (_UFUNC, {"Generic": "op (AllAndComplex)"}),
    "autocast": (_PLAIN, "fp32"),
    "vmap": (_PLAIN, "pointwise"),
    "layout": (_PLAIN, {"self": "contiguous"}),
    "pointwise": (_WITHOUT_KERNELS, "self * n"),
    "rows": ({"func": "op(Tensor self, int m=1) -> Tensor"}, "self * sum(self) / m"),
    "let": ({**_WITHOUT_KERNELS, "pointwise": "self * m", "let": {"m": "n"}}, {"m": "n + 1"}),
    "opaque": ({**_WITHOUT_KERNELS, "pointwise": "self * n"}, True),
    "meta": (_PLAIN, {"like": "self"}),
    "allocates": ({**_PLAIN, "meta": {"like": "self"}}, True),
    "dtypes": (_PLAIN, ["Floating"]),
    "samples": (_PLAIN, [{"self": [2, 3]}]),
    "variants": (_PLAIN, "function, method"),
    "python_module": (_PLAIN, "nn"),
    "manual_cpp_binding": (_PLAIN, True),
    "category_override": (_PLAIN, "dummy"),
}
# What stands beside the entry, without the key and with it.
BESIDE: dict[str, tuple[list[Entry], list[Entry]]] = {
    "structured": ([], [_DELEGATE]),
    "structured_delegate": ([_DELEGATE, _STRUCTURED], [_DELEGATE, _STRUCTURED]),
    "structured_inherits": ([_DELEGATE], [_DELEGATE]),
    "precomputed": ([_DELEGATE], [_DELEGATE]),
    "ufunc_inner_loop": ([_DELEGATE], [_DELEGATE]),
}
# Keys that are about derivatives, with formulas for their entry.
FORMULAS = {"complex_autograd": f"- name: {_PLAIN['func']}\n  self: grad * n\n"}
