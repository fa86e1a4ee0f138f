# SPDX-License-Identifier: BSD-3-Clause
"""Which autograd kernel an operator gets, where its derivatives entry does not say everything."""

import pytest

from codegen.analysis.library import plan_library
from codegen.errors import Errors, SpecError
from codegen.plan.autograd import Unrecorded
from codegen.spec.load import load_derivatives, load_operators

HEADER = "# SPDX-License-Identifier: BSD-3-Clause\n"
PAIR = "pair(Tensor self, Tensor other) -> (Tensor, Tensor)"


@pytest.fixture
def operator_of(tmp_path):
    """A function of a schema, its entry's other lines and its formulas: the operator's plan."""

    def plan(schema, entry="dispatch: {CPU: k}", formulas=()):
        functions, derivatives = tmp_path / "n.yaml", tmp_path / "d.yaml"
        functions.write_text(f"{HEADER}- func: {schema}\n  {entry}\n")
        lines = "".join(f"  {line}\n" for line in formulas)
        derivatives.write_text(f"{HEADER}- name: {schema}\n{lines}" if formulas else HEADER)
        errors = Errors()
        operators = load_operators(functions, "n.yaml", errors)
        given = load_derivatives(derivatives, "d.yaml", errors) if formulas else []
        found = plan_library("space", ("n.yaml",), operators, given, errors)
        errors.raise_if_any()
        return found.operators[0]

    return plan


@pytest.fixture
def plan_of(operator_of):
    """What of that plan stands on the autograd key of all devices."""
    return lambda *args, **kwargs: operator_of(*args, **kwargs).on_autograd


def test_without_an_entry_gradients_are_refused(plan_of):
    assert plan_of(PAIR) is Unrecorded.NOT_IMPLEMENTED


@pytest.mark.parametrize(
    "formulas",
    [
        ["other: non_differentiable"],
        ["output_differentiability: [True, False]", "other: non_differentiable"],
    ],
)
def test_an_entry_that_leaves_an_argument_out_loses_no_gradient(formulas, plan_of):
    assert plan_of(PAIR, formulas=formulas) is Unrecorded.NOT_IMPLEMENTED


@pytest.mark.parametrize(
    "formulas",
    [
        ["self, other: non_differentiable"],
        ["output_differentiability: [False, False]", "self: grad", "other: grad"],
    ],
)
def test_an_entry_that_declares_everything_not_differentiable(formulas, plan_of):
    assert plan_of(PAIR, formulas=formulas) is Unrecorded.IGNORED


def test_what_takes_tensors_and_gives_none_runs_below_autograd(plan_of):
    assert plan_of("count(Tensor self) -> int") is Unrecorded.IGNORED
    assert plan_of("now() -> int") is None


def test_composite_implicit_operators_have_no_autograd_kernel(operator_of):
    plan = operator_of("parts(Tensor self) -> Tensor", entry="tags: []")
    assert plan.autograd == ()
    assert plan.tracked is None


def test_a_tangent_without_a_gradient_is_refused(plan_of):
    with pytest.raises(SpecError, match="d.yaml:3:12: error: .*self_t") as raised:
        plan_of(PAIR, formulas=["result0: self_t", "result1: other_t"])
    assert "'self' has no gradient formula, so it has no tangent" in str(raised.value)


@pytest.mark.parametrize("formula", ["auto_linear", "auto_element_wise", "result * 2"])
def test_a_tangent_of_no_differentiable_argument_is_refused(formula, plan_of):
    with pytest.raises(SpecError, match="a tangent without a gradient"):
        plan_of("same(Tensor self) -> Tensor", formulas=[f"result: {formula}"])


@pytest.mark.parametrize(
    "formulas",
    [
        ["self: space::scale(grad, i)", "result: auto_linear"],
        ["self: grad * i", "result: self_t * i"],
        ["self: grad * i", "result: auto_element_wise"],
    ],
)
def test_an_argument_called_i_is_no_index_of_a_list(formulas, plan_of):
    plan = plan_of("scale(Tensor self, Scalar i) -> Tensor", formulas=formulas)
    assert [tangent.is_elementwise for tangent in plan.tangents] == [False]
    assert [gradient.is_elementwise for gradient in plan.node.gradients] == [False]


def test_an_argument_beside_those_with_formulas_must_not_require_grad(plan_of):
    plan = plan_of("mul(Tensor self, Tensor other) -> Tensor", formulas=["self: grad * other"])
    assert [tensors.name for tensors in plan.refused.without_formula] == ["other"]
    assert [tensors.name for tensors in plan.refused.without_tangent] == ["self", "other"]


def test_what_a_formula_uses_of_a_tensor_is_saved_in_its_place(plan_of):
    formula = "self: grad.expand_symint(self.sym_sizes()).to(self.scalar_type())"
    plan = plan_of("total(Tensor self) -> Tensor", formulas=[formula])
    assert [saved.member for saved in plan.node.saved] == ["self_sym_sizes", "self_scalar_type"]


def test_a_tensor_that_only_one_gradient_needs_is_guarded(plan_of):
    formulas = ["self: grad * other", "other: grad * self"]
    plan = plan_of("mul(Tensor self, Tensor other) -> Tensor", formulas=formulas)
    assert {saved.member: saved.edges for saved in plan.node.saved} == {
        "other_": (0,),
        "self_": (1,),
    }


def test_a_written_result_beside_a_new_one_is_no_mixed_tuple(operator_of):
    plan = operator_of("add_to(Tensor(a!) self, Tensor other) -> (Tensor(a!), Tensor)")
    # PyTorch's boxing takes tuples of references or of values; a mixture does not compile.
    assert plan.signature is None or "&" not in plan.signature.result
