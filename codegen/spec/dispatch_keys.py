# SPDX-License-Identifier: BSD-3-Clause
"""The dispatch keys of c10 and the facts about them that registration depends on."""

from __future__ import annotations

BACKENDS = (
    "CPU CUDA HIP XLA MTIA MPS IPU XPU HPU VE Lazy MAIA Meta PrivateUse1 PrivateUse2 PrivateUse3"
).split()
# Functionalities that c10 multiplies with every backend: SparseCPU, QuantizedCUDA, ...
FUNCTIONALITIES = ("", "Sparse", "SparseCsr", "Quantized", "NestedTensor", "Autograd")
COMPOSITE_KEYS = (
    "CompositeImplicitAutograd",
    "CompositeImplicitAutogradNestedTensor",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
)
_OTHER_KEYS = (
    "ADInplaceOrView Autograd AutogradFunctionality AutogradNestedTensor AutogradOther Autocast "
    "AutocastCPU AutocastCUDA AutocastHPU AutocastIPU AutocastMAIA AutocastMPS AutocastMTIA "
    "AutocastPrivateUse1 AutocastXLA AutocastXPU BackendSelect Batched BatchedNestedTensor "
    "Conjugate CustomRNGKeyId FPGA FuncTorchBatched FuncTorchBatchedDecomposition "
    "FuncTorchDynamicLayerBackMode FuncTorchDynamicLayerFrontMode FuncTorchGradWrapper "
    "FuncTorchVmapMode Functionalize Metal MkldnnCPU Named Negative PreDispatch Python "
    "PythonDispatcher PythonTLSSnapshot Tracer VmapMode Vulkan ZeroTensor"
).split()

DISPATCH_KEYS = frozenset(
    [f + b for f in FUNCTIONALITIES for b in BACKENDS] + [*COMPOSITE_KEYS, *_OTHER_KEYS]
)

# Keys of tensors whose memory only their own kernels can read.
_OPAQUE_KEYS = frozenset({"MkldnnCPU", "Vulkan", "Metal", "FPGA"})
# Keys whose kernels run below autograd, one for each functionality and backend, and opaque ones.
BACKEND_KEYS = frozenset(f + b for f in FUNCTIONALITIES[:-1] for b in BACKENDS) | _OPAQUE_KEYS
# Keys whose kernels compute, or are made of operators that do: batches may be of these too.
COMPUTING_KEYS = BACKEND_KEYS.union(COMPOSITE_KEYS, ["FuncTorchBatchedDecomposition"])
# Backends of one device only, whose kernels need no device guard and no same-device check.
_UNGUARDED_BACKENDS = ("CPU", "Meta", "Lazy", "XLA")


def is_guarded(key: str) -> bool:
    """Whether kernels of this key run on one of several devices, so that a guard must select it."""
    is_plain = key in BACKEND_KEYS and key not in _OPAQUE_KEYS
    return is_plain and not key.endswith(_UNGUARDED_BACKENDS)


def is_strided(key: str) -> bool:
    """Whether kernels of this key run below autograd on tensors that have strides."""
    return key in BACKEND_KEYS - _OPAQUE_KEYS and not key.startswith("Sparse")


def needs_cuda(key: str) -> bool:
    """Whether kernels of this key are compiled only where CUDA is."""
    return key in BACKEND_KEYS and key.endswith("CUDA")
