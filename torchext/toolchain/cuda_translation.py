# SPDX-License-Identifier: BSD-3-Clause
"""CUDA's C++ as ordinary C++: what no header can give another meaning.

    kernel<<<grid, block>>>(x)         a call of what runs it (cuda_launches)
    __shared__ float tile[32][33];     a reference to a variable of the block (cuda_shared)
    extern __shared__ char bytes[];    a pointer to what the launch gives the block
    __launch_bounds__(256)             a check of the block's size (cuda_kernels)
    while (true) {}                    a loop whose rounds are counted (cuda_loops)
    at::kCUDA, x.is_cuda()             at::kPrivateUse1, x.is_privateuseone(): the test device's

A line stays the line that it was, so that what a compiler or the machine says of it is right.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from .cuda_kernels import rewrite_kernels
from .cuda_launches import rewrite_launches
from .cuda_loops import rewrite_loops
from .cuda_shared import rewrite_shared
from .cuda_tokens import (
    KEYWORDS,
    NAMESPACE,
    Token,
    TranslationError,
    behind,
    mark_directives,
    matching,
    previous,
    text_at,
    tokens_of,
)

# Of the device and of the compiler, by what they are called here. The compiler's are read by
# torch's plain headers too, which must take the compiler for what it is.
_RENAMED = {
    "CUDA": "PrivateUse1",
    "kCUDA": "kPrivateUse1",
    "is_cuda": "is_privateuseone",
    "AutocastCUDA": "AutocastPrivateUse1",
    "AutogradCUDA": "AutogradPrivateUse1",
    "__CUDACC__": "TORCHEXT_CUDACC",
    "__NVCC__": "TORCHEXT_CUDACC",
    "__CUDA_ARCH__": "TORCHEXT_CUDA_ARCH",
}
# The variables of a thread, which are functions here.
_VARIABLES = {
    "threadIdx": f"{NAMESPACE}::thread_index()",
    "blockIdx": f"{NAMESPACE}::block_index()",
    "blockDim": f"dim3({NAMESPACE}::block_size())",
    "gridDim": f"dim3({NAMESPACE}::grid_size())",
    "warpSize": f"static_cast<int>({NAMESPACE}::kWarpSize)",
}
# What no processor of the host has, by the name that a library writes.
_REFUSED = {
    "wmma": "tensor cores (nvcuda::wmma)",
    "mma_sync": "tensor cores (mma_sync)",
    "__pipeline_memcpy_async": "asynchronous copies (cuda_pipeline.h)",
    "CUtensorMap": "the tensor memory accelerator (CUtensorMap)",
    "cudaTextureObject_t": "textures (cudaTextureObject_t)",
    "cudaSurfaceObject_t": "surfaces (cudaSurfaceObject_t)",
    "cudaStreamBeginCapture": "CUDA graphs (cudaStreamBeginCapture)",
    "cudaGraphLaunch": "CUDA graphs (cudaGraphLaunch)",
}
# Headers, and folders of such, whose contents no kernel on the host can use. Pairs and tuples of
# Thrust are there.
_REFUSED_HEADERS = {
    "mma.h": "tensor cores (mma.h)",
    "cutlass": "CUTLASS",
    "cute": "CUTLASS",
    "thrust": "Thrust",
    "cub": "CUB",
    "cuda/barrier": "asynchronous barriers (cuda/barrier)",
    "cuda/atomic": "atomics of libcu++ (cuda/atomic; atomicAdd and its kin can)",
    "cuda/std/atomic": "atomics of libcu++ (cuda/std/atomic; atomicAdd and its kin can)",
    "cuda/std/barrier": "asynchronous barriers (cuda/std/barrier)",
    "cuda/ptx": "inline PTX (cuda/ptx)",
    "cuda/pipeline": "asynchronous copies (cuda/pipeline)",
    "cuda_pipeline.h": "asynchronous copies (cuda_pipeline.h)",
    "nvrtc.h": "compiling at run time (nvrtc.h)",
    "cufft.h": "cuFFT",
    "cufftXt.h": "cuFFT",
    "cudnn.h": "cuDNN",
    "nccl.h": "NCCL",
    "cuda_fp4.h": "numbers of 4 bits (cuda_fp4.h)",
    "cuda_fp6.h": "numbers of 6 bits (cuda_fp6.h)",
    "cuda_awbarrier.h": "asynchronous barriers (cuda_awbarrier.h)",
    "texture_indirect_functions.h": "textures",
    "surface_indirect_functions.h": "surfaces",
    "cusolverSp.h": "cuSOLVER",
    "npp.h": "NPP",
    "nvjpeg.h": "nvJPEG",
}

# Instructions of PTX that libraries write because C++ has no name for them, and what they are here.
_INSTRUCTIONS = {
    "%laneid;": "lane",
    "%lanemask_lt;": "lanes_below",
    "%lanemask_le;": "lanes_up_to_own",
    "%lanemask_gt;": "lanes_above",
    "%lanemask_ge;": "lanes_from_own",
    "%lanemask_eq;": "own_lane",
    "bfe.u32 ": "extracted_bits",
    "bfe.u64 ": "extracted_bits",
    "bfi.b32 ": "inserted_bits",
    "bfi.b64 ": "inserted_bits",
}

# Which of these there are all the same, in csrc/testing/cuda_on_host/include.
PROVIDED_HEADERS = frozenset(
    "thrust/tuple.h thrust/pair.h cub/cub.cuh cub/block/block_reduce.cuh cub/block/block_scan.cuh "
    "cub/block/block_load.cuh cub/block/block_store.cuh cub/thread/thread_operators.cuh "
    "cub/warp/warp_reduce.cuh cub/warp/warp_scan.cuh".split()
)

_SPECIFIERS = frozenset(
    "inline static extern constexpr explicit virtual friend __global__ __device__ __host__ "
    "__forceinline__ __inline__ C10_HOST_DEVICE C10_DEVICE C10_HOST".split()
)
_INLINE = frozenset(("inline", "__inline__", "__forceinline__"))


@dataclass(frozen=True)
class Translation:
    """The C++ of a file."""

    text: str
    arrays: frozenset[str]  # of dynamic shared memory, that it or what it includes declares


def translation(code: str, path: str, arrays: Collection[str] = ()) -> Translation:
    """The C++ of a .cu or .cuh file, or of a header that one includes; `path` for messages,
    `arrays` those that the files which it includes declare.

    Raises TranslationError for what the host cannot run.
    """
    tokens = list(tokens_of(code))
    mark_directives(tokens)
    _refuse(tokens, path)
    _rename(tokens)
    _drop_second_inlines(tokens)
    rewrite_kernels(tokens)
    found = rewrite_shared(tokens, path, arrays)
    rewrite_launches(tokens, path)
    rewrite_loops(tokens)
    return Translation("".join(token.ahead + token.text for token in tokens), found)


def translated(code: str, path: str) -> str:
    """The text of `translation`, of a file on its own."""
    return translation(code, path).text


def includes(code: str) -> Iterator[tuple[int, int, str, bool]]:
    """What a file includes: where the name stands between its signs, the name, and whether these
    are quotes."""
    for found in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', code, re.M):
        group = 1 if found[1] else 2
        yield found.start(group), found.end(group), found[group], group == 1


def _refuse(tokens: list[Token], path: str) -> None:
    """Turn what the host has not into an error where it is included or run, or raise it."""
    for index, token in enumerate(tokens):
        if token.kind == "name" and token.text in _REFUSED:
            what = _REFUSED[token.text]
            raise TranslationError(f"{path}:{token.line}: {what} cannot run on the host")
        if token.kind == "name" and token.text in ("asm", "__asm__", "__asm"):
            _replace_assembly(tokens, index)
        if token.text == "#":
            _refuse_header(tokens, index)


def _replace_assembly(tokens: list[Token], index: int) -> None:
    """What one instruction does that only reads a register or moves bits, as a call; an error of
    the thread that runs it for any other."""
    start = behind(tokens, index)
    while text_at(tokens, start) in ("volatile", "__volatile__"):
        start = behind(tokens, start)
    if text_at(tokens, start) != "(":
        return
    end = matching(tokens, start)
    inside = tokens[start + 1 : end]
    instruction = "".join(t.text[1:-1] for t in inside if t.kind == "text" and len(t.text) > 8)
    name = next((n for words, n in _INSTRUCTIONS.items() if words in instruction), None)
    operands = _operands(inside)
    lines = [t.text for t in tokens[index : end + 1] if t.kind == "space" and "\n" in t.text]
    for token in tokens[index : end + 1]:
        token.text = ""
    if name is None or not operands:
        call = f'{NAMESPACE}::fail("has inline PTX, which cannot run on the host")'
    else:
        call = f"{operands[0]} = {NAMESPACE}::{name}({', '.join(operands[1:])})"
    tokens[index].text = call + "".join(lines)


def _operands(tokens: list[Token]) -> list[str]:
    """The expressions in the brackets behind constraints: the result, then what it is made of."""
    found = []
    for index, token in enumerate(tokens):
        is_behind_text = index > 0 and tokens[previous(tokens, index)].kind == "text"
        if token.text == "(" and is_behind_text:
            inside = tokens[index + 1 : matching(tokens, index)]
            found.append("".join(t.text for t in inside if t.kind != "comment"))
    return found


def _refuse_header(tokens: list[Token], index: int) -> None:
    word = behind(tokens, index)
    if text_at(tokens, word) != "include":
        return
    part = tokens[index].part
    end = next((i for i in range(word, len(tokens)) if tokens[i].part != part), len(tokens))
    name = "".join(t.text for t in tokens[word + 1 : end] if t.is_solid).strip('<>"')
    for refused, what in _REFUSED_HEADERS.items():
        is_refused = name == refused or name.startswith(f"{refused}/")
        if is_refused and name not in PROVIDED_HEADERS:
            tokens[word].text = f'error "{what} cannot run on the host"'
            for token in tokens[word + 1 : end]:
                token.text = ""


def _rename(tokens: list[Token]) -> None:
    own: dict[str, int] = {}  # names of a thread's variables that the code declares -> how deep
    depth = 0
    for index, token in enumerate(tokens):
        if token.text in ("{", "}"):
            depth += 1 if token.text == "{" else -1
            own = {name: at for name, at in own.items() if at <= depth}
        if token.kind != "name":
            continue
        token.text = _RENAMED.get(token.text, token.text)
        before = previous(tokens, index)
        ahead = tokens[before] if before >= 0 else Token("sign", ";", 0)
        if token.text == "cuda" and ahead.text in (".", "->"):
            _move_to_device(tokens, index)
        if token.text == "__noinline__" and ahead.text != "(":
            token.text = "__attribute__((noinline))"
        if token.text not in _VARIABLES:
            continue
        if ahead.text == "::" and not _is_behind_a_name(tokens, before):
            token.text, ahead.text = _VARIABLES[token.text], ""
        if ahead.text in (".", "->", "::", ""):
            continue
        is_type = ahead.kind == "name" and ahead.text not in KEYWORDS
        is_parameter = text_at(tokens, behind(tokens, index)) in (",", ")")
        if is_type or ahead.text == "&" and is_parameter and _is_behind_a_name(tokens, before):
            own[token.text] = depth + is_parameter  # which belongs to the body
        if token.text not in own:
            token.text = _VARIABLES[token.text]


def _move_to_device(tokens: list[Token], index: int) -> None:
    """`x.cuda()`, of a tensor or of options."""
    start = behind(tokens, index)
    end = behind(tokens, start) if text_at(tokens, start) == "(" else len(tokens)
    if text_at(tokens, end) == ")":
        tokens[index].text = "to"
        tokens[end].ahead = "::c10::Device(::c10::DeviceType::PrivateUse1)"


def _is_behind_a_name(tokens: list[Token], index: int) -> bool:
    """Whether the sign at `index` stands behind the name of a namespace or type."""
    before = previous(tokens, index)
    return before >= 0 and (tokens[before].is_word or tokens[before].text == ">")


def _drop_second_inlines(tokens: list[Token]) -> None:
    """`__forceinline__` is `inline` and more, which a declaration may say once."""
    seen: Token | None = None
    for token in tokens:
        if not token.is_solid:
            continue
        if token.text not in _INLINE:
            seen = seen if token.text in _SPECIFIERS else None
        elif seen is None:
            seen = token
        else:
            is_strong = "__forceinline__" in (seen.text, token.text)
            seen.text, token.text = "__forceinline__" if is_strong else "inline", ""
