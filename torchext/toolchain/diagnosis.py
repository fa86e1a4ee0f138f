# SPDX-License-Identifier: BSD-3-Clause
"""Reads compiler and linker errors and names the kernels that are missing or have other types.

The generated header declares every kernel, and a kernel is defined by its qualified name. So
another signature is an error at the definition (g++, clang and nvcc each say it their own way), and
a missing kernel is an undefined reference at link time.
"""

from __future__ import annotations

import re

# what compilers say of a definition that no declaration fits, or one of another return type
_COMPILE_ERROR = re.compile(
    r"no declaration matches|should have been declared inside|ambiguating new declaration"
    r"|out-of-line definition|differ only in their return type"
    r"|no instance of overloaded function .* matches|declaration is incompatible"
    r"|cannot overload functions distinguished by return type"
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
    return "\n".join(blocks)


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
