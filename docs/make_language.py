# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/language.md from the fields of codegen/model.py: `python docs/make_language.py`.

A test compares the page with what this writes, so that it cannot drift from what is accepted.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from codegen.analysis import RESERVED_NAMESPACES  # noqa: E402
from codegen.dispatch_keys import COMPOSITE_KEYS, DISPATCH_KEYS  # noqa: E402
from codegen.load import TAGS  # noqa: E402
from codegen.model import Derivative, Operator, spec_keys  # noqa: E402
from codegen.saved_attributes import ATTRIBUTES  # noqa: E402

PAGE = ROOT / "docs" / "language.md"

_HEAD = """\
<!-- Written by docs/make_language.py from codegen/model.py; edit those. -->

# The language of the two files

`native_functions.yaml` says which operators there are and which kernel runs where;
`derivatives.yaml` says how they differentiate. Keys and meaning are those of PyTorch's own two
files: an entry of theirs is accepted unchanged, and one that uses none of the keys marked
*extension* can be moved there unchanged.

Everything that is wrong is reported at once, as `FILE:LINE:COLUMN: error: ...` with the line and a
hint. `python -m torchext.codegen check --namespace NS --native-functions F --derivatives D` only
looks; it needs no torch. (In a checkout: `python -m codegen`.)

A library's namespace is a C++ identifier other than {reserved}.
"""

_FORMULAS = """\
## Formulas

`NAMES: FORMULA`. NAMES are arguments, or several with commas whose gradients one formula gives as a
tuple. FORMULA is a C++ expression; unqualified functions are ATen's and those of
`torchext/derivative_helpers.h`, and operators of the library are written with their namespace
(`myns::rms_norm_backward(grad, ...)`), which makes them differentiable in turn. It may use

| name | meaning |
| --- | --- |
| `grad` | the gradient of the first result; the others are then not differentiable |
| `grads[i]`, `grad_<result>` | that of the i-th differentiable result, or the named one's |
| `grads` | all of them; of a list result one per element |
| an argument's name | its value, saved; a missing `Tensor?` is an undefined tensor |
| `result`, `result0`, a result's name | a result; saved |
| `grad_input_mask` | which of the NAMES need a gradient, as `std::array<bool, N>` |
| `wrap_opt_if(x, grad_input_mask[i])` | `x`, saved only if the i-th gradient is needed |
| `retain_variables` | whether the graph is kept for another backward |
{attributes}

One entry names gradients in one way. A formula that names `i` is for the i-th element of lists
(`grads[i]`, `self[i]`). `non_differentiable` in place of a formula: no gradient flows to the
argument. A tensor argument that no line names must not require grad: the call raises.
In `sym_size(k)` k is a number or an argument; otherwise the tensor is saved.
(Upstream exempts one called `output`, the result of the forward operator that an operator of a
backward takes beside its input; so does this generator, in operators whose name has `backward`.)
`not_implemented("name")` raises when backward reaches it. Nothing is saved but what a formula uses,
and only if a gradient that needs it is asked for. What only the C++ compiler can tell is
reported on the formula's own line.

## Forward mode

NAMES are results: the formula gives their tangents, one for each differentiable result or none at
all. It uses `self_t`, the tangent of a differentiable argument (zeros where it has none), `self_p`,
its value, results and the other arguments by name. `auto_linear` is the operator itself at the
tangents; `auto_element_wise` the formula of the gradient, for an operator whose Jacobian is
diagonal. An operator without such lines refuses tangents by name.

## What is written to

An operator that writes its result to an argument (`Tensor(a!) self` and `-> Tensor(a!)`) has an
entry of its own, or differentiates by the entry of its functional form, `mul` for `mul_`. The
argument's old value is copied where a formula reads it and not otherwise; in an entry of its own
`original_self_p` and `original_self_t` are the old value and tangent, `result` is the new value. An
argument that is written to and not returned cannot have a gradient; formulas see what was written.
One whose gradient is `non_differentiable` loses its history, and its name is the old value. An
operator with several differentiable results that writes to one of them has no tangents: a formula
would read what another has written.
An out= form refuses tensors that require grad. Formulas for views (`Tensor(a) -> Tensor(a)`) are
refused: an operator that returns a view and has no entry says so on backward.

## Formulas per autograd key

Under `dispatch:` each key has formulas and a node of its own: `Default` for all devices, or
`AutogradCUDA`, `AutogradNestedTensor`, ...
"""

_KEYS = """\
## Dispatch keys

{keys}.

`CUDA` kernels (and those of other CUDA keys) are compiled where CUDA is. Kernels of devices run
behind a check that all tensors are on one device and a guard that makes it current; see
`device_check` and `device_guard`. {composite} take kernels that are made of other operators.

## Tags

{tags}.
"""


def page() -> str:
    """The whole page."""
    attributes = "\n".join(
        f"| `{_spelled(a.pattern)}` | saved in place of the `{a.of}` |" for a in ATTRIBUTES
    )
    parts = [
        _HEAD.format(reserved=", ".join(f"`{n}`" for n in RESERVED_NAMESPACES)),
        "## native_functions.yaml\n",
        _table(Operator),
        "Keys without effect here, accepted because upstream's entries have them:\n",
        _without_effect(),
        "## derivatives.yaml\n",
        _table(Derivative),
        _FORMULAS.format(attributes=attributes),
        _KEYS.format(
            keys=", ".join(f"`{k}`" for k in sorted(DISPATCH_KEYS)),
            composite=", ".join(f"`{k}`" for k in COMPOSITE_KEYS),
            tags=", ".join(f"`{t}`" for t in TAGS),
        ),
    ]
    return "\n".join(parts)


def _spelled(pattern: str) -> str:
    text = pattern.replace("{}", "self").replace("\\", "")
    return text.replace("((?P<dimension>-?w+))", "(k)")


def _table(record: type) -> str:
    lines = ["| key | form | meaning |", "| --- | --- | --- |"]
    for name, field in spec_keys(record).items():
        if not field.metadata["without_effect"]:
            extension = " *extension*" if field.metadata["is_extension"] else ""
            doc = field.metadata["doc"].replace("|", "\\|")
            lines.append(f"| `{name}`{extension} | {field.metadata['form']} | {doc} |")
    return "\n".join(lines) + "\n"


def _without_effect() -> str:
    lines = ["| key | meaning upstream | why it changes nothing |", "| --- | --- | --- |"]
    for name, field in spec_keys(Operator).items():
        if why := field.metadata["without_effect"]:
            lines.append(f"| `{name}` | {field.metadata['doc']} | {why} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
