# SPDX-License-Identifier: BSD-3-Clause
"""The schema parser against the dispatcher's own: torch._C.parse_schema, field by field."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import torch
import torchgen
import yaml

from codegen.schema.parser import SchemaError, parse_schema
from codegen.schema.schema import Schema, Type
from torchext.compat import version

PACKAGED = Path(torchgen.__file__).parent / "packaged" / "ATen" / "native" / "native_functions.yaml"
_CLASS = "__torch__.torch.classes.quantized.Conv2dPackedParamsBase"

# In the manner of libraries outside PyTorch: what torchgen's grammar does not take as well.
OTHER_LIBRARIES = [
    "silu_and_mul(Tensor! result, Tensor input) -> ()",
    "rotary_embedding(Tensor positions, Tensor! query, Tensor!? key, int head_size) -> ()",
    "swap_blocks(Tensor src, Tensor! dst, Tensor block_mapping) -> ()",
    "reshape_and_cache(Tensor key, Tensor value, Tensor! key_cache, Tensor! value_cache, "
    "Tensor slot_mapping, str kv_cache_dtype, Tensor k_scale, Tensor v_scale) -> ()",
    "rms_norm_static_fp8_quant(Tensor! result, Tensor input, Tensor scale, float epsilon) -> ()",
    "gemm_half_q_half(Tensor a, Tensor w, Tensor b_g_idx, bool use_exllama, int bit) -> Tensor",
    "moe_align(Tensor topk_ids, int num_experts, Tensor(a!) sorted_ids, Tensor(b!) ids) -> ()",
    "paged_attention_v1(Tensor! out, Tensor query, Tensor? alibi_slopes=None, *, int tp_rank=0, "
    "int blocksparse_local_blocks=-1) -> ()",
    "zero_out(Tensor input) -> Tensor",
    "copy_out(Tensor input, Tensor(a!) output) -> ()",
    "split_out.first_out(Tensor self, *, Tensor(a!)[] out) -> ()",
    "all_to_all(Tensor input, SymInt[]? output_splits, SymInt[]? input_splits, str tag) -> Tensor",
    "all_gather_coalesced(Tensor[] inputs, int group_size, str group_name) -> Tensor[]",
    "foreach_scale_(Tensor(a!)[] self, Scalar[] scales) -> ()",
    "foreach_mutate(Tensor![] self, float[] factors) -> ()",
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
    "SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor",
    "deform_conv2d(Tensor input, Tensor? bias=None, int[2] stride=1, int[2] padding=0, "
    "bool use_mask=False) -> Tensor",
    "embedding_bag(Tensor[]? weights, Tensor?[] offsets, float[]? per_sample=None) -> Tensor[]",
    "tbe_lookup(Tensor weights, Dict(str, Tensor) caches, str[] names) -> Tensor",
    "tbe_state(str key) -> Dict(str, Tensor)",
    "wait(Future(Tensor) work) -> Tensor",
    "launch(Tensor input, str name='a stream') -> Future(Tensor)",
    f"linear_prepacked(Tensor qx, {_CLASS} packed_weight, float scale=1., int zero=0) -> Tensor",
    f"prepack(Tensor weight, Tensor? bias=None) -> {_CLASS}",
    f"unpack({_CLASS}? packed) -> (Tensor, Tensor?)",
    "resize(Tensor self, SymInt[2] size, SymInt? fill=None) -> Tensor",
    "shapes(SymInt[3] a=0, SymInt[3] b=[1, 2, 3], SymInt c=-1) -> ()",
    "alias_into(Tensor(a) x, Tensor(b) y) -> Tensor(a|b)",
    "wildcard(Tensor(a -> *) x, Tensor(*) y) -> Tensor(*)",
    "moves(Tensor(a -> b|*) x, Tensor(c! -> *) y, Tensor(d|e!) z) -> Tensor(b)",
    "append(Tensor[](a!) self, Tensor(b -> *) el) -> Tensor[](a!)",
    "chunks(Tensor(a -> *) self, int chunks=2, int dim=-1) -> Tensor(a)[]",
    "maybe_view(Tensor(a)? self, Tensor(b!)? state) -> Tensor(a)?",
    "optional_list(Tensor(a!)[]? out, Tensor(b)?[] xs) -> ()",
    "long_sets(Tensor(alpha1!) x, Tensor(beta) y) -> (Tensor(alpha1!), Tensor(beta))",
    "scalars_with_sets(int(a) x, t(b) y) -> t(b)",
    "named_results(Tensor x) -> (Tensor values, Tensor indices, int count)",
    "one_named_result(Tensor x) -> Tensor out",
    "one_in_parentheses(Tensor x) -> (Tensor)",
    "nested_results(Tensor x) -> ((Tensor, int) pair, Tensor[] rest, int[2] sizes)",
    "anything(Any x, ...) -> Any",
    "formatted(str format, ...) -> str",
    "returns_any_number(int n) -> ...",
    "returns_more(int n) -> (Tensor, ...)",
    "nothing() -> ()",
    "seed(Generator? generator=None, *, Generator gen) -> int",
    "factory(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
    "dtypes(ScalarType a=float, ScalarType b=half, ScalarType c=bfloat16, ScalarType d=int64, "
    "ScalarType e=bool, ScalarType? f=complex64, ScalarType? g=long) -> ScalarType",
    "enums(int reduction=Mean, MemoryFormat m=contiguous_format, Layout layout=strided) -> ()",
    "devices(Device a='cpu', Device b=\"cuda:1\", Device? c=None) -> Device",
    "strings(str a='', str b=\"it's\", str c='say \"x\"', str d='tab\\tnew\\nline', str? e='mean', "
    "str? f=None, str g='\\\\', str h='\\'') -> str",
    "numbers(int a=0, int b=-9223372036854775807, float c=1, float d=1e-05, float e=-.5, "
    "float f=2., complex g=1j, complex h=-2.5j, float? i=1.5E+3, int? j=7) -> complex",
    "scalars(Scalar a=1, Scalar b=-2.5, Scalar c=True, Scalar d=3j, Scalar? e=4, Scalar? f=None)"
    " -> Scalar",
    "flags(bool a=True, bool b=False, bool? c=None, bool? d=True, bool[3] e=[True, False, True], "
    "bool[2] f=True) -> bool",
    "lists(int[] a=[], int[] b=[1, -2], int[3] c=0, float[] d=[0.5, 1], float[2] e=0.1, "
    "bool[] f=[], int[]? g=None, int[2]? h=None, ScalarType[] i=[float, int8]) -> int[]",
    "after_default(int a=1, int[] b, *, int c, int d=2) -> ()",
    "types(Storage a, Stream b, QScheme c, Capsule d, DeviceIndex e, SymBool f, AnyEnumType g, "
    "NoneType h, AnyClassType i, Quantizer j, ConstQuantizerPtr k) -> None",
    "constructors(RRef(Tensor) a, Await(int) b, Union(Tensor, int, str) c, (Tensor, int[])[] d, "
    "Dict(str, Tensor[]) e, Dict(int, Dict(str, float)) f, Future(Tensor[])? g) -> Union(int, str)",
    "nested_lists(int[][] a, Tensor[][] b, Tensor?[]? c, str[]? d, (int, str)? e) -> Tensor[][]",
    "_private.over_load_1(Tensor _x, int X) -> Tensor Y",
    "__iand__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",
    "mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "mul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    "two_outs.out(Tensor x, *, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))",
    "  spaced . one ( Tensor  ( a ! )  x ,int [ 2 ]y = [ 1,2 ], * , bool z= True )->(Tensor(a!) )",
]

# (schema, the beginning of the project's message)
REFUSED_BY_BOTH = [
    ("f(None? x) -> ()", "'None' has nothing that could be missing"),
    ("f(Tensor x) -> NoneType?", "'NoneType' has nothing that could be missing"),
    ("f(Tensor x", "expected ',' or ')' in schema, got the end"),
    ("f Tensor x) -> Tensor", "expected '(' in schema, got 'Tensor'"),
    ("f(Tensor x) Tensor", "expected '->' in schema, got 'Tensor'"),
    ("f(Tensor x) ->", "expected a type in schema, got the end"),
    ("f(Tensor x) -> Tensor y z", "unexpected 'z' after the end of the schema"),
    ("f(Tensor x) -> Tensor;", "unexpected character ';' in schema"),
    ("f(Tensor x) -> (Tensor", "expected ',' or ')' in schema, got the end"),
    ("f(Tensor x) -> (Tensor,)", "expected a type in schema, got ')'"),
    ("f(Tensor x) -> (..., Tensor)", "'...' must be the last result"),
    ("f(Tensor x) -> ((...))", "expected a type in schema, got '...'"),
    ("f(Tensr x) -> Tensor", "unknown type 'Tensr'"),
    ("f(Tensor) -> Tensor", "expected an argument name in schema, got ')'"),
    ("f(Tensor x,) -> Tensor", "expected a type in schema, got ')'"),
    ("f(, Tensor x) -> Tensor", "expected a type in schema, got ','"),
    ("f(Tensor 1x) -> Tensor", "expected an argument name in schema, got '1'"),
    ("f(Tensor if) -> Tensor", "expected an argument name in schema, got 'if'"),
    ("for(Tensor x) -> Tensor", "expected an operator name in schema, got 'for'"),
    ("f.in(Tensor x) -> Tensor", "expected an overload name in schema, got 'in'"),
    ("f(Tensor x) -> Tensor None", "expected a name in schema, got 'None'"),
    ("1f(Tensor x) -> Tensor", "expected an operator name in schema, got '1'"),
    ("f-g(Tensor x) -> Tensor", "expected '(' in schema, got '-'"),
    ("f.(Tensor x) -> Tensor", "expected an overload name in schema, got '('"),
    ("f.a.b(Tensor x) -> Tensor", "expected '(' in schema, got '.'"),
    ("f.default(Tensor x) -> Tensor", "'default' is not a valid overload name"),
    ("f.__x(Tensor x) -> Tensor", "'__x' is not a valid overload name"),
    ("f(int x=3, int y) -> Tensor", "argument 'y' has no default but follows one that has"),
    ("f(Tensor x, ..., int y) -> Tensor", "'...' must be the last argument"),
    ("f(Tensor() x) -> Tensor", "expected an alias set in schema, got ')'"),
    ("f(Tensor(a x) -> Tensor", "expected ')' in schema, got 'x'"),
    ("f(Tensor(1) x) -> Tensor", "expected an alias set in schema, got '1'"),
    ("f(Tensor(a -> ) x) -> Tensor", "expected an alias set in schema, got ')'"),
    ("f(Tensor(a!|b) x) -> Tensor", "expected ')' in schema, got '|'"),
    ("f(Tensor?(a!) x) -> Tensor", "expected an argument name in schema, got '('"),
    ("f(Tensor!(a) x) -> ()", "expected an argument name in schema, got '('"),
    ("f(int[2][2] x) -> ()", None),
    ("f(int[-1] x) -> ()", "expected ']' in schema, got '-'"),
    ("f(int[n] x) -> ()", "expected ']' in schema, got 'n'"),
    ("f(Dict(str) x) -> ()", "Dict takes 2 types"),
    ("f(Dict x) -> ()", "expected '(' in schema, got 'x'"),
    ("f(Future(Tensor, int) x) -> ()", "Future takes 1 types"),
    ("f(Union(int) x) -> ()", "Union takes two or more types"),
    ("f(__torch__ x) -> ()", "expected '.' in schema, got 'x'"),
    ("f(Optional(int) x) -> ()", "unknown type 'Optional'"),
    ("f(SymFloat x) -> ()", "unknown type 'SymFloat'"),
    ("f(Tensor x=1) -> ()", "'1' is not a value of type 'Tensor'"),
    ("f(int x=) -> ()", "expected a default value in schema, got ')'"),
    ("f(int x=--1) -> ()", "expected a default value in schema, got '-'"),
    ("f(int x=[1]) -> ()", "'[1]' is not a value of type 'int'"),
    ("f(int x=Sum) -> ()", "'Sum' is not a value of type 'int'"),
    ("f(int x=double) -> ()", "'double' is not a value of type 'int'"),
    ("f(int x=99999999999999999999) -> ()", "'99999999999999999999' is not a value of type 'int'"),
    ("f(int x=9223372036854775808) -> ()", "'9223372036854775808' is not a value of type 'int'"),
    ("f(int x=-9223372036854775809) -> ()", "'-9223372036854775809' is not a value of type 'int'"),
    ("f(int? x=9223372036854775808) -> ()", "'9223372036854775808' is not a value of type 'int'"),
    ("f(int[] x=[9223372036854775808]) -> ()", "'9223372036854775808' is not a value of type"),
    ("f(int[2] x=9223372036854775808) -> ()", "'9223372036854775808' is not a value of type"),
    ("f(SymInt x=9223372036854775808) -> ()", "'9223372036854775808' is not a value of type"),
    ("f(Scalar x=9223372036854775808) -> ()", "'9223372036854775808' is not a value of type"),
    (f"f(Scalar x={'9' * 30}) -> ()", f"'{'9' * 30}' is not a value of type 'Scalar'"),
    (f"f(int x={'9' * 5000}) -> ()", f"'{'9' * 60}...' is not a value of type 'int'"),
    (f"f(float x={'9' * 5000}) -> ()", f"'{'9' * 60}...' is not a value of type 'float'"),
    ("f(float x=1e999) -> ()", "'1e999' is not a value of type 'float'"),
    ("f(float x=-1e999) -> ()", "'-1e999' is not a value of type 'float'"),
    ("f(float x=1e-400) -> ()", "'1e-400' is not a value of type 'float'"),
    ("f(float x=5e-324) -> ()", "'5e-324' is not a value of type 'float'"),
    ("f(float x=2.22507385850720125e-308) -> ()", "'2.22507385850720125e-308' is not a value of"),
    ("f(Scalar x=1e999) -> ()", "'1e999' is not a value of type 'Scalar'"),
    ("f(complex x=1e999j) -> ()", "'1e999j' is not a value of type 'complex'"),
    ("f(int[2] x=strided) -> ()", "the default of 'int[2]' must be a list, got 'strided'"),
    (
        "f(ScalarType[2] x=float) -> ()",
        "the default of 'ScalarType[2]' must be a list, got 'float'",
    ),
    ("f(float x=inf) -> ()", "'inf' is not a value of type 'float'"),
    ("f(bool x=true) -> ()", "'true' is not a value of type 'bool'"),
    ("f(complex x=1) -> ()", "'1' is not a value of type 'complex'"),
    ("f(str x='a) -> ()", 'unexpected character "\'" in schema'),
    ("f(ScalarType x=foo) -> ()", "'foo' is not a value of type 'ScalarType'"),
    ("f(MemoryFormat x=channels_last) -> ()", "'channels_last' is not a value of type"),
    ("f(Layout x=sparse) -> ()", "'sparse' is not a value of type 'Layout'"),
    ("f(Device x='no_device') -> ()", "''no_device'' is not a value of type 'Device'"),
    ('f(Device x="bogus:99") -> ()', "'\"bogus:99\"' is not a value of type 'Device'"),
    ("f(Device x='cpu:01') -> ()", "''cpu:01'' is not a value of type 'Device'"),
    ("f(Device x=cpu) -> ()", "'cpu' is not a value of type 'Device'"),
    ("f(int[] x=1) -> ()", "the default of 'int[]' must be a list, got '1'"),
    ("f(int[] x=[1.5]) -> ()", "'1.5' is not a value of type 'int'"),
    ("f(int[]? x=[1]) -> ()", "the default of 'int[]?' can only be None"),
    ("f(Tensor[] x=[]) -> ()", "an argument of type 'Tensor[]' cannot have a default"),
    ("f(str[] x=[]) -> ()", "an argument of type 'str[]' cannot have a default"),
    ("f(Any x=None) -> ()", "an argument of type 'Any' cannot have a default"),
    ("f(Stream x=1) -> ()", "an argument of type 'Stream' cannot have a default"),
    ("f(SymBool x=True) -> ()", "an argument of type 'SymBool' cannot have a default"),
    ("f(t x=1) -> ()", "an argument of type 't' cannot have a default"),
    ("f(Dict(str, int) x=1) -> ()", "an argument of type 'Dict(str, int)' cannot have a default"),
    ("f((int, int) x=1) -> ()", "an argument of type '(int, int)' cannot have a default"),
    ("f(Generator x=1) -> ()", "'1' is not a value of type 'Generator'"),
]

# What the dispatcher reads, and why a spec must not say it. A default of another type is a value
# that no caller gets: the call fails in the kernel's unboxing, or the value is silently another.
REFUSED_BY_US = {
    "f(Tensor x, Tensor x) -> Tensor": "no keyword can name the second one",
    "f(Tensor x, *) -> Tensor": "the star says nothing",
    "f(Tensor x, *, *, int y) -> Tensor": "the second star says nothing",
    "f(Tensor x, *, ...) -> Tensor": "the star says nothing",
    "f(int x=1.5) -> ()": "a float",
    "f(int x=1e3) -> ()": "a float",
    "f(int x=True) -> ()": "a bool",
    "f(int x=None) -> ()": "the type is not optional",
    "f(int x='a') -> ()": "a string",
    "f(int x=010) -> ()": "8 in C++, 10 to the dispatcher",
    "f(int x=08) -> ()": "no number of C++",
    "f(int x=00) -> ()": "a zero in front is of no use",
    "f(float x=010) -> ()": "as of integers",
    "f(float x=010.5) -> ()": "as of integers",
    "f(Scalar x=010) -> ()": "8 in C++, 10 to the dispatcher",
    "f(complex x=010j) -> ()": "8j in C++, 10j to the dispatcher",
    "f(Scalar x=1E5) -> ()": "the dispatcher reads 1",
    "f(float? x=1E5) -> ()": "the dispatcher reads 1",
    "f(DeviceIndex x=128) -> ()": "it has eight bits",
    "f(DeviceIndex x=-129) -> ()": "it has eight bits",
    "f(Device x='cuda:128') -> ()": "the index has eight bits",
    r"f(Device x='cp\165') -> ()": "a name has no use for escapes",
    "f(bool[2] x=[True, True, True]) -> ()": "what a kernel takes has two values",
    "f(bool[2] x=[True]) -> ()": "what a kernel takes has two values",
    "f(bool[2] x=[]) -> ()": "what a kernel takes has two values",
    "f(Tensor x=None) -> ()": "the type is not optional: a kernel's unboxing refuses None",
    "f(Generator x=None) -> ()": "the type is not optional: a kernel's unboxing refuses None",
    "f(SymInt x=1.5) -> ()": "a float",
    "f(bool x=1) -> ()": "an int",
    "f(bool? x=1) -> ()": "an int",
    "f(float x='a') -> ()": "a string",
    "f(float x=1j) -> ()": "a complex",
    "f(complex x=True) -> ()": "a bool",
    "f(complex x=12.5) -> ()": "the dispatcher reads 12j",
    "f(float? x=1) -> ()": "the dispatcher keeps an int, which no kernel takes for a float",
    "f(Device? x='cpu') -> ()": "the dispatcher keeps a string",
    "f(int[2]? x=3) -> ()": "the dispatcher keeps an int, not a list",
    "f(str x=1) -> ()": "an int",
    "f(Scalar x='a') -> ()": "a string",
    "f(Scalar x=None) -> ()": "the type is not optional",
    "f(Tensor? x=1) -> ()": "a number is no tensor",
    "f(Generator? x=1) -> ()": "a number is no generator",
    "f(Any? x=1) -> ()": "Any has no default, so neither has Any?",
    "f(ScalarType x=6) -> ()": "the number of a dtype is not part of PyTorch's promises",
    "f(ScalarType x=uint16) -> ()": "not in the list of C++ spellings of dtypes",
    "f(MemoryFormat x=0) -> ()": "an int",
    "f(int[1.5] x) -> ()": "the dispatcher reads 1",
    "f(int x=0x10) -> ()": "the dispatcher reads 0",
    'f(str x="""a""") -> ()': "Python's long strings; a YAML reader would not expect them",
    "f(abc x) -> ()": "a type variable, as `tensor`, `int64_t` and `number` would be",
    "f(Tensor x) -> void": "a type variable, too: no result is `()`",
}

# What is said of those that are no value of their type is that.
OTHER_WORDS = {
    "f(Tensor x, Tensor x) -> Tensor": "argument 'x' stands twice",
    "f(Tensor x, *) -> Tensor": "'*' must be followed by an argument",
    "f(Tensor x, *, *, int y) -> Tensor": "'*' stands twice in the argument list",
    "f(Tensor x, *, ...) -> Tensor": "'*' must be followed by an argument",
    "f(Scalar x=1E5) -> ()": "the default of 'Scalar' needs a decimal point, got '1E5'",
    "f(float? x=1E5) -> ()": "the default of 'float?' needs a decimal point, got '1E5'",
    "f(float? x=1) -> ()": "the default of 'float?' needs a decimal point, got '1'",
    "f(bool[2] x=[True, True, True]) -> ()": "the default of 'bool[2]' has 2 values, got 3",
    "f(bool[2] x=[True]) -> ()": "the default of 'bool[2]' has 2 values, got 1",
    "f(bool[2] x=[]) -> ()": "the default of 'bool[2]' has 2 values, got 0",
    "f(Device? x='cpu') -> ()": "the default of 'Device?' can only be None",
    "f(int[2]? x=3) -> ()": "the default of 'int[2]?' can only be None",
    "f(Any? x=1) -> ()": "an argument of type 'Any' cannot have a default",
    "f(int[1.5] x) -> ()": "the size of a list must be a whole number",
    "f(int x=0x10) -> ()": "expected ',' or ')' in schema, got 'x10'",
    'f(str x="""a""") -> ()': "expected ',' or ')' in schema, got '\"a\"'",
    "f(abc x) -> ()": "unknown type 'abc'",
    "f(Tensor x) -> void": "unknown type 'void'",
}

# A shorthand `!` is a set of its own that nothing else can name.
_FRESH = "!"
_DTYPES = {
    name: index
    for index, names in enumerate(
        (
            "uint8 int8 int16,short int32,int int64,long float16,half float32,float float64,double "
            "complex32 complex64,complex,cfloat complex128,cdouble bool qint8 quint8 qint32 "
            "bfloat16"
        ).split()
    )
    for name in names.split(",")
}
_ENUMS = {"Mean": 1, "contiguous_format": 0, "strided": 0}


def torch_parse(text: str):
    return torch._C.parse_schema(f"oracle::{text.lstrip()}")


def spelling(type_: Type) -> str:
    """A type as `str` of torch's types has it."""
    args = ", ".join(map(spelling, type_.args))
    if type_.name == "Tuple":
        return f"Tuple[{args or '()'}]"
    if args:
        return f"{type_.name}[{args}]"
    same = {"Scalar": "number", "None": "NoneType", "SymInt": "int", "SymBool": "bool"}
    same |= {"DeviceIndex": "int", "ConstQuantizerPtr": "int"}
    if version() < (2, 13):
        same["Dimname"] = "str"
    return same.get(type_.name, type_.name)


def leaf_kinds(type_: Type) -> list[str]:
    """Which of the types that print alike in `spelling` are symbolic, in the schema's order."""
    return [t.name for t in type_.walk() if t.name in ("SymInt", "SymBool")]


def symbolic_in(text: str) -> list[str]:
    return re.findall(r"\b(?:SymInt|SymBool)\b", text)


def size_of(type_: Type) -> int | None:
    """The size of a fixed list, also below `?`."""
    return size_of(type_.args[0]) if type_.name == "Optional" else type_.size


def alias_of(type_: Type):
    """(is_write, before, after) of an argument as torch holds it; None where there is none."""
    if type_.alias:
        alias = type_.alias
        before = {_FRESH} if alias.is_shorthand else set(alias.before)
        after = set() if alias.is_shorthand else set(alias.after or alias.before)
        return alias.is_write, before, after
    if type_.name == "Optional":
        return alias_of(type_.args[0])
    if type_.name == "List" and (inner := alias_of(type_.args[0])):
        return inner[0], set(), set()
    return None


def torch_alias(info):
    if info is None:
        return None
    before = {re.sub(r"^\$\d+$", _FRESH, name) for name in info.before_set}
    return info.is_write, before, set(info.after_set)


def annotations(type_: Type) -> list[tuple[bool, frozenset[str], frozenset[str]]]:
    """All alias annotations of a type, also those inside lists and optionals, innermost first."""
    found = []
    if type_.name in ("List", "Optional"):
        found = annotations(type_.args[0])
    if type_.alias:
        write, before, after = alias_of(type_)
        found.append((write, frozenset(before), frozenset(after)))
    return found


_SET = r"(?:[a-z]\w*|\*|\$\d+)"
_ANNOTATION = re.compile(
    rf"(?<=[\w\]?)])\(({_SET}(?:\|{_SET})*)(!?)(?: -> ((?:{_SET}(?:\|{_SET})*)?))?\)"
)
_SCALARS = {"int", "str", "float", "bool", "complex"}


def printed_annotations(text: str):
    """The alias annotations in the order of the text that torch prints, inner ones included."""
    found = []
    for before, write, after in _ANNOTATION.findall(text.split("(", 1)[1]):
        if before in _SCALARS:  # Future(int)
            continue
        names = {re.sub(r"^\$\d+$", _FRESH, name) for name in before.split("|")}
        ends = set(after.split("|")) - {""} if after or _FRESH in names else names
        found.append((bool(write), frozenset(names), frozenset(ends)))
    return found


def value_of(text: str | None, type_: Type):
    """The value that a default's text stands for."""
    if text is None or text == "None":
        return None
    if type_.name == "Optional":
        return value_of(text, type_.args[0])
    if type_.name == "List":
        element = type_.args[0]
        if text.startswith("["):
            items = [item.strip() for item in text[1:-1].split(",") if item.strip()]
            return [value_of(item, element) for item in items]
        return [value_of(text, element)] * type_.size
    if text in _ENUMS:
        return _ENUMS[text]
    if text in _DTYPES:
        return _DTYPES[text]
    value = ast.literal_eval(text)
    return float(value) if type_.name == "float" else value


def plain(value):
    """A default value of torch without its wrappers."""
    if isinstance(value, torch.dtype):
        return _DTYPES[str(value).removeprefix("torch.")]
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def compare(text: str) -> None:
    ours, theirs = parse_schema(text), torch_parse(text)
    assert f"oracle::{ours.name.base}" == theirs.name
    assert ours.name.overload == theirs.overload_name
    assert [a.name for a in ours.arguments] == [a.name for a in theirs.arguments]
    for mine, other in zip(ours.arguments, theirs.arguments):
        assert spelling(mine.type) == str(other.real_type), mine
        assert size_of(mine.type) == other.N, mine
        assert mine.is_kwarg_only == other.kwarg_only, mine
        assert (mine.default is not None) == other.has_default_value(), mine
        expected, found = value_of(mine.default, mine.type), plain(other.default_value)
        assert (expected, type(expected)) == (found, type(found)), mine
        assert alias_of(mine.type) == torch_alias(other.alias_info), mine
        assert mine.type.is_write == other.is_write, mine
    assert len(ours.returns) == len(theirs.returns)
    for mine, other in zip(ours.returns, theirs.returns):
        assert (mine.name or "") == other.name
        assert spelling(mine.type) == str(other.real_type), mine
        assert alias_of(mine.type) == torch_alias(other.alias_info), mine
    compare_text(ours, str(theirs))


def compare_text(ours: Schema, printed: str) -> None:
    """What torch keeps but shows only when it prints: symbolic types, inner aliases, `...`."""
    types = [a.type for a in ours.arguments] + [r.type for r in ours.returns]
    assert [kind for t in types for kind in leaf_kinds(t)] == symbolic_in(printed)
    assert [a for t in types for a in annotations(t)] == printed_annotations(printed)
    arguments, _, returns = printed.rpartition(" -> ")
    assert ours.is_vararg == (arguments.endswith("...)"))
    assert ours.is_varret == (returns in ("...", "(...)") or returns.endswith(", ...)"))


def packaged_schemas() -> list[str]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [entry["func"] for entry in yaml.load(PACKAGED.read_text(), Loader=loader)]


def test_reads_every_schema_of_pytorch_as_the_dispatcher_does() -> None:
    schemas = packaged_schemas()
    assert len(schemas) > 2000
    if torch.__version__.startswith("2.13."):
        assert len(schemas) == 2584
    for text in schemas:
        compare(text)


def test_prints_every_schema_of_pytorch_as_it_stands() -> None:
    assert [text for text in packaged_schemas() if str(parse_schema(text)) != text] == []


@pytest.mark.parametrize("text", OTHER_LIBRARIES)
def test_reads_other_libraries_schemas_as_the_dispatcher_does(text: str) -> None:
    compare(text)


def test_has_schemas_enough_of_other_libraries() -> None:
    assert len(OTHER_LIBRARIES) >= 60


@pytest.mark.parametrize("text", OTHER_LIBRARIES)
def test_what_is_printed_means_the_same_to_the_dispatcher(text: str) -> None:
    schema = parse_schema(text)
    assert str(torch_parse(str(schema))) == str(torch_parse(text))
    assert parse_schema(str(schema)) == schema


@pytest.mark.parametrize(("text", "message"), REFUSED_BY_BOTH)
def test_refuses_what_the_dispatcher_refuses(text: str, message: str | None) -> None:
    with pytest.raises((RuntimeError, ValueError, IndexError)):  # what std::stod throws as well
        torch_parse(text)
    with pytest.raises(SchemaError) as error:
        parse_schema(text)
    assert message is None or error.value.message.startswith(message)


@pytest.mark.parametrize(("text", "reason"), REFUSED_BY_US.items())
def test_refuses_what_the_dispatcher_reads_only_with_a_reason(text: str, reason: str) -> None:
    torch_parse(text)
    with pytest.raises(SchemaError) as error:
        parse_schema(text)
    expected = OTHER_WORDS.get(text)
    if expected is None:
        type_, value = re.fullmatch(r"f\((\S+?)\??(?:\[2\])? x=(.*)\) -> \(\)", text).groups()
        expected = f"'{value}' is not a value of type '{type_}'"
    assert error.value.message == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("lib::f(int x) -> ()", "the oracle is asked with a namespace in front already"),
        ("f(__torch__.lib.Params x) -> ()", "the library registers the class when it is loaded"),
        pytest.param(
            "f(Dimname x) -> ()",
            "a type of PyTorch's that this version has no name for",
            marks=pytest.mark.skipif(version() < (2, 13), reason="torch 2.11 reads it as a str"),
        ),
    ],
)
def test_reads_what_the_dispatcher_would_refuse_only_here(text: str, why: str) -> None:
    with pytest.raises(RuntimeError):
        torch_parse(text)
    parse_schema(text)
