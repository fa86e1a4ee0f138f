# SPDX-License-Identifier: BSD-3-Clause
"""What context managers refuse to decorate."""

from __future__ import annotations

import inspect
from collections.abc import Callable


def refuse_what_goes_on(function: Callable, context: str) -> None:
    """Raise TypeError for a function that goes on after its call has returned, and the context
    has ended."""
    for goes_on in (
        inspect.isgeneratorfunction,
        inspect.iscoroutinefunction,
        inspect.isasyncgenfunction,
    ):
        if goes_on(function):
            raise TypeError(f"{context} decorates no generator or coroutine: write `with` in it")
