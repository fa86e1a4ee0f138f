# SPDX-License-Identifier: BSD-3-Clause
"""The short ways of writing an entry, turned into upstream's: nothing behind the loader knows them.

    forms: [sin_, sin.out]     the in-place and out= forms, with the keys of this entry
    dispatch: CPU, CUDA        kernels that are named after the operator
    layout: contiguous         of all tensors
    meta: unary_float          beside a TensorIterator, the keys that hold for such operators

What is made stands where the text stood that asks for it, so that messages lead there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..schema.forms import derive_schema
from ..schema.parser import SchemaError, parse_name, parse_schema
from ..schema.schema import OperatorName, Schema
from .dispatch_keys import COMPOSITE_KEYS
from .values import ITERATOR_RULES
from .yaml_nodes import Node, kind, made_list, made_map, made_text
from .yaml_reader import YamlReader

SHORT_KEYS = {
    "forms": (
        "list",
        "On a functional entry: its in-place and out= forms, which share its keys. Of a structured "
        "operator (`structured_inherits:`, `structured: True`, `precomputed:`, "
        "`ufunc_inner_loop:`, or `pointwise:` with one result) the entries with "
        "`structured_delegate` and `structured: True`; of another one the names of `autogen:`.",
    ),
}
# Where the keys of an entry with forms go; the others stay with the functional form.
_OF_STRUCTURED = ("structured", "structured_inherits", "precomputed", "ufunc_inner_loop")
_MAKE_STRUCTURED = (*_OF_STRUCTURED, "pointwise")
_OF_OUT = (*_OF_STRUCTURED, "dispatch", "dtypes", "layout", "meta", "vmap")
_OF_ALL = (
    "device_check", "device_guard", "tags", "pt2_compliant", "differentiable", "complex_autograd",
)  # fmt: skip
_TENSORS = ("Tensor", "Tensor?", "Tensor[]", "Tensor?[]", "Tensor[]?")

Pairs = list[tuple[Node, Node]]


def long_form(reader: YamlReader, node: Node) -> list[Node]:
    """The entries that an entry stands for: itself where it is in upstream's form."""
    if kind(node) != "a map":
        return [node]
    schema = _schema(node.value)
    pairs = [_without_short_values(reader, schema, *pair) for pair in node.value]
    forms = [value for key, value in pairs if key.value == "forms"]
    if forms and schema is not None:
        return _with_forms(reader, node, schema, forms[0], pairs)
    is_same = all(new is old for (_, new), (_, old) in zip(pairs, node.value))
    return [node if is_same else made_map(pairs, node)]


def _schema(pairs: Pairs) -> Schema | None:
    """What `func` says; None where it cannot be read, which is noted where it is read."""
    for key, value in pairs:
        if key.value == "func" and isinstance(value.value, str):
            try:
                return parse_schema(value.value)
            except SchemaError:
                return None
    return None


def _without_short_values(
    reader: YamlReader, schema: Schema | None, key: Node, value: Node
) -> tuple[Node, Node]:
    """A key with its value as a map, where one text says it for all."""
    if kind(value) == "a map" or not value.value:
        return key, value
    if key.value == "dispatch":
        name = schema.name if schema else OperatorName("unread", "")
        named = reader.texts(value, "'dispatch'")
        pairs = [
            (made_text(text, at), made_text(_kernel_name(name, text), at)) for text, at in named
        ]
        return (key, made_map(pairs, value)) if pairs else (key, value)
    if key.value == "layout" and kind(value) != "a list":
        arguments = schema.arguments if schema else ()
        tensors = [a for a in arguments if a.type.bare().plain in _TENSORS and not a.is_out]
        place = reader.location(value)
        pairs = [(made_text(a.name, place), made_text(value.value, place)) for a in tensors]
        return (key, made_map(pairs, value)) if pairs else (key, value)
    return key, value


def _kernel_name(name: OperatorName, key: str) -> str:
    """`sin_cpu`, `sin_cpu_` of an in-place form, `sin_out_cpu` of an out= form; `sin` where the
    kernel is made of other operators."""
    base = name.base.strip("_")
    is_out = name.overload == "out" or name.overload.endswith("_out")
    parts = [base, *(["out"] if is_out else []), *([] if key in COMPOSITE_KEYS else [key.lower()])]
    return "_".join(parts) + ("_" if name.is_inplace else "")


def _with_forms(
    reader: YamlReader, node: Node, schema: Schema, forms: Node, pairs: Pairs
) -> list[Node]:
    """The entries of a functional form and of those that it names."""
    named = list(_named(reader, schema, forms))
    keys = {key.value: (key, value) for key, value in pairs if key.value != "forms"}
    has_several = len(schema.returns) > 1 and not any(name in keys for name in _OF_STRUCTURED)
    if has_several or not any(name in keys for name in _MAKE_STRUCTURED):
        return [made_map(_declaring(keys, forms, named, reader), node)]
    out = next((form for form in named if form[0].is_out), None)
    if out is None:
        message = "a structured operator has an out= form, whose kernels all of them run"
        reader.errors.add(reader.location(forms), message, f"name '{schema.name.base}.out'")
        return []
    _imply(reader, keys)
    everything = ((schema, node), *named)
    return [_structured_entry(node, forms, keys, form, at, out[0]) for form, at in everything]


def _named(reader: YamlReader, schema: Schema, forms: Node) -> Iterator[tuple[Schema, Node]]:
    """The schema of each form, with a node where its name stands; mistakes are noted."""
    if schema.mutated:
        message = "'forms' stands on the functional entry, which writes to no argument"
        reader.errors.add(reader.location(forms), message)
        return
    for text, place in reader.texts(forms, "'forms'"):
        try:
            name = parse_name(text)
        except SchemaError as error:
            reader.errors.add(place.after(error.offset), error.message, error.hint)
            continue
        found = derive_schema(schema, name)
        if isinstance(found, str):
            reader.errors.add(place, f"it is no form of '{schema.name}': {found}")
        else:
            yield found, made_text(text, place)


def _declaring(
    keys: dict[str, tuple[Node, Node]],
    forms: Node,
    named: list[tuple[Schema, Node]],
    reader: YamlReader,
) -> Pairs:
    """The keys of an entry whose forms have no entries, with the names in its `autogen:`."""
    names = [place for _, place in named]
    if "autogen" in keys:
        given = reader.texts(keys["autogen"][1], "'autogen'")
        names = [*(made_text(text, place) for text, place in given), *names]
    if names:
        key = made_text("autogen", reader.location(forms))
        keys = {**keys, "autogen": (key, made_list(names, forms))}
    return list(keys.values())


def _imply(reader: YamlReader, keys: dict[str, tuple[Node, Node]]) -> None:
    """Add what holds of every operator whose results one of TensorIterator's functions sets up."""
    rule = keys["meta"][1] if "meta" in keys else None
    if rule is None or kind(rule) == "a map" or rule.value not in ITERATOR_RULES:
        return
    place = reader.location(rule)
    for name, text in (("device_check", "NoCheck"), ("tags", "pointwise"), ("vmap", "pointwise")):
        keys.setdefault(name, (made_text(name, place), made_text(text, place)))
    key, tags = keys["tags"]
    given = reader.texts(tags, "'tags'")
    if "pointwise" not in [text for text, _ in given]:
        items = [*(made_text(text, at) for text, at in given), made_text("pointwise", place)]
        keys["tags"] = key, made_list(items, tags)


def _structured_entry(
    node: Node,
    forms: Node,
    keys: dict[str, tuple[Node, Node]],
    form: Schema,
    place: Node,
    out: Schema,
) -> Node:
    """The entry of one form of a structured operator."""
    if place is node:  # the functional one
        own = {name: pair for name, pair in keys.items() if name not in _OF_OUT}
    else:
        wanted = (*_OF_ALL, *(_OF_OUT if form is out else ()))
        func = made_text("func", place), made_text(str(form), place)
        own = {"func": func} | {name: keys[name] for name in wanted if name in keys}
    name, text = ("structured", "True") if form is out else ("structured_delegate", str(out.name))
    given = forms if place is node else place
    said = {name: (made_text(name, given), made_text(text, given))}
    first, *rest = own.values()
    return made_map(_each_once([first, *said.values(), *rest]), place)


def _each_once(pairs: Iterable[tuple[Node, Node]]) -> Pairs:
    """The pairs without a second one of the same key."""
    found: dict[str, tuple[Node, Node]] = {}
    for key, value in pairs:
        found.setdefault(key.value, (key, value))
    return list(found.values())
