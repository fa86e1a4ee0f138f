# SPDX-License-Identifier: BSD-3-Clause
"""derivatives_<topic>.cpp: the definitions of the derivative helpers that formulas call."""

from __future__ import annotations

from collections.abc import Iterator

from ..cpp.template import fill
from ..output import File, banner
from ..plan.library import Plan

_SOURCE = """
$banner
#include <torchext/precompiled.h>
#include <torchext/derivatives/$topic-inl.h>
"""


def emit(plan: Plan) -> Iterator[File]:
    """A source for each topic of helpers."""
    for topic in plan.helper_topics:
        text = fill(_SOURCE, banner=banner(__name__, plan.specs), topic=topic)
        yield File(f"src/derivatives_{topic}.cpp", text, "source")
