# SPDX-License-Identifier: BSD-3-Clause
"""Reads generated C++ back into plain values, however its lines are broken."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from upstream_torchgen import Function, Wrapper, spelling

_DEFINITION = re.compile(r'm\.def\(\s*"((?:[^"\\]|\\.)*)",\s*\{([^}]*)\}\s*\);')
_NAMESPACE_OR_KERNEL = re.compile(
    r"^namespace ([\w:]+) \{$|((?:^// \S+:\d+: \w+: .*\n)+)((?:.|\n)*?);$", re.MULTILINE
)
_BLOCK = re.compile(
    r"^TORCHEXT_LIBRARY_IMPL\(\s*m,([^)]*)\) \{\n(.*?)\n\}$", re.MULTILINE | re.DOTALL
)
_KEY = re.compile(r"DispatchKey::(\w+)")
_IMPL = re.compile(r'm\.impl\(\s*"([^"]*)",\s*(.*?)\);\n', re.DOTALL)
_TEMPLATE = r"(?:template <([^\n]*)>\n)?"
_WRAPPER = re.compile(
    rf"^// \S+:\d+: .*\n{_TEMPLATE}([^{{}};]*) \{{\n((?:(?!\}}).*\n)*?)  return ((?:.|\n)*?);\n\}}",
    re.MULTILINE,
)
_STRUCTURED = re.compile(
    rf"^// \S+:\d+: [^\n]*\n{_TEMPLATE}[^\n]*?(\w+)\((?:[^{{}}]|\{{\}})*\{{\n[^}}]*?structured::",
    re.MULTILINE,
)
_CHECK = re.compile(r'check_same_device(?:<kHome>)?\(\s*"\S+",\s*"([^"]*)",\s*([^()]*?)\s*\);')
_GUARD = re.compile(r"SelectedDevice<\w+(?:::\w+)?> guard\(\s*(\w+)[\w\s,]*\)")
_CONTINUED = re.compile(r"\n *//     (?=\S)")  # a comment that is too long for its line
_JOINED = re.compile(r'"\n *"')  # a string that is
# torchgen leaves these to lists of ATen and functorch, or decides when it runs.
_NOT_OF_TORCHGEN = "Batched FuncTorchBatchedDecomposition FuncTorchVmapMode Functionalize".split()
_WITH_CUDA = re.compile(r"^#ifdef TORCHEXT_WITH_CUDA$(.*?)^#endif", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Registration:
    """One `m.impl`: what a dispatch key runs."""

    function: str  # the kernel, qualified
    cast: str | None  # the function type that chooses among its overloads
    wrapper: Wrapper | None
    needs_cuda: bool  # compiled only where CUDA is


@dataclass
class Output:
    """A generated folder."""

    folder: Path

    def _texts(self, role: str, pattern: str) -> Iterator[str]:
        manifest = json.loads((self.folder / "manifest.json").read_text(encoding="utf-8"))
        for path in manifest[role]:
            if re.search(pattern, path):
                yield unfolded((self.folder / path).read_text(encoding="utf-8"))

    def definitions(self) -> Iterator[tuple[str, frozenset[str]]]:
        """Every schema that is registered, with its tags."""
        for text in self._texts("parts", r"/schema_\d+\.cpp$"):
            for schema, tags in _DEFINITION.findall(text):
                names = re.findall(r"at::Tag::(\w+)", tags)
                yield re.sub(r"\\(.)", r"\1", schema), frozenset(names)

    def declarations(self) -> dict[tuple[str, str], Function]:
        """Operator and dispatch key to the kernel that is declared for them."""
        found: dict[tuple[str, str], Function] = {}
        for text in self._texts("headers", r"/kernels/\w+\.h$"):
            space = ""
            for match in _NAMESPACE_OR_KERNEL.finditer(text):
                if match.group(1):
                    space = match.group(1)
                    continue
                function = _function(match.group(3), f"{space}::")
                for place in _served(match.group(2)):
                    assert place not in found, f"{place} is declared twice"
                    found[place] = function
        return found

    def registrations(self) -> dict[tuple[str, str], Registration]:
        """Operator and dispatch key to what is registered for them."""
        found: dict[tuple[str, str], Registration] = {}
        for text in self._texts("parts", r"/dispatch_\d+\.cpp$"):
            cuda = [match.span() for match in _WITH_CUDA.finditer(text)]
            wrappers = dict(_wrappers(text))
            structured = {name for _, name in _STRUCTURED.findall(text)}
            for block in _BLOCK.finditer(text):
                needs_cuda = any(start < block.start() < end for start, end in cuda)
                keys = _KEY.findall(block.group(1))
                impls = _IMPL.findall(block.group(2) + "\n")
                for place, payload in [((op, key), p) for key in keys for op, p in impls]:
                    if place[1] in _NOT_OF_TORCHGEN:
                        registered = _registration(payload, wrappers, needs_cuda)
                        kind = "Explicit" if place[1] == "Batched" else "Implicit"
                        composite = found[place[0], f"Composite{kind}Autograd"]
                        assert registered.function == composite.function
                        continue
                    if re.search(
                        r"_form_of\(|view_copy_of\(|makeFallthrough\(|without_bit\(", payload
                    ):
                        continue
                    if _name_of(payload) in structured:
                        continue
                    if place[1] == "Meta" and _only_returns(text, spelling(payload)):
                        continue
                    assert place not in found, f"{place} is registered twice"
                    found[place] = _registration(payload, wrappers, needs_cuda)
        return found


def unfolded(text: str) -> str:
    """The text with each comment and string in one line."""
    return _JOINED.sub("", _CONTINUED.sub(" ", text))


def _name_of(payload: str) -> str:
    """The name of the generated function that is registered."""
    match = re.match(r"&(\w+)", spelling(payload))
    return match.group(1) if match else ""


def _only_returns(text: str, payload: str) -> bool:
    """Whether a Meta kernel is the generated one of an operator that only writes."""
    name = _name_of(payload)
    found = re.search(rf"\b{name}\([^{{]*\{{\n((?:  .*\n)*?)\}}", text) if name else None
    return found is not None and not re.search("native::|kKernel", found.group(1))


def _served(comments: str) -> Iterator[tuple[str, str]]:
    """The operators and dispatch keys that the comments above a kernel name."""
    for comment in comments.splitlines():
        match = re.match(r"// \S+:\d+: (\w+): (.*)", comment)
        assert match, comment
        for op in match.group(2).split(", "):
            yield op.partition(" ")[0], match.group(1)


def _function(prototype: str, prefix: str = "") -> Function:
    head, _, rest = " ".join(prototype.split()).partition("(")
    result, _, name = head.rpartition(" ")
    parameters = []
    for parameter in _split(rest.rpartition(")")[0]):
        type_, _, label = parameter.strip().rpartition(" ")
        parameters.append((spelling(type_), label))
    return Function(prefix + name, spelling(result), tuple(parameters))


def _split(text: str) -> Iterator[str]:
    """The parts between commas outside angle brackets."""
    depth, start = 0, 0
    for index, char in enumerate(text):
        depth += (char == "<") - (char == ">")
        if char == "," and depth == 0:
            yield text[start:index]
            start = index + 1
    if text[start:].strip():
        yield text[start:]


def _wrappers(text: str) -> Iterator[tuple[str, tuple[str, Function, Wrapper, str]]]:
    """Each wrapper's name, template parameters, prototype, what it does and what it calls."""
    for template, prototype, body, call in _WRAPPER.findall(text):
        if "structured::" in body:
            continue  # test_structured.py
        function = _function(prototype)
        checked = [spelling(names) for pair in _CHECK.findall(body) for names in pair]
        assert len(set(checked)) <= 1, f"{function.name} mixes up names: {checked}"
        guards = _GUARD.findall(body)
        assert len(guards) <= 1, f"{function.name} has several guards"
        names = frozenset(checked[0].split(",")) if checked else frozenset()
        wrapper = Wrapper(names, guards[0] if guards else None)
        yield function.name, (template, function, wrapper, spelling(call))


def _registration(
    payload: str, wrappers: dict[str, tuple[str, Function, Wrapper, str]], needs_cuda: bool
) -> Registration:
    text = spelling(payload)
    if match := re.fullmatch(r"&::([\w:]+)", text):
        return Registration(match.group(1), None, None, needs_cuda)
    if match := re.fullmatch(r"static_cast<(.*)>\(&::([\w:]+)\)", text):
        return Registration(match.group(2), match.group(1), None, needs_cuda)
    match = re.fullmatch(r"&(\w+)(?:<(.*)>)?", text)
    assert match, f"neither a kernel nor a wrapper: {payload}"
    template, function, wrapper, call = wrappers[match.group(1)]
    parameters = [parameter.split()[-1] for parameter in template.split(", ")] if template else []
    varying = dict(zip(parameters, _split(match.group(2) or ""), strict=True))
    if varying.get("kHome") == "Home::kCPU":
        wrapper = Wrapper(frozenset(), None)
    if kernel := varying.get("kKernel"):
        cast = re.fullmatch(r"static_cast<.*>\(&(.*)\)", kernel)
        call = call.replace("kKernel", cast.group(1) if cast else kernel, 1)
    if viewed := re.fullmatch(r"(?:::torchext::)?(?:distinct|batched)_view\((.*),(\w+)\)", call):
        assert viewed.group(2) in dict(map(reversed, function.parameters)), call
        call = viewed.group(1)
    called, _, arguments = re.sub("^native::", "::aten2::native::", call)[2:].partition("(")
    arguments = re.sub(r"or_missing\((\w+)\)", r"\1", arguments)
    names = ",".join(name.removesuffix("_given") for _, name in function.parameters)
    assert arguments == f"{names})", f"{function.name} passes on other arguments: {call}"
    types = f"{function.result}(*)({','.join(type_ for type_, _ in function.parameters)})"
    return Registration(called, types, wrapper, needs_cuda)
