# SPDX-License-Identifier: BSD-3-Clause
"""Which operators are mirrored, and the YAML files that say so.

Derivative entries are copied as they stand in the packaged file. An operator's own entry keeps its
`func:` and flags; what names kernels is replaced by one CompositeExplicitAutograd kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torchgen
import yaml
from torchgen.gen import parse_native_yaml
from torchgen.model import FunctionSchema, NativeFunction, OperatorName, SchemaKind
from torchgen.packaged.autograd.gen_variable_type import GRADIENT_IMPLEMENTED_FOR_COMPLEX

PACKAGED = Path(torchgen.__file__).parent / "packaged"
NATIVE_FUNCTIONS = PACKAGED / "ATen" / "native" / "native_functions.yaml"
TAGS = PACKAGED / "ATen" / "native" / "tags.yaml"
DERIVATIVES = PACKAGED / "autograd" / "derivatives.yaml"

NAMESPACE = "upstream"
# Their results are views of the argument, which no schema says.
_UNSAFE_VIEWS = ("_unsafe_view", "unsafe_split", "unsafe_split_with_sizes")
# Keys that name kernels or other operators' entries; the mirror has one kernel for all of them.
_KERNEL_KEYS = frozenset(
    {"dispatch", "structured", "structured_delegate", "structured_inherits", "precomputed",
     "ufunc_inner_loop", "autogen", "manual_kernel_registration"}
)  # fmt: skip
_SPARSE_OR_NESTED = re.compile(
    r"sparse|nested|jagged|^_?(coalesce|indices|values|c?(row|col)_indices)$"
)
_SPARSE_KEY = re.compile(r"Sparse(Csr)?CPU|NestedTensorCPU")
_DENSE_CPU = {"CPU", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional"}


@dataclass(frozen=True)
class Operator:
    """An operator of the mirror."""

    name: str  # "mul.Tensor"
    schema: str
    # the entry of derivatives.yaml whose formulas it has; its own name, where it has an entry
    entry: str
    # whether it returns a view, as `squeeze` and `squeeze_` do
    is_view: bool
    # why no CPU sample can reach it: "other backend", "sparse or nested", or ""
    elsewhere: str
    # whether aten differentiates it through its parts on the CPU, by no formula
    is_composite: bool
    has_tangent: bool  # by a formula
    keys: dict[str, object]  # the rest of its entry in native_functions.yaml

    @property
    def is_entry(self) -> bool:
        """Whether derivatives.yaml has an entry for it, rather than one that it inherits."""
        return self.name == self.entry

    @property
    def has_symint(self) -> bool:
        return "SymInt" in self.schema.partition("->")[0] or "SymInt" in self.schema

    @property
    def handle(self) -> str:
        """Its class in at::_ops: `mul_Tensor`."""
        return self.name.replace(".", "_")

    @property
    def kernel(self) -> str:
        return f"{self.handle}_kernel_symint" if self.has_symint else f"{self.handle}_kernel"


def derivative_texts() -> dict[str, str]:
    """The entries of derivatives.yaml by operator, as they stand in the file."""
    text = DERIVATIVES.read_text(encoding="utf-8")
    blocks = re.split(r"^(?=- name:)", text, flags=re.MULTILINE)[1:]
    return {re.match(r"- name:\s*([^\s(]+)\(", block)[1]: block for block in blocks}


def operators(entries: Iterable[str] = ()) -> list[Operator]:
    """All operators of the mirror, or those of some entries, in the order of native_functions."""
    functions = parse_native_yaml(str(NATIVE_FUNCTIONS), str(TAGS)).native_functions
    values = {e["func"].partition("(")[0]: e for e in _load(NATIVE_FUNCTIONS)}
    known = derivative_texts()
    wanted = list(entries) or list(known)
    if unknown := sorted(set(wanted) - set(known)):
        raise SystemExit(f"error: derivatives.yaml has no entry for {', '.join(unknown)}")
    owners = _owners(functions, known)
    return [
        _operator(function, owner, values, known[owner])
        for function in functions
        if (owner := owners.get(str(function.func.name))) in wanted
    ]


def _owners(functions: Iterable[NativeFunction], known: Iterable[str]) -> dict[str, str]:
    """Operator to the entry whose formulas it has, by the rules of match_differentiability_info."""
    by_name = {str(f.func.name): f.func for f in functions}
    schemas = [by_name[name] for name in known if name in by_name]
    functional = {_signature(s): s for s in schemas if s.kind() == SchemaKind.functional}
    others = {_signature(s): s for s in schemas if s.kind() != SchemaKind.functional}
    owners = {str(s.name): str(s.name) for s in schemas}
    for function in functions:
        name, kind = str(function.func.name), function.func.kind()
        signature = _signature(function.func)
        owner = None
        if kind == SchemaKind.inplace and not name.startswith("_foreach"):
            owner = functional.get(signature)
        elif "generated" in function.tags and kind == SchemaKind.functional:
            owner = others.get(signature)
        if owner is not None:
            owners.setdefault(name, str(owner.name))
    return owners


def _signature(schema: FunctionSchema) -> FunctionSchema:
    return schema.signature(strip_default=True)


def _operator(
    function: NativeFunction, owner: str, values: dict[str, dict], formulas: str
) -> Operator:
    name, schema = str(function.func.name), str(function.func)
    value = values.get(name, {"func": schema, "tags": "generated"})
    views = function.is_view_op or "inplace_view" in function.tags
    return Operator(
        name=name,
        schema=value["func"],
        entry=owner,
        is_view=views,
        elsewhere=_elsewhere(function.func.name, value),
        is_composite="CompositeImplicitAutograd" in _dispatch_keys(value),
        has_tangent=_has_tangent(formulas, function.func),
        keys={k: v for k, v in value.items() if k not in _KERNEL_KEYS and k != "func"}
        | _facts(function),
    )


def _facts(function: NativeFunction) -> dict[str, object]:
    """What upstream keeps in a list of its generator, or does not say, as the keys that say it."""
    base = function.func.name.name.base
    facts: dict[str, object] = {}
    if base not in GRADIENT_IMPLEMENTED_FOR_COMPLEX:
        facts["complex_autograd"] = False
    if base in _UNSAFE_VIEWS:
        facts["tags"] = "maybe_aliasing_or_mutating"
    return facts


def _dispatch_keys(value: dict) -> list[str]:
    return [key.strip() for keys in value.get("dispatch", ()) for key in keys.split(",")]


def _has_tangent(formulas: str, schema: FunctionSchema) -> bool:
    """Whether an entry has a line for a result."""
    (entry,) = yaml.safe_load(formulas)
    blocks = [entry, *entry.pop("dispatch", {}).values()]
    arguments = {argument.name for argument in schema.arguments.flat_all}
    lines = [name.strip() for block in blocks for names in block for name in names.split(",")]
    return bool(set(lines) - arguments - {"name", "output_differentiability"})


def _elsewhere(name: OperatorName, value: dict) -> str:
    """Why calls on dense CPU tensors cannot reach the operator, as far as its entry tells."""
    keys = _dispatch_keys(value)
    if _SPARSE_OR_NESTED.search(str(name)):
        return "sparse or nested"
    if not keys or value.get("structured_delegate") or _DENSE_CPU & set(keys):
        return ""
    is_sparse = any(_SPARSE_KEY.match(key) for key in keys)
    return "sparse or nested" if is_sparse else "other backend"


def write(operators: Iterable[Operator], folder: Path) -> tuple[Path, Path]:
    """Write native_functions.yaml and derivatives.yaml of the mirror; returns their paths."""
    operators = list(operators)
    folder.mkdir(parents=True, exist_ok=True)
    native = folder / "native_functions.yaml"
    _write(native, "\n".join(_native_entry(operator) for operator in operators))
    texts = derivative_texts()
    names = {operator.entry for operator in operators if operator.is_entry}
    derivatives = folder / "derivatives.yaml"
    _write(derivatives, "".join(text for name, text in texts.items() if name in names))
    return native, derivatives


def _native_entry(operator: Operator) -> str:
    keys = {"func": operator.schema, **operator.keys}
    keys["dispatch"] = {"CompositeExplicitAutograd": operator.kernel}
    return yaml.safe_dump([keys], sort_keys=False, width=100_000)


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _load(path: Path) -> list[dict]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text(encoding="utf-8"), Loader=loader)
