# SPDX-License-Identifier: BSD-3-Clause
"""Spec files for the fuzzer: made by the grammar, with names and texts that provoke, and mutated.

A case is the text of both files, as bytes; the second is empty where there is none. Everything is
drawn by hypothesis, which makes a failing case small and finds it again.
"""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import strategies as st

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "tests/codegen/error_table.txt").read_text()

# Keywords, names that generated code or ATen use, names that differ in case or underscores alone.
NAMES = (
    "f g h mul mul_ Mul self Self x X x_ _x other out grad grads result results i n new delete "
    "class auto final override template operator int double Tensor at c10 std torch None True "
    "__init__ _ __ call redispatch forward backward lambda 数 a1 op stack ctx keys errno NULL "
    "TORCH_CHECK int64_t"
).split()
TEXTS = st.one_of(
    st.sampled_from(
        [
            "",
            " ",
            "*/",
            "/*",
            "//",
            "\\",
            "\\n",
            '"',
            "'",
            "'''",
            '"""',
            'R"(',
            ')"',
            "??/",
            "\n",
            "\t",
            "\r\n",
            "\0",
            "\x07",
            "\u2028",
            "\ufeff",
            "é",
            "名",
            "💥",
            "${x}",
            "$name",
            "$$",
            "%s",
            "{",
            "}",
            "{0}",
            "#if 0",
            "#include <x>",
            "*/ int x; /*",
            "grad",
            "self",
            "a: b",
            "- a",
            "!!python/object:os.system x",
            "&a",
            "*a",
            "<<: *a",
            "...",
            "---",
            "[",
            "]",
            "|",
            ">",
        ]
    ),
    st.text(max_size=12),
)
# As they are written in double quotes: of characters, of numbers that are none, and wrong ones.
ESCAPES = st.sampled_from(
    r"\uD800 \udfff \ud83d\ude00 \U0000DC00 \U00110000 \UFFFFFFFF \U0001F600 \x85 \xff \u2028 "
    r"\uFEFF \uFFFF \N \_ \0 \e \q \u12 \U1F600 \\uD800".split(" ")
)
# How many types are nested: few, as many as may be, and more than a stack is deep.
DEPTHS = st.sampled_from([2, 5, 16, 19, 20, 21, 40, 1000])
OPERATORS = (
    "+",
    "-",
    "*",
    "/",
    ".",
    "->",
    ",",
    "?",
    ":",
    "==",
    "&&",
    "[",
    "]",
    "(",
    ")",
    "::",
    "=",
)

names = st.sampled_from(NAMES)
numbers = st.sampled_from(["0", "1", "-1", "2", "0.5", "1e-6", "9" * 30, "0x10", "inf", "nan"])


@st.composite
def nested(draw, type_: str) -> str:
    """The type, at times inside many others."""
    if draw(st.integers(0, 31)) < 31:
        return type_
    opening = draw(st.sampled_from(["", "", "(", "Dict(str, ", "Future("]))
    closing = ")" if opening else draw(st.sampled_from(["?", "[]", "[]?", "[2][]"]))
    count = draw(DEPTHS)
    return opening * count + type_ + closing * count


@st.composite
def types(draw, depth: int = 2) -> str:
    base = draw(
        st.sampled_from(
            "Tensor Tensor Tensor Tensor(a) Tensor(a!) Tensor(b!) Tensor(a -> *) int SymInt float "
            "bool str Scalar ScalarType Device Layout MemoryFormat Generator Dimname Storage "
            "Stream complex QScheme __torch__.C T Any Dict(str, Tensor) Future(Tensor) "
            "(Tensor, int) Tesnor".split(" ")
            + ["Dict(str, Tensor)", "(Tensor, int)", "Tensor(a|b)"]
        )
    )
    for _ in range(draw(st.integers(0, depth))):
        base += draw(st.sampled_from(["?", "[]", "[2]", "!", "[0]", "[999999999999]"]))
    return draw(nested(base))


@st.composite
def schemas(draw) -> str:
    name = draw(names) + draw(st.sampled_from(["", "", "_", ".out", ".Tensor", ".", "..", "._"]))
    arguments = []
    for _ in range(draw(st.integers(0, 4))):
        text = f"{draw(types())} {draw(names)}"
        if draw(st.booleans()):
            text += "=" + draw(st.one_of(numbers, st.sampled_from(["None", "[]", '"a"', "True"])))
        arguments.append(text)
    if draw(st.booleans()):
        arguments.insert(draw(st.integers(0, len(arguments))), "*")
    results = draw(st.lists(types(), max_size=3))
    named = [r + draw(st.sampled_from(["", " a", " b", " result"])) for r in results]
    returned = named[0] if len(named) == 1 else f"({', '.join(named)})"
    return f"{name}({', '.join(arguments)}) -> {returned}"


@st.composite
def formulas(draw) -> str:
    parts = st.one_of(
        names,
        numbers,
        st.sampled_from(OPERATORS),
        TEXTS,
        st.sampled_from(
            [
                "grad * other",
                "grad.sum()",
                "lib::f(grad)",
                'not_implemented("f")',
                "auto_linear",
                "auto_element_wise",
                "non_differentiable",
                "grads[0]",
                "grad_input_mask",
                "self.sizes()",
                "wrap_opt_if(self, grad_input_mask[0])",
                "original_self",
                "self_t",
                "result",
                "std::move(x)",
            ]
        ),
    )
    return draw(st.sampled_from([" ", ""])).join(draw(st.lists(parts, min_size=1, max_size=6)))


KEYS = {
    "dispatch": [
        "CPU: f",
        "CPU, CUDA: k",
        "CUDA: cpu_fallback",
        "Meta: m",
        "CompositeExplicitAutograd: c",
        "Autograd: a",
        "CPU: a::b",
        "CPU: ",
        "Nothing: k",
        "CPU: 1x",
        "CPU: class",
    ],
    "forms": ["[f_, f.out]", "f.out, g_", "[mul_, mul.out]", "[[f_]]", "{f_: 1}", "f..out"],
    "layout": ["contiguous", "last_dim_contiguous", "x", "[contiguous]"],
    "variants": ["function", "method", "function, method", "both"],
    "tags": ["core", "[pointwise]", "nondeterministic_seeded", "inplace_view", "no_such"],
    "structured": ["True", "False", "maybe"],
    "structured_delegate": ["f.out", "mul.out"],
    "structured_inherits": ["TensorIteratorBase", "Other"],
    "autogen": ["f.out", "g.out, f_", "x"],
    "device_check": ["NoCheck", "No"],
    "device_guard": ["False"],
    "autocast": ["fp32", "promote", "lower_precision_fp", "x"],
    "allocates": ["True", "False", "x"],
    "vmap": [
        "pointwise",
        "leading",
        "leading(x)",
        "leading(",
        "leading(x, self)",
        "leading(x, rows=n)",
        "leading(rows=",
        "leading(x, rows=len(x)) if (n > 1",
    ],
    "differentiable": ["False", "True"],
    "complex_autograd": ["False"],
    "pt2_compliant": ["False"],
    "python_module": ["nn"],
    "use_const_ref_for_mutable_tensors": ["True"],
    "manual_kernel_registration": ["True"],
    "category_override": ["factory", "x"],
    "cpp_no_default_args": ["[n]", "['i', 'no_such']"],
    "dtypes": ["Float", "AllAndComplex, Half", "[Bool, Nothing]", "[]"],
    "manual_cpp_binding": ["True"],
    "precomputed": ["[n -> int n, int i]", "['x ->']", "[no_such -> int n]"],
    "samples": [
        "[{self: [3, 4]}]",
        "[{x: [2, 0], n: -1}, {i: 1.5}]",
        "[{self: {size: [3], dtype: int64, low: 0}}]",
        "[{x: {size: [99999999, 99999999]}}]",
        "[{self: [[1], [2]], other: null}]",
        "[{self: &a [3, 4]}, {self: *a}]",
        "[{self: &a [*a]}]",
        "[&a {self: *a}]",
        "[{x: &a {size: [2], low: *a}}]",
        "{}",
    ],
    "ufunc_inner_loop": ["{Generic: f (AllAndComplex)}", "{ScalarOnly: f (Bool, x)}", "f"],
    "no_such_key": ["1"],
}
META = {
    "like": ["self", "x", "no_such"],
    "size": [
        "self.size()",
        "[n, 2]",
        "[self.size(0) / 0]",
        "[-1]",
        "broadcast(self, x)",
        "[[]]",
        "cat(",
    ],
    "dtype": ["float", "self.dtype", "promote(self, x)", "nothing"],
    "strides": ["[1]", "[]"],
    "when": ["n > 0", "x"],
}
ITERATORS = ["unary", "binary_float", "comparison", "ternary", "binarry"]
LOOPS = [
    f"for {loop}" for loop in ("t in x", "i in range(n)", "t in [", "self in x", "in", "1 in x")
]


def scalar(text: str) -> str:
    """A text as a YAML scalar in double quotes, so that any text can stand there."""
    escaped = "".join(
        {"\\": "\\\\", '"': '\\"'}.get(c, c if c.isprintable() else f"\\U{ord(c):08x}")
        for c in text
    )
    return f'"{escaped}"'


@st.composite
def quoted(draw, texts: st.SearchStrategy[str]) -> str:
    """A text as a YAML scalar, at times with an escape that is written in it."""
    text = scalar(draw(texts))
    if draw(st.integers(0, 15)) < 15:
        return text
    return text[:-1] + draw(ESCAPES) + scalar(draw(TEXTS))[1:]


@st.composite
def entries(draw) -> tuple[str, str]:
    """An entry of each file, the second maybe empty."""
    schema = draw(schemas())
    lines = [f"- func: {scalar(schema)}"]
    for key in draw(st.lists(st.sampled_from(list(KEYS)), max_size=4, unique=True)):
        values = draw(st.lists(st.sampled_from(KEYS[key]), min_size=1, max_size=2))
        if key == "dispatch" and draw(st.integers(0, 3)):
            lines += ["  dispatch:", *(f"    {value}" for value in values)]
        else:
            short = "[CPU, CUDA]" if key == "dispatch" else values[0]
            lines.append(f"  {key}: {short}")
    if draw(st.booleans()):
        lines.append(f"  doc: {draw(quoted(TEXTS))}")
    if draw(st.booleans()):
        lines.append("  meta:")
        rule = draw(st.lists(st.sampled_from(list(META)), min_size=1, max_size=3, unique=True))
        said = [f"{key}: {scalar(draw(st.sampled_from(META[key])))}" for key in rule]
        if draw(st.integers(0, 3)) == 0:
            said = [f"{scalar(draw(st.sampled_from(LOOPS)))}: {{{', '.join(said)}}}"]
        lines += [f"    {line}" for line in said]
        if draw(st.integers(0, 3)) == 0:
            lines[-1 - len(said) :] = [f"  meta: {draw(st.sampled_from(ITERATORS))}"]
    if draw(st.integers(0, 3)) == 0:
        lines += [
            "  layout:",
            f"    {draw(names)}: {draw(st.sampled_from(['contiguous', 'any', 'x']))}",
        ]
    derivative = ""
    if draw(st.booleans()):
        of = schema if draw(st.integers(0, 3)) else draw(schemas())
        derivative = f"- name: {scalar(of)}\n"
        named = st.one_of(names, st.just("result"), st.just("self, x"))
        for name in draw(st.lists(named, max_size=3, unique=True)):
            derivative += f"  {scalar(name)}: {draw(quoted(formulas()))}\n"
        if draw(st.integers(0, 3)) == 0:
            derivative += (
                f"  output_differentiability: [{draw(st.sampled_from(['True', 'x', '1']))}]\n"
            )
    return "\n".join(lines) + "\n", derivative


@st.composite
def grammatical(draw) -> tuple[bytes, bytes]:
    found = draw(st.lists(entries(), min_size=1, max_size=5))
    native, derivatives = ("".join(part) for part in zip(*found, strict=True))
    return native.encode(), derivatives.encode()


SOUND_TYPES = (
    "Tensor Tensor? Tensor[] Tensor?[] int SymInt int[2] float bool str Scalar ScalarType? bool[3] "
    "float[]? Device complex SymInt[] Generator? Layout? MemoryFormat? Storage Dimname[]?"
).split()
# Words of the schema's language are no names, and `grad` is the incoming gradient's.
UNSOUND_NAMES = ("None", "True", "class", "lambda", "grad")
SOUND_NAMES = [n for n in NAMES if n.isascii() and n.strip("_") and n not in UNSOUND_NAMES]
SOUND_FORMULAS = ["grad", "grad * 2", "at::sin(grad)", "non_differentiable", "zeros_like(grad)"]


@st.composite
def sound(draw) -> tuple[bytes, bytes]:
    """Operators that nothing is wrong with, save for what their names and texts provoke."""
    sound_names = st.sampled_from(SOUND_NAMES)
    native, derivatives = [], []
    for name in draw(st.lists(sound_names, min_size=1, max_size=4, unique=True)):
        arguments = draw(st.lists(sound_names, min_size=1, max_size=4, unique=True))
        first, *others = arguments
        parts = [f"Tensor {first}"]
        for other in sorted(others, key=len):
            type_ = draw(nested(draw(st.sampled_from(SOUND_TYPES))))
            parts.append(f"{type_} {other}")
        results = draw(st.sampled_from(["Tensor", "(Tensor, Tensor)", "Tensor[]", "int", "()"]))
        schema = f"{name}({', '.join(parts)}) -> {results}"
        doc = draw(quoted(TEXTS))
        keys = "dispatch:\n    CPU: kernel"
        if draw(st.booleans()):
            keys = draw(st.sampled_from(["dispatch: CPU", "dispatch: [CPU, Meta]"]))
            if results == "Tensor" and not name.startswith("_") and not name.endswith("_"):
                keys += f"\n  forms: [{name}_, {name}.out]  # {draw(st.sampled_from(NAMES))!a}"
        native.append(f"- func: {scalar(schema)}\n  doc: {doc}\n  {keys}\n")
        if results == "Tensor" and draw(st.booleans()):
            formula = draw(st.sampled_from(SOUND_FORMULAS))
            derivatives.append(f"- name: {scalar(schema)}\n  {scalar(first)}: {scalar(formula)}\n")
    return "".join(native).encode(), "".join(derivatives).encode()


def _blocks(path: Path) -> list[str]:
    """The entries of a spec file, each with its comments."""
    return re.split(r"(?m)^(?=- )", path.read_text())[1:] if path.exists() else []


def _sound_seeds() -> list[tuple[str, str]]:
    """The specs of this repository's libraries: whole, and each functional entry for itself."""
    found = []
    for path in [
        ROOT / "native_functions.yaml",
        *sorted(ROOT.glob("tests/*/*/native_functions.yaml")),
    ]:
        other = path.with_name("derivatives.yaml")
        if "override" not in path.as_posix():  # aten's schemas are found by the build
            found.append((path.read_text(), other.read_text() if other.exists() else ""))
        formulas_of = {block.split("(")[0].split()[-1]: block for block in _blocks(other)}
        for block in _blocks(path):
            name = block.split("(")[0].split()[-1]
            if "structured" not in block:
                found.append((block, formulas_of.get(name, "")))
    return found


def _seeds() -> list[tuple[str, str]]:
    """And each case of the table of errors."""
    found = _sound_seeds()
    for case in re.split(r"(?m)^##### (?!derivatives\.yaml|reported)", TABLE)[1:]:
        specs = case.partition("\n")[2].partition("##### reported")[0]
        native, _, derivatives = specs.partition("##### derivatives.yaml\n")
        found.append((native, derivatives))
    return found


SEEDS = _seeds()


@st.composite
def mutated(draw) -> tuple[bytes, bytes]:
    """A spec with a few changes of characters, words and lines, or none."""
    files = list(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(0, 3))):
        which = draw(st.integers(0, 1))
        files[which] = _mutate(draw, files[which])
    return tuple(_encode(draw, text) for text in files)


def _mutate(draw, text: str) -> str:
    kind = draw(st.sampled_from(["insert", "delete", "double", "cut", "word", "lines", "indent"]))
    at = draw(st.integers(0, len(text)))
    end = min(len(text), at + draw(st.integers(1, 8)))
    if kind == "insert":
        return text[:at] + draw(st.one_of(TEXTS, ESCAPES)) + text[at:]
    if kind == "delete":
        return text[:at] + text[end:]
    if kind == "double":
        return text[:end] + text[at:end] * draw(st.integers(1, 3)) + text[end:]
    if kind == "cut":
        return text[:at]
    words = list(re.finditer(r"\w+", text))
    if kind == "word" and words:
        one, other = draw(st.sampled_from(words)), draw(st.sampled_from(words))
        new = draw(st.sampled_from([other.group(), *NAMES]))
        return text[: one.start()] + new + text[one.end() :]
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    first, second = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    if kind == "lines":
        lines[first], lines[second] = lines[second], lines[first]
    else:
        lines[first] = " " * draw(st.integers(0, 6)) + lines[first].lstrip(" ")
    return "".join(lines)


def _encode(draw, text: str) -> bytes:
    content = text.encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 15)) == 0:  # what is no UTF-8
        at = draw(st.integers(0, len(content)))
        content = content[:at] + draw(st.binary(min_size=1, max_size=3)) + content[at:]
    return content


cases = st.one_of(sound(), grammatical(), mutated())
