# SPDX-License-Identifier: BSD-3-Clause
"""Reads compiler and linker errors and names the kernels that are missing or have other types.

The generated header declares every kernel, and a kernel is defined by its qualified name. So
another signature is an error at the definition (g++, clang and nvcc each say it their own way), and
a missing kernel is an undefined reference at link time.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

# what compilers say of a definition that no declaration fits, or one of another return type
_COMPILE_ERROR = re.compile(
    r"no declaration matches|should have been declared inside|ambiguating new declaration"
    r"|out-of-line definition|differ only in their return type"
    r"|no instance of overloaded function .* matches|declaration is incompatible"
    r"|cannot overload functions distinguished by return type"
)
# what they say of a function that nothing in its namespace is called like
_UNKNOWN = re.compile(
    r"(?P<g_space>\w+(?:::\w+)*)::(?P<g_name>\w+)\(.*should have been declared inside"
    r"|out-of-line definition of '(?P<clang_name>\w+)'.*namespace '(?P<clang_space>[\w:]+)'"
    r"|namespace \"(?P<nvcc_space>[\w:]+)\" has no member \"(?P<nvcc_name>\w+)\""
)
_LINK_ERROR = re.compile(r"undefined reference to|undefined symbol|isn't defined")
_DIFFERS = "is defined with other types than its schema asks for"
_PYTHON = re.compile(r"(?:undefined reference to|undefined symbol:?) [`']?_?Py[A-Z_]")
_WITHOUT_PYTHON = (
    "error: a source file needs Python, which an operator library does not link: include "
    "<torch/torch.h>, <torch/library.h> or ATen's headers in place of <torch/extension.h> and "
    "<torch/python.h>\n"
)
_MISSING = "is not defined: no source file has a function of this name and these types"


def explain(text: str, kernels: list[dict]) -> str:
    """Return a block of text for each kernel that the errors in `text` name, or ""."""
    link_errors = [line for line in text.splitlines() if _LINK_ERROR.search(line)]
    compile_errors = [line for line in text.splitlines() if _COMPILE_ERROR.search(line)]
    blocks = [_WITHOUT_PYTHON] if any(map(_PYTHON.search, link_errors)) else []
    # The forms of an operator share a kernel: the first one is named.
    functions = {(k["name"], k["prototype"]): k for k in reversed(kernels)}
    for kernel in reversed(functions.values()):
        mentioned = _mention(kernel["name"])
        if any(mentioned(line) for line in compile_errors if line not in link_errors):
            blocks.append(_block(kernel, _DIFFERS))
        elif any(mentioned(line) for line in link_errors):
            blocks.append(_block(kernel, _MISSING))
    return "\n".join([*blocks, *_unknown(text, kernels)])


def _unknown(text: str, kernels: list[dict]) -> Iterator[str]:
    """A block for each function beside the kernels that is called like none of them."""
    places = {kernel["name"]: kernel["location"] for kernel in reversed(kernels)}
    spaces = {name.rpartition("::")[0] for name in places}
    found: dict[str, None] = {}
    for match in _UNKNOWN.finditer(text):
        parts = match.groupdict()
        for compiler in ("g", "clang", "nvcc"):
            space, function = parts[f"{compiler}_space"], parts[f"{compiler}_name"]
            if space in spaces and f"{space}::{function}" not in places:
                found[f"{space}::{function}"] = None
    for name in found:
        yield f"error: no entry names a kernel {name}\n"
        for near in difflib.get_close_matches(name, places, n=1):
            yield f"  did you mean '{near.rpartition('::')[2]}', of {places[near]}?\n"


def _mention(name: str):
    """Return a test whether a line names this kernel, and not one whose name merely contains it."""
    namespace, _, function = name.rpartition("::")
    qualified = re.compile(rf"(?<![\w:]){re.escape(name)}(?!\w)")
    # clang names function and namespace apart: out-of-line definition of 'mul_cpu' ... in
    # namespace 'myns::native'
    apart = re.compile(rf"'{re.escape(function)}'.*'{re.escape(namespace)}'")
    return lambda line: bool(qualified.search(line) or apart.search(line))


def _block(kernel: dict, what: str) -> str:
    return (
        f"error: kernel {kernel['name']} {what}\n"
        f"  expected: {kernel['prototype']}\n"
        f"  schema:   {kernel['schema']}\n"
        f"  declared: {kernel['location']}\n"
    )
