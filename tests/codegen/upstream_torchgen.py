# SPDX-License-Identifier: BSD-3-Clause
"""What torchgen reads from the native_functions.yaml of the torch wheel, as plain values."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import torchgen
from torchgen.api.types import NativeSignature
from torchgen.context import native_function_manager
from torchgen.dest.register_dispatch_key import RegisterDispatchKey
from torchgen.gen import ParsedYaml, get_grouped_by_view_native_functions, parse_native_yaml
from torchgen.model import BackendIndex, NativeFunction, NativeFunctionsViewGroup, OperatorName
from torchgen.native_function_generation import pre_group_native_functions
from torchgen.selective_build.selector import SelectiveBuilder
from torchgen.utils import Target

NATIVE = Path(torchgen.__file__).parent / "packaged" / "ATen" / "native"
NATIVE_FUNCTIONS = NATIVE / "native_functions.yaml"


@dataclasses.dataclass(frozen=True)
class Function:
    """A C++ function: its types in one spelling, see `spelling`."""

    name: str
    result: str
    parameters: tuple[tuple[str, str], ...]  # type and name


@dataclasses.dataclass(frozen=True)
class Wrapper:
    """What runs before a device kernel."""

    checked: frozenset[str]  # parameters that must be on one device
    guarded: str | None  # the parameter whose device is selected


def spelling(cpp: str) -> str:
    """The C++ text with spaces only where they part words."""
    return re.sub(r"\s*([^\w\s]+)\s*", r"\1", " ".join(cpp.split()))


@cache
def parsed(spec: Path = NATIVE_FUNCTIONS) -> ParsedYaml:
    """The functions of the file with those that torchgen derives from its entries."""
    return parse_native_yaml(str(spec), str(NATIVE / "tags.yaml"))


def is_generated(function: NativeFunction) -> bool:
    """Whether torchgen derived it, so that it has no entry of its own."""
    return "generated" in function.tags


def entries(spec: Path = NATIVE_FUNCTIONS) -> list[NativeFunction]:
    """The functions that have an entry of their own."""
    return [f for f in parsed(spec).native_functions if not is_generated(f)]


def implicit_autogen() -> set[OperatorName]:
    """What `autogen:` declares where all forms are CompositeImplicit; torchgen makes none of it."""
    groups = pre_group_native_functions(entries()).values()
    implicit = [
        group
        for group in groups
        if all(f.has_composite_implicit_autograd_kernel for f in group.values())
        and not any("core" in f.tags for f in group.values())
    ]
    names = {name for group in implicit for f in group.values() for name in f.autogen}
    return names - {f.func.name for f in entries()}


def view_forms() -> set[str]:
    """The scatter form of every view that is more than a composition, and the copy of those that
    have none; torchgen declares the others by hand."""
    names = {str(f.func.name) for f in parsed().native_functions}
    found = set()
    for group in get_grouped_by_view_native_functions(parsed().native_functions):
        if not isinstance(group, NativeFunctionsViewGroup) or is_composition(group.view):
            continue
        base, _, overload = str(group.view.func.name).partition(".")
        scatter = f"{base}_scatter.{overload}".rstrip(".")
        if scatter in names:
            scatter += "1" if overload else ".generated1"
        found.add(scatter)
        if group.view_copy is None or group.view_copy.func.name.name.base != f"{base}_copy":
            found.add(f"{base}_copy.{overload}".rstrip("."))
    return found


def is_composition(function: NativeFunction) -> bool:
    """Whether every backend runs its parts, or it is registered by hand."""
    if function.manual_kernel_registration:
        return True
    indices = parsed().backend_indices
    kernels = [i.get_kernel(function) for k, i in indices.items() if "Composite" not in str(k)]
    return function.has_composite_implicit_autograd_kernel and not any(kernels)


def kernels(spec: Path = NATIVE_FUNCTIONS) -> Iterator[tuple[NativeFunction, BackendIndex]]:
    """Every unstructured kernel that an entry's `dispatch:` names, or its absence implies."""
    for function in entries(spec):
        if function.manual_kernel_registration:
            continue
        for index in parsed(spec).backend_indices.values():
            metadata = index.get_kernel(function)
            if metadata is not None and not metadata.structured:
                yield function, index


def kernel_function(function: NativeFunction, index: BackendIndex, namespace: str) -> Function:
    """The kernel as a library for `namespace` has it, with torchgen's native signature."""
    metadata = index.get_kernel(function)
    assert metadata is not None
    with native_function_manager(function):
        signature = NativeSignature(function.func, symint=metadata.supports_symint())
        space = re.sub(r"^at\b", namespace, metadata.cpp_namespace)
        return Function(
            f"{space}::{metadata.kernel}",
            spelling(signature.returns_type().cpp_type()),
            tuple((spelling(a.type), a.name) for a in signature.arguments()),
        )


def wrapper(function: NativeFunction, index: BackendIndex, *, guarded: bool) -> Wrapper:
    """What torchgen puts before the kernel; guarded: as if its key needed device guards."""
    generator = RegisterDispatchKey(
        dataclasses.replace(index, device_guard=guarded),
        Target.ANONYMOUS_DEFINITION,
        SelectiveBuilder.get_nop_selector(),
        rocm=False,
        symint=True,
        class_method_name=None,
        skip_dispatcher_op_registration=False,
    )
    text = generator.gen_unstructured(function)
    assert text is not None
    checked = re.findall(r"check_and_update_common_device\(common_device, (\w+),", text)
    guard = re.search(r"device_guard\((?:device_of|device_or_default)\((\w+)\)\);", text)
    return Wrapper(frozenset(checked), guard.group(1) if guard else None)
