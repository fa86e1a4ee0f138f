# SPDX-License-Identifier: BSD-3-Clause
"""Operators for the fuzzer that compute something: overload sets, forms, mixed results, buffers and
views, each with a kernel made of ATen's operators, formulas, and a reference.

The reference is a CompositeImplicitAutograd operator of the same kernel, under another name and
without overloads: what autograd and torch's transforms make of it is ATen's.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from hypothesis import strategies as st

# How a parameter is written in C++.
_CPP = {
    "Tensor": "const at::Tensor&",
    "Tensor(a)": "const at::Tensor&",
    "Tensor(a -> *)": "const at::Tensor&",
    "Tensor(a!)": "at::Tensor&",
    "Tensor(b!)": "at::Tensor&",
    "Tensor(c!)": "at::Tensor&",
    "Tensor?": "const std::optional<at::Tensor>&",
    "Tensor(a!)?": "const std::optional<at::Tensor>&",
    "float": "double",
    "Scalar": "const at::Scalar&",
    "int": "int64_t",
    "bool": "bool",
    "str": "c10::string_view",
}
# Arguments that are no tensors: a default, and what the value is multiplied by.
_NUMBERS = {
    "float": ("1.5", "{}"),
    "Scalar": ("2", "{}"),
    "int": ("3", "{}"),
    "bool": ("True", "({} ? 1.0 : 0.5)"),
    "str": ('"exact"', '({} == "exact" ? 1.0 : 0.25)'),
}
# Functions of one tensor, and their derivatives.
_FUNCTIONS = {
    "at::sin({})": "at::cos({})",
    "at::cos({})": "(-at::sin({}))",
    "at::tanh({})": "(1 - at::tanh({}) * at::tanh({}))",
    "at::exp({} * 0.5)": "(at::exp({} * 0.5) * 0.5)",
    "({} * {})": "({} * 2)",
    "(-{})": "(at::ones_like({}) * -1)",
}
# Views of a tensor of two dimensions, and the gradient; what has another size comes first.
_SMALLER = {
    "": "{}",
    ".narrow(0, 0, 2)": "at::slice_backward_symint({}, x.sym_sizes(), 0, 0, 2, 1)",
    ".slice(1, 0, 3, 2)": "at::slice_backward_symint({}, x.sym_sizes(), 1, 0, 3, 2)",
}
_RESHAPED = {
    ".transpose(0, 1)": "{}.transpose(0, 1)",
    ".unsqueeze(1)": "{}.squeeze(1)",
    ".t()": "{}.t()",
}


@dataclass(frozen=True)
class Expression:
    """A value in C++, and its derivatives by the arguments that it is computed from."""

    text: str
    by: dict[str, str] = field(default_factory=dict)

    def applied(self, function: str) -> Expression:
        outer = _FUNCTIONS[function].replace("{}", self.text)
        by = {name: f"{inner} * {outer}" if inner else outer for name, inner in self.by.items()}
        return Expression(function.replace("{}", self.text), by)

    def times(self, other: Expression) -> Expression:
        by = {n: f"{inner} * {other.text}" if inner else other.text for n, inner in self.by.items()}
        for name, inner in other.by.items():
            more = f"{inner} * {self.text}" if inner else self.text
            by[name] = f"({by[name]} + {more})" if name in by else more
        return Expression(f"({self.text} * {other.text})", by)

    def plus(self, other: Expression) -> Expression:
        one = {n: inner or f"at::ones_like({n})" for n, inner in self.by.items()}
        for name, inner in other.by.items():
            more = inner or f"at::ones_like({name})"
            one[name] = f"({one[name]} + {more})" if name in one else more
        return Expression(f"({self.text} + {other.text})", one)


@dataclass(frozen=True)
class Composition:
    """One operator of an overload set, with its forms and its reference."""

    name: str  # with its overload
    reference: str
    schema: str
    spec: str  # the entries of both
    derivatives: str
    kernels: str
    has_formula: bool
    has_tangent: bool
    differentiable: tuple[str, ...]  # the arguments to which gradients flow, with a formula
    inplace: str | None = None  # the names of its forms
    out: str | None = None

    def called(self, base: str) -> Composition:
        """The same of another name: that of what is drawn for a library is `@`."""
        texts = {key: value for key, value in vars(self).items() if isinstance(value, str)}
        named = {key: value.replace("@", base) for key, value in texts.items()}
        return dataclasses.replace(self, **named)


@dataclass
class _Parts:
    """What differs from one kind of operator to another."""

    arguments: list[str]
    results: str
    result: str  # in C++
    body: str
    formulas: dict[str, str] = field(default_factory=dict)
    tangents: dict[str, str] = field(default_factory=dict)
    is_new: bool = False  # a tensor like `x`, which can have forms
    is_pointwise: bool = False

    def schema(self, name: str) -> str:
        return f"{name}({', '.join(self.arguments)}) -> {self.results}"

    def kernel(self, name: str) -> str:
        return f"{self.result} {name}({_parameters(self.arguments)}) {{\n{self.body}}}\n\n"


def _parameters(arguments: list[str]) -> str:
    found = []
    for argument in arguments:
        if argument != "*":
            type_, _, name = argument.partition("=")[0].rpartition(" ")
            found.append(f"{_CPP[type_]} {name}")
    return ", ".join(found)


def _named(pattern: str, text: str, names) -> str:
    """The text with other names for some of those in it."""
    for name in names:
        text = re.sub(rf"\b{name}\b", pattern.format(name), text)
    return text


def _gradients(results: list[tuple[str, Expression]], names: list[str]) -> dict[str, str]:
    """The formula of each argument: gradients of real arguments are real."""
    found = {}
    for name in names:
        terms = [
            f"{_defined(grad, name)} * at::conj({e.by[name] or f'at::ones_like({name})'})"
            for grad, e in results
            if name in e.by
        ]
        found[name] = f"handle_r_to_c({name}.scalar_type(), {' + '.join(terms)})"
    return found


def _defined(grad: str, name: str) -> str:
    """Of several results some have no gradient."""
    return grad if grad == "grad" else f"({grad}.defined() ? {grad} : at::zeros_like({name}))"


def _tangent(expression: Expression) -> str:
    terms = []
    for name, inner in expression.by.items():
        factor = inner or f"at::ones_like({name})"
        terms.append(f"{name}_t * {_named('{}_p', factor, expression.by)}")
    return " + ".join(terms)


@st.composite
def _numbers(draw, most: int = 2) -> tuple[list[str], list[Expression]]:
    """Arguments that are no tensors, and what the value is multiplied by."""
    arguments, factors = [], []
    for index in range(draw(st.integers(0, most))):
        type_ = draw(st.sampled_from(sorted(_NUMBERS)))
        default, factor = _NUMBERS[type_]
        has_default = "=" in "".join(arguments) or draw(st.booleans())
        arguments.append(f"{type_} n{index}" + (f"={default}" if has_default else ""))
        factors.append(Expression(factor.format(f"n{index}")))
    if arguments and draw(st.integers(0, 3)) == 0:
        arguments.insert(draw(st.integers(0, len(arguments) - 1)), "*")
    return arguments, factors


@st.composite
def _expressions(draw, names: list[str], factors=(), constants=()) -> Expression:
    """Of all the tensors, with at least one operation: a value that is new."""
    functions = st.sampled_from(sorted(_FUNCTIONS))
    leaves = [Expression(name, {name: ""}) for name in draw(st.permutations(names))]
    found = leaves[0].applied(draw(functions))
    for leaf in [*leaves[1:], *map(Expression, constants), leaves[0]]:
        if draw(st.booleans()):
            leaf = leaf.applied(draw(functions))
        found = found.times(leaf) if draw(st.booleans()) else found.plus(leaf)
    for factor in factors:
        found = found.times(factor)
    return found


# The kinds


@st.composite
def _new(draw) -> _Parts:
    names = ["x", "y"][: draw(st.integers(1, 2))]
    arguments, factors = draw(_numbers())
    e = draw(_expressions(names, factors))
    return _Parts(
        [*(f"Tensor {name}" for name in names), *arguments], "Tensor", "at::Tensor",
        f"  return {e.text};\n", _gradients([("grad", e)], names), {"result": _tangent(e)},
        is_new=True, is_pointwise=True,
    )  # fmt: skip


@st.composite
def _several(draw) -> _Parts:
    names = ["x", "y"]
    arguments, factors = draw(_numbers())
    first, second = draw(_expressions(names, factors)), draw(_expressions(names))
    arguments = [*(f"Tensor {name}" for name in names), *arguments]
    body = f"  return {{{first.text}, {second.text}}};\n"
    if draw(st.integers(0, 3)) == 0:
        return _Parts(arguments, "Tensor[]", "std::vector<at::Tensor>", body)
    return _Parts(
        arguments, "(Tensor, Tensor)", "std::tuple<at::Tensor, at::Tensor>", body,
        _gradients([("grads[0]", first), ("grads[1]", second)], names),
        {"result0": _tangent(first), "result1": _tangent(second)}, is_pointwise=True,
    )  # fmt: skip


@st.composite
def _optional(draw) -> _Parts:
    arguments, factors = draw(_numbers(1))
    e = draw(_expressions(["x", "w"], factors))
    given = "(w.defined() ? w : at::ones_like(x))"
    formulas = {}
    for name, text in _gradients([("grad", e)], ["x", "w"]).items():
        head, _, rest = text.partition(", ")
        formulas[name] = f"{head}, {_named(given, rest, ['w'])}"
    formulas["w"] = f"w.defined() ? {formulas['w']} : Tensor()"
    body = "  const at::Tensor w_ = w.has_value() ? *w : at::ones_like(x);\n"
    body += f"  return {_named('{}_', e.text, ['w'])};\n"
    return _Parts(["Tensor x", "Tensor? w", *arguments], "Tensor", "at::Tensor", body, formulas)


@st.composite
def _mixed(draw) -> _Parts:
    names = ["x", "y"][: draw(st.integers(1, 2))]
    arguments, factors = draw(_numbers(1))
    written, new = draw(_expressions(names, factors)), draw(_expressions(names))
    is_first = draw(st.booleans())
    at_out, at_new = (0, 1) if is_first else (1, 0)
    results = "(Tensor(a!), Tensor)" if is_first else "(Tensor, Tensor(a!))"
    values = "out, fresh" if is_first else "fresh, out"
    body = f"  const at::Tensor fresh = {new.text};\n  put(out * 0.5 + {written.text}, out);\n"
    gradients = _gradients([(f"grads[{at_out}]", written), (f"grads[{at_new}]", new)], names)
    return _Parts(
        ["Tensor x", "Tensor(a!) out", *(f"Tensor {name}" for name in names[1:]), *arguments],
        results, "std::tuple<at::Tensor, at::Tensor>", body + f"  return {{{values}}};\n",
        {"out": f"{_defined(f'grads[{at_out}]', 'x')} * 0.5", **gradients},
        {f"result{at_out}": f"original_out_t * 0.5 + {_tangent(written)}",
         f"result{at_new}": _tangent(new)},
    )  # fmt: skip


@st.composite
def _aside(draw) -> _Parts:
    arguments, factors = draw(_numbers(1))
    e = draw(_expressions(["x"], factors, ["buffer"]))
    body = _put_aside("buffer", "x", [e])
    return _Parts(
        draw(st.permutations(["Tensor x", "Tensor(a!) buffer"])) + arguments, "Tensor",
        "at::Tensor", body + f"  return {e.text};\n", _gradients([("grad", e)], ["x"]),
        {"result": _tangent(e)},
    )  # fmt: skip


@st.composite
def _optional_out(draw) -> _Parts:
    arguments, factors = draw(_numbers(1))
    arguments = [a if "=" in a or a == "*" else f"{a}={_NUMBERS[a.split()[0]][0]}"
                 for a in arguments]  # fmt: skip
    e = draw(_expressions(["x"], factors))
    body = f"  const at::Tensor value = {e.text};\n"
    body += "  if (!out.has_value()) {\n    return value;\n  }\n"
    body += "  put(value, *out);\n  return *out;\n"
    return _Parts(
        ["Tensor x", "Tensor(a!)? out=None", *arguments], "Tensor(a!)", "at::Tensor", body,
        {**_gradients([("grad", e)], ["x"]), "out": "at::zeros_like(grad)"},
        {"result": _tangent(e)},
    )  # fmt: skip


@st.composite
def _two_written(draw) -> _Parts:
    names = ["x", "y"]
    first, second = draw(_expressions(names)), draw(_expressions(names))
    turned = draw(st.booleans())
    results = "(Tensor(b!), Tensor(a!))" if turned else "(Tensor(a!), Tensor(b!))"
    result = "at::Tensor" if turned else "at::Tensor&"
    body = "".join(f"  const at::Tensor {name}_ = {name}.clone();\n" for name in names)
    for value, e in (("first", first), ("second", second)):
        body += f"  const at::Tensor {value} = {_named('{}_', e.text, names)};\n"
    body += "  put(first, x);\n  put(second, y);\n"
    values = "y, x" if turned else "x, y"
    at_x, at_y = (1, 0) if turned else (0, 1)
    tangents = {f"result{at_x}": _tangent(first), f"result{at_y}": _tangent(second)}
    of_old = ["x_t", "y_t", "x_p", "y_p"]
    tangents = {name: _named("original_{}", text, of_old) for name, text in tangents.items()}
    return _Parts(
        ["Tensor(a!) x", "Tensor(b!) y"], results, f"std::tuple<{result}, {result}>",
        body + f"  return {{{values}}};\n",
        _gradients([(f"grads[{at_x}]", first), (f"grads[{at_y}]", second)], names), tangents,
    )  # fmt: skip


@st.composite
def _nothing(draw) -> _Parts:
    arguments, factors = draw(_numbers(1))
    e = draw(_expressions(["x"], factors))
    body = f"  buffer.add_({e.text});\n"
    return _Parts(["Tensor(a!) buffer", "Tensor x", *arguments], "()", "void", body)


@st.composite
def _any_written(draw) -> _Parts:
    """Up to three tensors that are read and three that are written to, in any order; of the latter
    some are results, in any order, between new ones, and a number may be the last."""
    read = ["x", "y", "z"][: draw(st.integers(0, 3))]
    written = ["u", "v", "w"][: draw(st.integers(0 if read else 1, 3))]
    returned = [n for n in draw(st.permutations(written)) if draw(st.integers(0, 3)) < 3]
    aside = [name for name in written if name not in returned]
    known = [*read, *returned]
    fresh = ["fresh0", "fresh1"][: draw(st.integers(0 if written else 1, 2)) if known else 0]
    results = draw(st.permutations([*returned, *fresh]))
    types = {name: f"Tensor({letter}!)" for name, letter in zip(written, "abc")}
    # once their old values are known by another name, an expression is of old values
    old = {name: f"{name}_" for name in returned}
    values = {name: draw(_expressions(known, constants=aside)) for name in results}
    body = "".join(f"  const at::Tensor {old[name]} = {name}.clone();\n" for name in returned)
    for name in aside:
        body += _put_aside(name, read[0] if read else None, values.values())
    for name, e in values.items():
        body += f"  const at::Tensor {name}_new = {_named('{}_', e.text, returned)};\n"
    body += "".join(f"  put({name}_new, {name});\n" for name in returned)
    items = [name if name in returned else f"{name}_new" for name in results]
    kinds = [types.get(name, "Tensor") for name in results]
    order = draw(st.permutations([*read, *written]))
    # as the dispatcher has it: the first argument of an in-place operator, else the last ones
    is_first = len(results) == 1 and order[0] in written
    given = list(order[:1] if is_first else order[-len(results) :])
    is_given = given == list(results)
    cpp = ["at::Tensor&" if is_given else "at::Tensor" for _ in results]
    if results and draw(st.integers(0, 3)) == 0:
        items, kinds = [*items, f"{order[0]}.dim()"], [*kinds, "int"]
        cpp = ["at::Tensor"] * len(results) + ["int64_t"]
    if len(items) == 1:
        result, answer, end = kinds[0], cpp[0], f"  return {items[0]};\n"
    elif items:
        result, answer = f"({', '.join(kinds)})", f"std::tuple<{', '.join(cpp)}>"
        end = f"  return {{{', '.join(items)}}};\n"
    else:
        result, answer, end = "()", "void", ""
    return _Parts(
        [f"{types.get(name, 'Tensor')} {name}" for name in order], result, answer, body + end,
        *_formulas_of_written(values, known, returned, single=len(items) == 1),
    )  # fmt: skip


def _put_aside(name: str, source: str | None, values: Iterable[Expression]) -> str:
    """Writes to a buffer before results are made of these values. Where one reads the buffer, what
    it holds comes from no argument: a formula would not be the derivative."""
    is_read = any(re.search(rf"\b{name}\b", value.text) for value in values)
    more = f".add_({'0.25' if is_read else f'{source}.detach()'})" if source else ""
    return f"  {{\n    const at::NoGradGuard guard;\n    {name}.mul_(0.5){more};\n  }}\n"


def _formulas_of_written(
    values: dict[str, Expression], known: list[str], returned: list[str], single: bool
) -> tuple[dict[str, str], dict[str, str]]:
    """Gradients, and tangents: of old values, which have names of their own there."""
    named = ["grad"] if len(values) == 1 else [f"grads[{i}]" for i in range(len(values))]
    formulas = _gradients(list(zip(named, values.values())), known) if values else {}
    of_old = [f"{name}_{end}" for name in returned for end in "tp"]
    tangents = {
        "result" if single else f"result{i}": _named("original_{}", _tangent(e), of_old)
        for i, e in enumerate(values.values())
    }
    return formulas, tangents


@st.composite
def _view(draw) -> _Parts:
    if draw(st.integers(0, 3)) == 0:
        dim = draw(st.integers(0, 1))
        return _Parts(
            ["Tensor(a -> *) x"], "Tensor(a)[]", "std::vector<at::Tensor>",
            f"  return x.unbind({dim});\n", {"x": f"unbind_backward(grads, {dim})"},
            {"result": "auto_linear"},
        )  # fmt: skip
    smaller = draw(st.sampled_from(sorted(_SMALLER)))
    reshaped = draw(st.sampled_from(sorted(_RESHAPED)))
    gradient = _SMALLER[smaller].format(_RESHAPED[reshaped].format("grad"))
    body = f"  return x{smaller}{reshaped};\n"
    formulas = {"x": gradient}
    return _Parts(["Tensor(a) x"], "Tensor(a)", "at::Tensor", body, formulas,
                  {"result": "auto_linear"})  # fmt: skip


KINDS = {
    "new": _new(), "several": _several(), "optional": _optional(), "mixed": _mixed(),
    "aside": _aside(), "optional_out": _optional_out(), "two_written": _two_written(),
    "nothing": _nothing(), "any_written": _any_written(), "view": _view(),
}  # fmt: skip


# Entries


@st.composite
def compositions(draw, kind: str, base: str, overload: str) -> Composition:
    """An operator of a kind."""
    parts = draw(KINDS[kind])
    name = f"{base}.{overload}" if overload else base
    handle = f"{base}_{overload}" if overload else base
    has_formula = bool(parts.formulas) and draw(st.integers(0, 7)) > 0
    has_tangent = has_formula and bool(parts.tangents) and draw(st.integers(0, 3)) > 0
    keys = draw(_keys(parts, kind, handle))
    inplace = out = None
    if parts.is_new:
        inplace = f"{base}_.{overload}" if overload else f"{base}_"
        out = f"{base}.{overload}_out" if overload else f"{base}.out"
        inplace, out = (form if draw(st.booleans()) else None for form in (inplace, out))
    is_made = out is not None and draw(st.booleans())
    if is_made:
        keys.append(f"autogen: {out}")
    schema = parts.schema(name)
    spec, kernels = _entry(schema, keys), parts.kernel(handle)
    if parts.is_new:  # by a rule of `meta:` the kernel is given the result
        parameters, value = _parameters([*parts.arguments, "Tensor result"]), _value(parts)
        kernels += f"void {handle}_into({parameters}) {{\n  result.copy_({value});\n}}\n\n"
    spec += _entry(parts.schema(f"{handle}_reference"),
                   [f"dispatch:\n    CompositeImplicitAutograd: {handle}"])  # fmt: skip
    for form in (inplace, None if is_made else out):
        if form is not None:
            entry, kernel = _form(parts, form, handle, [k for k in keys if k.startswith("dtypes")])
            spec, kernels = spec + entry, kernels + kernel
    formulas = {**parts.formulas, **(parts.tangents if has_tangent else {})}
    lines = "".join(f"  {n}: '{text}'\n" for n, text in formulas.items())
    return Composition(
        name, f"{handle}_reference", schema, spec,
        f"- name: {schema}\n{lines}\n" if has_formula else "", kernels, has_formula, has_tangent,
        _differentiable(parts), inplace, out,
    )  # fmt: skip


def _differentiable(parts: _Parts) -> tuple[str, ...]:
    """Tensors of operators that have no formula at all are asked for a gradient too."""
    return tuple(parts.formulas) or tuple({"x"} if "Tensor" in parts.results else ())


@st.composite
def _keys(draw, parts: _Parts, kind: str, handle: str) -> list[str]:
    """What an entry says beside its schema."""
    is_composite = kind == "view" or draw(st.booleans())
    key = "CompositeExplicitAutograd" if is_composite else "CPU"
    keys = [f"dispatch:\n    {key}: {handle}"]
    if not is_composite:
        keys = [f"{keys[0]}\n    Meta: {handle}"]
    if parts.is_new and draw(st.booleans()):
        keys = ["meta:\n    like: x", f"dispatch:\n    CPU: {handle}_into"]
    if parts.is_pointwise and draw(st.booleans()):
        keys.append("vmap: pointwise")
    if draw(st.integers(0, 3)) == 0:
        keys.append("dtypes: FloatingAndComplex")
    return [*keys, f"samples: [{{{_sample(parts)}}}]"]


def _sample(parts: _Parts) -> str:
    """All tensors of one shape; what is written to beside results has no gradient."""
    values = {"float": "0.5", "Scalar": "0.75", "int": "2", "bool": "False", "str": "other"}
    found = []
    for argument in parts.arguments:
        type_, _, name = argument.rpartition(" ")
        if "Tensor" in type_:
            is_leaf = not parts.formulas or name in parts.formulas
            size = "[3, 4]" if is_leaf else "{size: [3, 4], requires_grad: False}"
            found.append(f"{name.partition('=')[0]}: {size}")
        elif "=" not in name and argument != "*":
            found.append(f"{name}: {values[type_]}")
    return ", ".join(found)


def _entry(schema: str, keys: list[str]) -> str:
    return "".join([f"- func: {schema}\n", *(f"  {key}\n" for key in keys), "\n"])


def _value(parts: _Parts) -> str:
    return parts.body.split("return ")[1].rstrip(";\n")


def _form(parts: _Parts, name: str, handle: str, dtypes: list[str]) -> tuple[str, str]:
    """The entry and kernel of an in-place or out= form, written by hand."""
    arguments, value = list(parts.arguments), _value(parts)
    if name.partition(".")[0].endswith("_"):
        arguments[0] = "Tensor(a!) x"
        body, handle = f"  put({value}, x);\n  return x;\n", f"{handle}_inplace"
    else:
        arguments += [*([] if "*" in arguments else ["*"]), "Tensor(a!) out"]
        body = f"  const at::Tensor result = {value};\n"
        body += "  at::native::resize_output_symint(out, result.sym_sizes());\n"
        body += "  put(result, out);\n  return out;\n"
        handle = f"{handle}_out"
    form = _Parts(arguments, "Tensor(a!)", "at::Tensor&", body)
    keys = [f"dispatch:\n    CompositeExplicitAutograd: {handle}", *dtypes]
    return _entry(form.schema(name), keys), form.kernel(handle)


# What tells the overloads of a set apart in C++: an argument of a type of their own, or nothing.
OVERLOADS = ("", "exact", "Tensor", "dim", "out_of")


@st.composite
def overload_sets(draw, base: str = "f") -> list[Composition]:
    """One to three operators of one name."""
    kind = draw(st.sampled_from(sorted(KINDS)))
    overloads = draw(st.lists(st.sampled_from(OVERLOADS), min_size=1, max_size=3, unique=True))
    kinds = [kind if draw(st.booleans()) else draw(st.sampled_from(sorted(KINDS)))
             for _ in overloads]  # fmt: skip
    return [draw(compositions(k, base, o)) for k, o in zip(kinds, overloads)]


_INCLUDES = "".join(
    f"#include <{header}>\n"
    for header in (
        "torchext/precompiled.h", "ATen/ATen.h", "ATen/core/grad_mode.h", "ATen/native/Resize.h",
    )
)  # fmt: skip
# As ATen's in-place operators do: complex numbers become no real ones.
_PUT = """\
static void put(const at::Tensor& value, const at::Tensor& to) {
  TORCH_CHECK(at::canCast(value.scalar_type(), to.scalar_type()), "result type can't be cast");
  to.copy_(value);
}

"""


def texts(found: list[Composition], namespace: str) -> tuple[str, str, str]:
    """native_functions.yaml, derivatives.yaml and kernels.cpp of some operators."""
    kernels = "".join(c.kernels for c in found)
    source = f"{_INCLUDES}#include <{namespace}/kernels.h>\n\nnamespace {namespace}::native {{\n\n"
    source += f"{_PUT}{kernels}}}\n"
    return "".join(c.spec for c in found), "".join(c.derivatives for c in found), source
