# SPDX-License-Identifier: BSD-3-Clause
"""The C++ text of structured operators, their classes and the functions that run them, and of the
layouts of arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...cpp.signatures import Parameter, Signature
from ...cpp.template import fill
from ...plan.calls import GivenArgument, LaidOut, Passed, StructuredCall
from ...plan.kernels import StructuredPlan
from ...plan.library import OperatorPlan
from .scope import Scope

_META = """
// $location: the meta function of $schema
struct $name : public $base {
$precomputed
  $prototype;
};
"""

_PRECOMPUTED = """
  struct precomputed_values {
$members
  };

  /// What `meta` returns; each value is set once, by its function.
  template <$parameters>
  struct precompute_out : public precomputed_values {
$setters
  };

  using meta_return_ty = precompute_out<$all>;

"""

_SETTER = """
    precompute_out<$after> set_$name($type value) const {
      static_assert(!$flag, "$name is set already");
      precompute_out<$after> next{*this};
      next.$name = ::std::move(value);
      return next;
    }
"""

_KERNEL = """
// $location: the $keys kernel of $schema
struct $name : public ::$meta {
  $prototype;
};
"""


# The bases of meta functions' classes, and the header of each; by whether it is the iterator's.
_BASES = {
    True: ("at::TensorIteratorBase", "#include <torchext/iterator_base.h>"),
    False: ("torchext::MetaBase", "#include <torchext/meta_base.h>"),
}


def includes(structured: list[StructuredPlan]) -> list[str]:
    """What the declarations of these classes need beside what every kernel does."""
    if not structured:
        return []
    used = {plan.is_iterator for plan in structured}
    return [header for is_iterator, (_, header) in _BASES.items() if is_iterator in used]


def declarations(op: OperatorPlan, plan: StructuredPlan) -> Iterator[tuple[str, str]]:
    """Each class of a structured operator, with the namespace that it stands in."""
    space, _, name = plan.meta_class.rpartition("::")
    location, schema = op.spec_line, op.schema
    yield (
        space,
        fill(
            _META,
            location=location,
            schema=schema,
            name=name,
            base=_BASES[plan.is_iterator][0],
            precomputed=_precomputed(plan.precomputed) if plan.precomputed else [],
            prototype=plan.meta.prototype("meta"),
        ),
    )
    for kernel in plan.kernels:
        space, _, name = kernel.name.rpartition("::")
        text = fill(
            _KERNEL,
            location=location,
            schema=schema,
            keys=", ".join(kernel.keys),
            name=name,
            meta=plan.meta_class,
            prototype=plan.impl.prototype("impl"),
        )
        yield space, text


def _precomputed(members: tuple[Parameter, ...]) -> str:
    flags = [f"has_{member.name}" for member in members]
    setters = [
        fill(
            _SETTER,
            name=member.name,
            type=member.type,
            flag=flags[index],
            after=[*flags[:index], "true", *flags[index + 1 :]],
        )
        for index, member in enumerate(members)
    ]
    return fill(
        _PRECOMPUTED,
        members=[f"    {member.type} {member.name}{{}};" for member in members],
        parameters=[f"bool {flag} = false" for flag in flags],
        setters="\n".join(setters).rstrip("\n").split("\n"),
        all=["true"] * len(members),
    ).strip("\n")


def call_lines(
    op: str, call: StructuredCall, signature: Signature, scope: Scope, serves_meta: bool
) -> Iterator[str]:
    """The statements that run the meta function and the kernel, and return the results."""
    given = call.written
    for index, name in enumerate(call.given):
        value = f" = given_or({name}, at::Tensor())" if name else ""
        yield f"  const at::Tensor given_{index}{value};"
    given = tuple(f"given_{index}" for index, _ in enumerate(call.given)) or given
    arguments = ", ".join([f'"{op}"', *given])
    count = "kAnyNumber" if call.is_list else call.results
    own = scope.name(call.meta_class)
    yield f"  structured::{call.form}<{own}, {scope.home(call.home)}, {count}> op({arguments});"
    if call.separated:
        separated = (name or "at::Tensor()" for name in call.separated)
        yield f"  op.reads({', '.join(separated)});"
    result = "const auto precomputed = " if call.keeps_precomputed else ""
    yield f"  {result}op.meta({', '.join(map(passed, call.meta_arguments))});"
    kernel = list(_kernel_lines(op, call, scope))
    if serves_meta and (call.laid_out or call.kernel_function):
        kernel = [
            "  if constexpr (kHome != Home::kMeta) {",
            *(f"  {line}" for line in kernel),
            "  }",
        ]
    yield from kernel
    yield f"  return {_returned(call, signature)};"


_PASSED = {
    Passed.AS_IT_IS: "{}",
    Passed.CONVERTED: "as_argument({})",
    Passed.OR_MISSING: "or_missing({})",
    Passed.PRECOMPUTED: "precomputed.{}",
}


def passed(argument: GivenArgument) -> str:
    """An argument of a meta function or kernel."""
    return _PASSED[argument.passed].format(argument.name)


def _kernel_lines(op: str, call: StructuredCall, scope: Scope) -> Iterator[str]:
    """The statements that run the kernel on the results that the meta function has made."""
    yield from layout_lines(op, call.laid_out)
    if call.runs_impl:
        outputs = [f"op.maybe_get_output({i})" for i in range(call.results)]
        kernel = scope.name(call.kernel_function) if call.kernel_function else "op.impl"
        yield f"  {kernel}({', '.join([*map(passed, call.impl_arguments), *outputs])});"
    if call.out_handle:
        outputs = list(call.written) or [f"op.output({i})" for i in range(call.results)]
        arguments = ", ".join([*call.out_arguments, *outputs])
        yield f"  operators::{call.out_handle}::call({arguments});"
    yield from write_back_lines(call.laid_out)
    if call.runs_impl and (call.written or call.given):
        yield "  op.copy_back();"


def layout_lines(op: str, arguments: tuple[LaidOut, ...]) -> Iterator[str]:
    """The copies of arguments that a kernel needs in another layout."""
    for arg in arguments:
        type_ = "auto" if arg.is_written else "const auto"
        yield f"  {type_} {arg.name} = laid_out<StridesOf::{arg.layout}>({arg.parameter});"
    for arg in (arg for arg in arguments if arg.apart):
        tensors = ", ".join([arg.parameter, arg.name, *arg.apart])
        yield f'  check_copied("{op}", "{arg.argument}", {tensors});'
    for arg in (arg for arg in arguments if arg.is_list and arg.is_written):
        yield f'  check_copied_list("{op}", "{arg.argument}", {arg.parameter}, {arg.name});'


def write_back_lines(arguments: tuple[LaidOut, ...]) -> Iterator[str]:
    """What the kernel wrote to the copies, back to the arguments."""
    for arg in arguments:
        if arg.is_written:
            yield f"  write_back({arg.parameter}, {arg.name});"


def _returned(call: StructuredCall, signature: Signature) -> str:
    if call.returned:
        results = [r if isinstance(r, str) else f"op.result({r})" for r in call.returned]
        return all_of(results, signature)
    if not call.written:
        return "op.results()"
    return all_of(call.written, signature)


def all_of(results: Sequence[str], signature: Signature) -> str:
    """One result, or several together."""
    return results[0] if len(results) == 1 else f"{signature.result}({', '.join(results)})"
