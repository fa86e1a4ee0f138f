# SPDX-License-Identifier: BSD-3-Clause
"""Schemas from text.

``str(parse_schema(text)) == text`` for a schema in PyTorch's own spacing. The grammar is that of
the dispatcher (``torch._C.parse_schema`` is the oracle in the tests), which is wider than
torchgen's: ``Tensor!``, positional mutable arguments, ``Dict(str, Tensor)``, custom classes.
A mistake raises SchemaError with the offset of the offending character.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..errors import did_you_mean
from .lexer import SchemaError, Token, TokenReader
from .schema import Argument, OperatorName, Return, Schema
from .types import BASE_TYPES, CONSTRUCTORS, Alias, Type, why_not_default

# Of `int[9]`; a default for each element of a longer list would fill the memory.
_LONGEST_SIZE = 5
# Of an operator and of what it stands in: files are named after them, with a few letters more.
LONGEST_NAME = 200
# Of types in types, as `int[]` is one.
_DEEPEST = 20
_TOO_DEEP = f"types are nested more than {_DEEPEST} deep"

__all__ = ["LONGEST_NAME", "SchemaError", "parse_declarations", "parse_name", "parse_schema"]


def parse_schema(text: str) -> Schema:
    """Read a schema; raises SchemaError."""
    return _Parser(text).schema()


def parse_name(text: str) -> OperatorName:
    """Read a name without a signature, as `autogen:` and `structured_delegate:` give it."""
    parser = _Parser(text)
    name = parser.name()
    parser.end()
    return name


def parse_declarations(text: str) -> tuple[Argument, ...]:
    """Read `type name, type name`, as `precomputed:` gives it; raises SchemaError."""
    parser = _DeclarationParser(f"{text})")
    found = tuple(parser.items(")", lambda: parser.argument(False)[1]))
    parser.end()
    return found


class _Parser(TokenReader):
    """Recursive descent over the tokens of one schema."""

    types = BASE_TYPES
    depth = 0  # how many types are being read, each inside the one before

    def name(self) -> OperatorName:
        base, namespace, overload = self.name_part("an operator name"), "", ""
        if self.accept(":"):
            self.expect(":")
            namespace, base = base, self.name_part("an operator name")
        if self.accept("."):
            token = self.token
            overload = self.name_part("an overload name")
            if overload == "default" or overload.startswith("__"):
                raise self.fail(f"'{overload}' is not a valid overload name", token=token)
        return OperatorName(base, overload, namespace)

    def name_part(self, what: str) -> str:
        token = self.token
        name = self.ident(what)
        if len(name) > LONGEST_NAME:
            raise self.fail(f"{what} has at most {LONGEST_NAME} characters", token=token)
        return name

    def schema(self) -> Schema:
        name = self.name()
        self.expect("(")
        arguments, is_vararg = self.arguments()
        self.expect("->")
        returns, is_varret, parenthesised = self.returns()
        self.end()
        return Schema(name, arguments, returns, is_vararg, is_varret, parenthesised)

    def arguments(self) -> tuple[tuple[Argument, ...], bool]:
        found: dict[str, Argument] = {}
        kwarg_only = is_vararg = False

        def one() -> None:
            nonlocal kwarg_only, is_vararg
            start = self.token
            if is_vararg:
                raise self.fail("'...' must be the last argument", token=start)
            if self.accept("*"):
                if kwarg_only:
                    raise self.fail("'*' stands twice in the argument list", token=start)
                kwarg_only = True
            elif self.accept("..."):
                is_vararg = True
            else:
                token, arg = self.argument(kwarg_only)
                if arg.name in found:
                    raise self.fail(f"argument '{arg.name}' stands twice", token=token)
                if self.lacks_default(arg, found.values()):
                    message = f"argument '{arg.name}' has no default but follows one that has"
                    raise self.fail(message, token=start)
                found[arg.name] = arg

        self.items(")", one)
        if kwarg_only and not any(a.is_kwarg_only for a in found.values()):
            raise self.fail(
                "'*' must be followed by an argument", token=self.tokens[self.index - 1]
            )
        return tuple(found.values()), is_vararg

    @staticmethod
    def lacks_default(arg: Argument, before: Iterable[Argument]) -> bool:
        """Whether it must have a default as one before it has; the dispatcher exempts lists."""
        if arg.default is not None or arg.is_kwarg_only or arg.type.name == "List":
            return False
        return any(a.default is not None and not a.is_kwarg_only for a in before)

    def argument(self, kwarg_only: bool) -> tuple[Token, Argument]:
        type_ = self.type(allow_size=True)
        token = self.token
        name = self.ident("an argument name")
        default = self.default(type_) if self.accept("=") else None
        return token, Argument(type_, name, default, kwarg_only)

    def returns(self) -> tuple[tuple[Return, ...], bool, bool]:
        if self.accept("..."):
            return (), True, False
        if self.token.text != "(":
            return (Return(self.type(allow_size=True), self.optional_name()),), False, False
        self.next()
        is_varret = False

        def one() -> Return | None:
            nonlocal is_varret
            if is_varret:
                raise self.fail("'...' must be the last result")
            if self.accept("..."):
                is_varret = True
                return None
            return Return(self.type(allow_size=True), self.optional_name())

        found = tuple(r for r in self.items(")", one) if r)
        return found, is_varret, len(found) == 1

    def optional_name(self) -> str | None:
        return self.ident("a name") if self.token.kind == "ident" else None

    def type(self, allow_size: bool = False) -> Type:
        start = self.token
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.fail(_TOO_DEEP, token=start)
        type_ = self.base_type()
        while True:
            if _depth(type_) > _DEEPEST:
                raise self.fail(_TOO_DEEP, token=start)
            if self.token.text == "[" and type_.size is None:
                size = self.list_size(allow_size)
                type_ = Type("List", (type_,), size, self.alias())
            elif self.accept("?"):
                if type_.name in ("None", "NoneType"):
                    raise self.fail(
                        f"'{type_.name}' has nothing that could be missing", token=start
                    )
                type_ = Type("Optional", (type_,))
            else:
                self.depth -= 1
                return type_

    def list_size(self, allow_size: bool) -> int | None:
        """The size of `[N]`, None for `[]`; reads the brackets."""
        self.expect("[")
        size = None
        if self.token.kind == "number" and allow_size:
            if not self.token.text.isdigit():
                raise self.fail("the size of a list must be a whole number")
            if len(self.token.text) > _LONGEST_SIZE:
                raise self.fail(f"the size of a list has at most {_LONGEST_SIZE} digits")
            size = int(self.next().text)
        self.expect("]")
        return size

    def base_type(self) -> Type:
        token = self.token
        if self.accept("("):
            return Type("Tuple", tuple(self.items(")", self.type)), alias=self.alias())
        name = self.ident("a type")
        if name in CONSTRUCTORS:
            self.expect("(")
            args = tuple(self.items(")", self.type))
            if len(args) != (CONSTRUCTORS[name] or max(len(args), 2)):
                raise self.fail(
                    f"{name} takes {CONSTRUCTORS[name] or 'two or more'} types", token=token
                )
            return Type(name, args, alias=self.alias())
        if name == "__torch__":
            while self.token.text == "." or name == "__torch__":
                self.expect(".")
                name += "." + self.ident("a class name")
            return Type(name, alias=self.alias())
        if name not in self.types and not re.fullmatch(r"[a-z]\w?", name):
            hint = did_you_mean(name, [*self.types, *CONSTRUCTORS])
            raise self.fail(f"unknown type '{name}'", hint, token)
        return Type(name, alias=self.alias())

    def alias(self) -> Alias | None:
        if self.accept("!"):
            return Alias((), is_write=True, is_shorthand=True)
        if not self.accept("("):
            return None
        before = self.alias_set()
        is_write = self.accept("!")
        after = self.alias_set() if self.accept("->") else ()
        self.expect(")")
        return Alias(before, after, is_write)

    def alias_set(self) -> tuple[str, ...]:
        names = []
        while True:
            names.append("*" if self.accept("*") else self.ident("an alias set"))
            if not self.accept("|"):
                return tuple(names)

    def default(self, type_: Type) -> str:
        """The text of a default value as it is spelled; what the type cannot hold is refused."""
        start = self.token
        values = self.constant()
        last = self.tokens[self.index - 1]
        if (message := why_not_default(type_, values)) is not None:
            raise self.fail(message, token=start)
        return self.text[start.offset : last.offset + len(last.text)]

    def constant(self) -> str | list[str]:
        """One value, or the values of a list."""
        if self.accept("["):
            return self.items("]", self.single_constant)
        return self.single_constant()

    def single_constant(self) -> str:
        sign = "-" if self.accept("-") else ""
        if self.token.kind == "number" or (not sign and self.token.kind in ("string", "ident")):
            return sign + self.next().text
        raise self.fail(f"expected a default value in schema, got {self.describe()}")


def _depth(type_: Type) -> int:
    """How many types stand one inside the other, from this one on."""
    return 1 + max(map(_depth, type_.args), default=0)


class _DeclarationParser(_Parser):
    types = (*BASE_TYPES, "DimVector")
