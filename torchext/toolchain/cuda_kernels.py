# SPDX-License-Identifier: BSD-3-Clause
"""What is said of kernels beside their launches.

__global__ void __launch_bounds__(256) k() {     the same, and { check_launch_bounds(256);
cudaLaunchKernel((void*)k, grid, ...)            cudaLaunchKernel(k, grid, ...)
"""

from __future__ import annotations

from .cuda_tokens import CLOSING, NAMESPACE, Token, behind, matching, text_at

_BOUNDS = frozenset(
    "__launch_bounds__ C10_LAUNCH_BOUNDS_1 C10_LAUNCH_BOUNDS_2 C10_LAUNCH_BOUNDS".split()
)
# What launches a kernel by its address, and which argument that is.
_BY_ADDRESS = {
    "cudaLaunchKernel": 0,
    "cudaLaunchCooperativeKernel": 0,
    "cudaLaunchKernelExC": 1,
}
_CASTS = ("reinterpret_cast", "static_cast")


def rewrite_kernels(tokens: list[Token]) -> None:
    """Have definitions check their bounds, and take casts to void* from kernels' addresses."""
    for index, token in enumerate(tokens):
        start = behind(tokens, index)
        if token.kind != "name" or text_at(tokens, start) != "(":
            continue
        if token.text in _BOUNDS:
            _check_bounds(tokens, start)
        elif token.text in _BY_ADDRESS:
            _drop_cast(tokens, _argument(tokens, start, _BY_ADDRESS[token.text]))


def _check_bounds(tokens: list[Token], start: int) -> None:
    """Put a check behind the bracket in which the body begins that follows the bounds."""
    end = matching(tokens, start)
    comma = _argument(tokens, start, 1)
    if end < 0:
        return
    threads = tokens[start + 1 : end if comma < 0 else comma]
    if comma >= 0:
        threads = threads[: max(i for i, t in enumerate(threads) if t.text == ",")]
    text = " ".join("".join(t.ahead + t.text for t in threads if t.kind != "comment").split())
    if not text or text.count("<") != text.count(">"):  # the comma was between template arguments
        return
    place = behind(tokens, end)
    while place < len(tokens) and text_at(tokens, place) not in ("{", ";", "="):
        if tokens[place].text in CLOSING:
            place = matching(tokens, place)
            if place < 0:
                return
        place = behind(tokens, place)
    if text_at(tokens, place) == "{" and place + 1 < len(tokens):
        tokens[place + 1].ahead = f" {NAMESPACE}::check_launch_bounds({text});" + (
            tokens[place + 1].ahead
        )


def _argument(tokens: list[Token], start: int, number: int) -> int:
    """Where an argument of a call begins whose bracket is at `start`; -1 where it has fewer."""
    place = behind(tokens, start)
    while number > 0:
        text = text_at(tokens, place)
        if text in CLOSING:
            place = matching(tokens, place)
        if place < 0 or place >= len(tokens) or text == ")":
            return -1
        number -= text == ","
        place = behind(tokens, place)
    return place


def _drop_cast(tokens: list[Token], start: int) -> None:
    """Empty the cast to a pointer to void that begins there, if one does."""
    is_named = text_at(tokens, start) in _CASTS
    opening = behind(tokens, start) if is_named else start
    if start < 0 or text_at(tokens, opening) != ("<" if is_named else "("):
        return
    places, place = [start, opening], behind(tokens, opening)
    while text_at(tokens, place) in ("const", "void", "*"):
        places.append(place)
        place = behind(tokens, place)
    words = [tokens[i].text for i in places[2:]]
    if text_at(tokens, place) == (">" if is_named else ")") and {"void", "*"} <= set(words):
        for i in [*places, place]:
            tokens[i].text = ""
