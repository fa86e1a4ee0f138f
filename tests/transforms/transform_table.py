# SPDX-License-Identifier: BSD-3-Clause
"""The table: rows of operators and forms, columns of transforms; a cell passes or is excused.

`excuse_of` derives from the dispatcher and the YAML files which cells are excused; the tests assert
that exactly these are, and that the others pass. docs/make_transforms.py prints it.
"""

from dataclasses import dataclass
from enum import Enum

import batch_columns
import run_columns
import trace_columns
from operators import read_cpu_fallbacks
from table_rows import ROWS, Row

COLUMNS = {
    "eager": run_columns.eager,
    "compile static": trace_columns.compile_static,
    "compile dynamic": trace_columns.compile_dynamic,
    "export": trace_columns.export,
    "jit.script": trace_columns.jit_script,
    "vmap": batch_columns.vmap,
    "nested vmap": batch_columns.nested_vmap,
    "vmap(grad)": batch_columns.vmap_of_grad,
    "jvp": batch_columns.jvp,
    "functionalize": trace_columns.functionalize,
    "autocast": run_columns.autocast,
    "inference_mode": run_columns.inference_mode,
    "no_grad": run_columns.no_grad,
    "CUDA graph": run_columns.cuda_graph,
    "deepcopy": run_columns.deepcopied,
    "pickle": run_columns.pickled,
    "opcheck": trace_columns.opcheck,
}
DIFFERENTIATED = ("vmap(grad)", "jvp")
ON_GPU = ("CUDA graph",)
CPU_ONLY = read_cpu_fallbacks("CUDA")


class Reason(Enum):
    """All the reasons for which a cell may not pass: the mark of each, and what it says."""

    NO_SUCH_FORM = ("–", "the operator has no such form")
    NOT_DIFFERENTIABLE = ("D", "the operator has no gradient, and backward says so")
    NEEDS_A_GPU = ("G", "tested where there is a GPU")
    REFUSED = ("R", "refused with an error that says why")

    @property
    def mark(self) -> str:
        return self.value[0]


@dataclass(frozen=True)
class Excuse:
    reason: Reason
    error: type = Exception  # of a refusal
    match: str = ""  # what it says, as a regular expression
    torch_match: str = ""  # what torch says where its own operator is refused, if anything else


_NO_GRADIENT_OF_OUT = Excuse(
    Reason.REFUSED,
    RuntimeError,
    "functions with out=... arguments don't support automatic differentiation",
)
_NO_TANGENT_OF_OUT = Excuse(
    Reason.REFUSED,
    NotImplementedError,
    "carries a forward-mode tangent, and forward-mode differentiation of this operator",
    "Trying to use forward AD with .* that does not support it because it is an out= function",
)
_NO_CAPTURE_ON_CPU = Excuse(
    Reason.REFUSED,
    RuntimeError,
    "not permitted when stream is capturing|due to a previous error during capture"
    "|Cannot copy between CPU and CUDA tensors during CUDA graph capture",
)


def excuse_of(row: Row, column: str, gpu: bool) -> Excuse | None:
    """Why a cell is not expected to pass; None: it is. `gpu`: CUDA kernels can run here."""
    if row.overload is None:
        return Excuse(Reason.NO_SUCH_FORM)
    if column in ON_GPU and not gpu:
        return Excuse(Reason.NEEDS_A_GPU)
    if column in ON_GPU and row.operator in CPU_ONLY:
        return _NO_CAPTURE_ON_CPU
    if column in DIFFERENTIATED and row.kind == "out":
        return _NO_GRADIENT_OF_OUT if column == "vmap(grad)" else _NO_TANGENT_OF_OUT
    if column in DIFFERENTIATED and not row.is_differentiable:
        return Excuse(Reason.NOT_DIFFERENTIABLE)
    return None


def cells() -> list:
    return [(row, column) for row in ROWS for column in COLUMNS]


def excused_share(gpu: bool) -> float:
    """The part of the cells that are excused, of those whose form exists.

    CUDA graphs can be captured where there is a GPU; elsewhere that is no column.
    """
    excuses = [excuse_of(*cell, gpu) for cell in cells() if gpu or cell[1] not in ON_GPU]
    existing = [e for e in excuses if e is None or e.reason != Reason.NO_SUCH_FORM]
    return sum(excuse is not None for excuse in existing) / len(existing)
