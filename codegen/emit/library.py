# SPDX-License-Identifier: BSD-3-Clause
"""library.h and library.cpp: the object through which a library registers everything."""

from __future__ import annotations

from collections.abc import Iterator

from ..cpp.template import fill
from ..output import File, banner
from ..plan.library import Plan

_HEADER = """
$banner
#pragma once

#include <torchext/generated/library.h>

namespace torchext::generated::$namespace {

/// What this shared object registers in namespace `$namespace`.
OperatorLibrary& library();

} // namespace torchext::generated::$namespace
"""

_SOURCE = """
$banner
#include <$namespace/library.h>
#include <torchext/generated/compile_cache.h>

TORCHEXT_DEFINE_LIBRARY($namespace);
TORCHEXT_TAG_COMPILE_CACHE($namespace);
"""


def emit(plan: Plan) -> Iterator[File]:
    """The declaration of the library object, and its definition with the exported error report."""
    values = {"banner": banner(__name__, plan.specs), "namespace": plan.namespace}
    yield File(f"include/{plan.namespace}/library.h", fill(_HEADER, **values), "header")
    yield File("src/library.cpp", fill(_SOURCE, **values), "part")
