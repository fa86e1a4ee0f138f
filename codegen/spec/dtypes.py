# SPDX-License-Identifier: BSD-3-Clause
"""The dtypes that specs name: `float32` as torch does, `Float` as c10 does, and groups of them."""

from __future__ import annotations

# torch's name of every dtype of torch 2.11 to 2.14 -> c10's name, a value of c10::ScalarType
SCALAR_TYPES = {
    "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long",
    "float16": "Half", "float32": "Float", "float64": "Double", "bfloat16": "BFloat16",
    "complex32": "ComplexHalf", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
    "bool": "Bool", "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64",
    "float8_e5m2": "Float8_e5m2", "float8_e4m3fn": "Float8_e4m3fn",
    "float8_e5m2fnuz": "Float8_e5m2fnuz", "float8_e4m3fnuz": "Float8_e4m3fnuz",
    "float8_e8m0fnu": "Float8_e8m0fnu", "float4_e2m1fn_x2": "Float4_e2m1fn_x2",
    "qint8": "QInt8", "quint8": "QUInt8", "qint32": "QInt32", "quint4x2": "QUInt4x2",
    "quint2x4": "QUInt2x4", "bits1x8": "Bits1x8", "bits2x4": "Bits2x4", "bits4x2": "Bits4x2",
    "bits8": "Bits8", "bits16": "Bits16",
    **{f"int{bits}": f"Int{bits}" for bits in range(1, 8)},
    **{f"uint{bits}": f"UInt{bits}" for bits in range(1, 8)},
}  # fmt: skip

_INTEGERS = ("Byte", "Char", "Short", "Int", "Long")
_FLOATS = ("Float", "Double")
_COMPLEX = ("ComplexFloat", "ComplexDouble")
# torchgen's groups of dtypes
GROUPS = {
    "Integral": _INTEGERS,
    "Floating": _FLOATS,
    "Complex": _COMPLEX,
    "FloatingAndComplex": (*_FLOATS, *_COMPLEX),
    "All": (*_INTEGERS, *_FLOATS),
    "AllAndComplex": (*_INTEGERS, *_FLOATS, *_COMPLEX),
}

_TORCH_NAMES = {scalar_type: name for name, scalar_type in SCALAR_TYPES.items()}


def torch_name(scalar_type: str) -> str:
    """`float32` of `Float`."""
    return _TORCH_NAMES[scalar_type]


def scalar_types(word: str) -> tuple[str, ...]:
    """c10's names of the dtypes that a word of a spec means: one dtype or a group; () for no
    such word."""
    if word in GROUPS:
        return GROUPS[word]
    if word in SCALAR_TYPES:
        return (SCALAR_TYPES[word],)
    return (word,) if word in _TORCH_NAMES else ()
