# SPDX-License-Identifier: BSD-3-Clause
"""Specs that are too much: sizes, depths, aliases, and texts that would end what they stand in.

The timeouts say that a run ends, and not how long it may take.
"""

import itertools
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from spec_runs import NATIVE, output, run

from codegen.cpp import defaults as cpp_defaults
from codegen.schema.parser import SchemaError, parse_schema
from codegen.schema.schema import Argument
from codegen.schema.types import BASE_TYPES

ENTRY = "- func: op{i}(Tensor x, int n=1) -> Tensor\n  dispatch:\n    CPU: op{i}_cpu\n"
FORMULA = "- name: op{i}(Tensor x, int n=1) -> Tensor\n  x: grad * n\n"


def last_line(result) -> str:
    return result.report.splitlines()[-1]


@pytest.mark.timeout(120)
def test_ten_thousand_operators(tmp_path):
    native = "".join(ENTRY.format(i=i) for i in range(10_000))
    derivatives = "".join(FORMULA.format(i=i) for i in range(10_000))
    result = run(tmp_path, native, derivatives)
    assert (result.status, result.report) == (0, "")
    assert len([name for name in output(tmp_path / "out") if name.startswith("src/nodes_")]) == 64


def lines_run(folder: Path, native: str, derivatives: str) -> int:
    """How many lines of Python the generator runs for these files."""
    folder.mkdir()
    count = itertools.count()

    def trace(*_):
        next(count)
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        result = run(folder, native, derivatives)
    finally:
        sys.settrace(previous)
    assert result.status == 0
    return next(count)


@pytest.mark.timeout(120)
def test_the_work_for_an_operator_does_not_grow_with_their_number(tmp_path):
    """benchmarks/codegen.py has the seconds of more of them."""

    def lines(operators: int) -> int:
        specs = ("".join(text.format(i=i) for i in range(operators)) for text in (ENTRY, FORMULA))
        return lines_run(tmp_path / str(operators), *specs)

    lines(10)  # fills the caches
    few, many = lines(256), lines(1024)
    assert few > 256 * 1000
    assert many < 4.2 * few


@pytest.mark.timeout(120)
def test_the_work_for_a_formula_does_not_grow_with_the_number_of_arguments(tmp_path):
    def lines(arguments: int) -> int:
        schema = f"op({', '.join(f'Tensor x{i}' for i in range(arguments))}) -> Tensor"
        formulas = "".join(f"  x{i}: grad * x{i}\n" for i in range(arguments))
        native = f"- func: {schema}\n  dispatch:\n    CPU: k\n"
        return lines_run(tmp_path / str(arguments), native, f"- name: {schema}\n{formulas}")

    lines(10)
    few, many = lines(64), lines(256)
    assert many < 5 * few


@pytest.mark.timeout(120)
@pytest.mark.parametrize("call", [".a()", ".a<1>()", "[0]"])
def test_a_formula_of_many_calls(call, tmp_path):
    formula = FORMULA.format(i=0).replace("grad * n", f"std::tuple<Tensor>(grad){call * 50_000}")
    result = run(tmp_path, ENTRY.format(i=0), formula)
    assert (result.status, result.report) == (0, "")


def test_ten_megabytes_of_comments_and_of_text(tmp_path):
    comments = "# nothing\n" * 1_000_000
    result = run(tmp_path, comments + ENTRY.format(i=0))
    assert (result.status, result.report) == (0, "")
    doc = "x" * 10_000_000
    result = run(tmp_path, f"{ENTRY.format(i=0)}  doc: {doc}\n")
    assert (result.status, result.report) == (0, "")


@pytest.mark.timeout(120)
def test_a_large_file_of_mistakes_ends_at_the_thousandth(tmp_path):
    result = run(tmp_path, "".join(f"- func: op{i}(Tesnor x) -> Tensor\n" for i in range(250_000)))
    assert result.status == 1
    assert last_line(result) == "1000 errors; what follows was not read"
    assert result.report.count(": error: ") == 1000


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "open_, close", ["[]", "{}", ("- ", ""), ("a: {", "}"), ("- func: [", "]")]
)
@pytest.mark.parametrize("depth", [100, 10_000, 1_000_000])
def test_deep_nesting(open_, close, depth, tmp_path):
    separator = "" if close else "\n"
    if not close and depth == 1_000_000:
        depth = 1000  # a line for each level, and its indent
        native = "".join(" " * i + "-\n" for i in range(depth))
    else:
        native = open_ * depth + close * depth + separator
    result = run(tmp_path, native)
    assert result.status == 1
    assert result.report.startswith(f"{NATIVE}:")
    assert not (tmp_path / "out").exists()


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "native",
    [
        # each list is nine of the one before
        "- &a [x, x, x]\n" + "".join(
            f"- &{b} [*{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}]\n"
            for a, b in zip("abcdefgh", "bcdefghi", strict=True)
        ),
        # a long list in many entries
        "- func: op(Tensor x) -> Tensor\n  tags: &t [" + "core, " * 5000 + "core]\n"
        + "".join(f"- func: op{i}(Tensor x) -> Tensor\n  tags: *t\n" for i in range(5000)),
        # a long text in many entries
        "- func: op(Tensor x) -> Tensor\n  doc: &d " + "x" * 100_000 + "\n"
        + "".join(f"- func: op{i}(Tensor x) -> Tensor\n  doc: *d\n" for i in range(5000)),
        "- &a\n  func: op(Tensor x) -> Tensor\n" + "- *a\n" * 100_000,
        "- &a [*a]\n",
        "- func: &a {x: *a}\n",
    ],
    ids=["laughs", "lists", "texts", "entries", "itself", "itself in a map"],
)  # fmt: skip
def test_aliases_that_repeat_without_end(native, tmp_path):
    result = run(tmp_path, native)
    assert result.status == 1
    assert result.report.startswith(f"{NATIVE}:")
    assert len(result.report) < 10_000_000
    assert not (tmp_path / "out").exists()


# What would end a comment, a string, a line or a statement that it is copied into as it is.
TEXTS = [
    "*/ int x; /*", "// \\", 'R"(")"', "a\\", "\\\\\\", "??/", '"""', "'''", "\\n", "#error x",
    "#include <no_such>", "line\nbreak\n", "tab\tand\rreturn", "é 名 💥", "\u2028", "${x} $name $$",
    "{0} {} %s", '"', "'", "--> */", "*\\\n/ int y; /*",
]  # fmt: skip
# torch reads `class` as no name of an operator.
WORDS = (
    "new delete auto operator template this int union export register at c10 std torch errno NULL "
    "TORCH_CHECK int64_t schema Operator overload_name operators registered_0 "
    "cpu_registered_0 library"
).split()
FORMULAS = [
    'grad * int64_t(sizeof("*/ // /* \\\" #"))', "grad /* } ; */ * n", "grad\n* n\n",
    "grad\t* '\"'", """grad * int64_t(sizeof("'"))""", "at::mul(grad, n < 0 ? n : '\\'')",
]  # fmt: skip


def quoted(text: str) -> str:
    escaped = "".join(
        c if c.isalnum() or c in " .,()<>?*+-=!" else f"\\U{ord(c):08x}" for c in text
    )
    return f'"{escaped}"'


def test_texts_and_names_that_would_end_what_they_stand_in_compile(tmp_path):
    native, derivatives = [], []
    for i, text in enumerate(TEXTS):
        native.append(ENTRY.format(i=i) + f"  doc: {quoted(text)}\n")
        derivatives.append(FORMULA.format(i=i))
    for i, formula in enumerate(FORMULAS):
        schema = f"formula{i}(Tensor x, int n=1) -> Tensor"
        native.append(f"- func: {schema}\n  dispatch:\n    CPU: k\n")
        derivatives.append(f"- name: {schema}\n  x: {quoted(formula)}\n")
    for i, word in enumerate(WORDS):
        schema = f"{word}(Tensor {word}, int other=1) -> Tensor"
        native.append(f"- func: {schema}\n  dispatch:\n    CPU: word{i}_cpu\n")
        derivatives.append(f"- name: {schema}\n  {word}: grad\n")
    for name in ("twin", "Twin", "twin_", "_twin"):  # what differs little
        native.append(f"- func: {name}(Tensor! self) -> ()\n  dispatch:\n    CPU: k\n")
    result = run(tmp_path, "".join(native), "".join(derivatives))
    assert result.status == 0, result.report
    compile_all(tmp_path / "out")


def compile_all(out: Path) -> None:
    """Check every source that was written, with all warnings as errors."""
    compile_text(
        out, "".join(f'#include "{path}"\n' for path in sorted((out / "src").glob("*.cpp")))
    )


def compile_text(out: Path, text: str) -> None:
    """Check one source that includes what was written, with all warnings as errors."""
    from torch.utils.cpp_extension import include_paths

    from torchext.compat import cxx_standard
    from torchext.toolchain import environment, platforms

    csrc = Path(__file__).parents[2] / "csrc" / "include"
    own = [out / "include", csrc, csrc / "torchext" / "replacements"]
    others = [*include_paths(), sysconfig.get_path("include")]
    (out / "all.cpp").write_text(text)
    compiler = environment.find_compiler(platforms.current())
    result = subprocess.run(
        [compiler, f"-std={cxx_standard()}", "-fsyntax-only", "-Wall", "-Werror",
         *(f"-I{path}" for path in own), *(f"-isystem{path}" for path in others),
         str(out / "all.cpp")],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[:4000]


# Defaults of each type that takes some; those of optionals and lists follow from them.
INTEGERS = "0 -0 7 010 08 00 9223372036854775807 9223372036854775808 -9223372036854775808".split()
INTEGERS += ["- 1", "-9223372036854775809", "9" * 30, "9" * 5000]
FLOATS = "0.5 1. -.5 -0.0 1e5 1E5 1.5E5 1e-05 010.5 1e999 1e-400 5e-324 1e308 0e999 0.e-999".split()
FLOATS += ["2.2250738585072014e-308", "2.22507385850720125e-308", "1.7976931348623159e308"]
FLOATS += ["9007199254740993", "1" * 300, "0." + "3" * 5000]
IMAGINARY = [f"{number}j" for number in INTEGERS + FLOATS]
NAMES = "Mean contiguous_format strided".split()
DTYPES = (
    "float double half int long short bool float16 float32 float64 bfloat16 int8 int16 int32 int64 "
    "uint8 complex32 complex64 complex128 complex cfloat cdouble"
).split()
WRITTEN = [
    "''", '""', "'a'", "'\"'", r"'\''", r"'\"'", r'"\""', '"\'"', r"'\\'", r"'\n\t\a\b\f\v'",
    r"'\001\1772'", "'é 名'", "'???/ ??='", "'%s {} */ //'",
]  # fmt: skip
DEVICES = (
    "cpu cpu:0 cuda cuda:1 cuda:127 cuda:128 cuda:01 bogus:99 meta privateuseone mps:0".split()
)
DEFAULTS = {
    "int": [*INTEGERS, *NAMES, *DTYPES],
    "SymInt": [*INTEGERS, *NAMES],
    "DeviceIndex": [*INTEGERS, "-1", "127", "128", "-128", "-129"],
    "float": INTEGERS + FLOATS,
    "complex": INTEGERS + FLOATS + IMAGINARY,
    "Scalar": [*INTEGERS, *FLOATS, *IMAGINARY, "True", "False"],
    "bool": ["True", "False", "0", "1"],
    "str": WRITTEN,
    "ScalarType": DTYPES,
    "Layout": NAMES,
    "MemoryFormat": NAMES,
    "Device": [*(f"'{name}'" for name in DEVICES), '"cpu"'],
}
MORE_NONE = "Tensor[] Scalar[] str[] Any Dict(str,int) (int,int) int[][]".split()


def accepted_defaults() -> list[str]:
    """`type n=default` for all of these types that the schemas of a spec can have."""
    unspelled = ("ConstQuantizerPtr", "Dimname", "None", "NoneType")
    types = [type_ for type_ in BASE_TYPES if type_ not in unspelled] + MORE_NONE
    written = [f"{type_}{end} n=None" for type_ in types for end in ("", "?")]
    for type_, values in DEFAULTS.items():
        written += [f"{type_}{end} n={value}" for value in values for end in ("", "?", "[2]")]
        kept = [value for value in values if is_accepted(f"{type_} n={value}")]
        for size in (0, 2, len(kept)):
            given = ("", ", ".join(kept), f"{kept[0]} , {kept[-1]}", *values[:1])
            written += [f"{type_}[{size}] n=[{text}]" for text in given]
            written += [f"{type_}[{size}]{end} n={kept[0]}" for end in ("", "?")]
        written += [f"{type_}[]{end} n=[{text}]" for text in given for end in ("", "?")]
    return [text for text in dict.fromkeys(written) if is_accepted(text)]


def is_accepted(text: str) -> bool:
    try:
        parse_schema(f"f({text}) -> ()")
    except SchemaError:
        return False
    return True


SAME = """
#include <lib/ops.h>
#include <string_view>

template <typename T, typename U>
constexpr bool same(T a, U b) {
  if constexpr (std::is_floating_point_v<U>) {
    return std::is_same_v<T, double> && a == b && __builtin_signbit(a) == __builtin_signbit(b);
  } else if constexpr (std::is_same_v<U, c10::complex<double>>) {
    return same(a.real(), b.real()) && same(a.imag(), b.imag());
  } else if constexpr (std::is_same_v<U, const char*>) {
    return std::string_view(a) == b;
  } else {
    return !std::is_floating_point_v<T> && int64_t(a) == int64_t(b);
  }
}

template <typename T>
constexpr bool same_list(std::initializer_list<T> a, std::initializer_list<T> b) {
  bool found = a.size() == b.size();
  for (size_t i = 0; found && i < a.size(); ++i) {
    found = same(a.begin()[i], b.begin()[i]);
  }
  return found;
}
"""
ELEMENTS = {
    "int": "int64_t", "SymInt": "int64_t", "float": "double", "bool": "bool",
    "complex": "c10::complex<double>", "ScalarType": "at::ScalarType",
}  # fmt: skip


def same_value(argument: Argument, value: object) -> str:
    """C++ that holds where the text of a default is the value that the dispatcher reads."""
    text = cpp_defaults.default_value(argument, symint=False)
    if isinstance(value, list) and (value or text == "{}"):
        element = ELEMENTS[argument.type.args[0].name]
        values = ", ".join(f"{element}({in_cpp(item)})" for item in value)
        return f"static_assert(same_list<{element}>({text}, {{{values}}}));\n"
    is_known = isinstance(value, (bool, int, float, complex, str))
    return f"static_assert(same({text}, {in_cpp(value)}));\n" if is_known else ""


def in_cpp(value: object) -> str:
    if isinstance(value, complex):
        return f"c10::complex<double>({value.real.hex()}, {value.imag.hex()})"
    if isinstance(value, str):
        return '"' + "".join(f"\\{code:03o}" for code in value.encode()) + '"'
    if isinstance(value, float):
        return value.hex()
    return str(value).lower() if value != -(2**63) else "INT64_MIN"


@pytest.mark.timeout(300)
def test_every_default_that_is_accepted_compiles_to_what_the_dispatcher_reads(tmp_path):
    torch = pytest.importorskip("torch")
    native, checks = [], []
    for i, text in enumerate(accepted_defaults()):
        native.append(f"- func: {quoted(f'op{i}(Tensor x, {text}) -> ()')}\n")
        theirs = torch._C.parse_schema(f"lib::f({text}) -> ()").arguments[0]
        ours = parse_schema(f"f({text}) -> ()").arguments[0]
        checks.append(same_value(ours, theirs.default_value))
    assert len(native) > 300 and sum(map(bool, checks)) > 250
    result = run(tmp_path, "".join(native))
    assert result.status == 0, result.report
    compile_text(tmp_path / "out", SAME + "".join(checks))


SUFFIXES = ["", "?", "[]", "[2]", "[]?", "?[]", "[][]", "?[]?", "[]?[]", "[][]?"]


@pytest.mark.timeout(300)
def test_every_type_that_is_accepted_compiles(tmp_path):
    """As an argument and as a result: the sources that call and register what takes it."""
    torch = pytest.importorskip("torch")
    native = []
    for i, (base, suffix) in enumerate(itertools.product(BASE_TYPES, SUFFIXES)):
        type_ = f"{base}{suffix}"
        for schema in (f"a{i}(Tensor x, {type_} v) -> ()", f"r{i}(Tensor x) -> {type_}"):
            try:
                parse_schema(schema)
                torch._C.parse_schema(f"lib::{schema}")
            except (SchemaError, RuntimeError):  # that the two agree is said of the parser
                continue
            native.append(
                f"- func: {quoted(schema)}\n  dispatch:\n    CPU: k_{schema.partition('(')[0]}\n"
            )
    assert len(native) > 400
    result = run(tmp_path, "".join(native))
    assert result.status == 0, result.report
    sources = sorted((tmp_path / "out" / "src").glob("*.cpp"))
    compile_text(tmp_path / "out", "".join(f'#include "{source}"\n' for source in sources))
