# SPDX-License-Identifier: BSD-3-Clause
"""What a formula names, and how its text is rewritten."""

from __future__ import annotations

import pytest

from codegen.formula.attributes import take_attributes
from codegen.formula.reading import read
from codegen.formula.tangents import at_conjugate, called_again, written_in_place


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("grad * other", ["grad", "other"]),
        ("grad.mul(self)", ["grad", "self"]),
        ("mul_backward(grad, self.sizes(), self)", ["grad", "self", "self"]),
        ("at::mul(grad, c10::nullopt)", ["grad"]),
        ("std::get<0>(result)", ["result"]),
        ("grad -> self.other", ["grad"]),
        ("p->self", ["p"]),
        ("f(\"self\", 'a', grad)", ["grad"]),
        ("grad /* self */ * 2.0e5f", ["grad"]),
        ("1e3 * x1 + 0x1F", ["x1"]),
        ("x1 * 1e-5 - 2E+3f-x2", ["x1", "x2"]),
        ("grad.defined() ? self : Tensor()", ["grad", "self"]),
        ("grads[1]", ["grads"]),
        ("self .dim ()", ["self"]),
        ("lib :: f(x)", ["x"]),
        ("", []),
        ("non_differentiable", ["non_differentiable"]),
        ("dim < 0 && p > (0) ? a : b", ["dim", "p", "a", "b"]),
        ("f(a < b, c > (d))", ["a", "b", "c", "d"]),
        ("a < b", ["a", "b"]),
        ("a < lib::B", ["a"]),
        ("helper<2>(x) + static_cast<MemoryFormat>(y)", ["x", "y"]),
        ("std::vector<Device>{}", []),
        ("helper<Device>(x) + helper<int64_t, size_t>(y)", ["x", "y"]),
        ("lib::f<int[2]>(x)", ["x"]),
    ],
)
def test_free_names_are_values_of_their_own(text: str, names: list[str]) -> None:
    assert [name.text for name in read(text).free] == names


def test_a_name_has_its_offset() -> None:
    assert [(name.text, name.offset) for name in read("f( self )*other").free] == [
        ("self", 3),
        ("other", 10),
    ]


@pytest.mark.parametrize(
    ("text", "indices"),
    [
        ("grad", []),
        ("grads[0] + grads[ 12 ]", [("0", 0), ("12", 11)]),
        ("my_grads[0]", []),
        ("grads[i] * grads[-1]", [("i", 0), ("-1", 11)]),
    ],
)
def test_indices_of_gradients_are_found(text: str, indices: list[tuple[str, int]]) -> None:
    assert [*read(text).grads] == indices


def test_only_free_names_are_renamed() -> None:
    text = "self * f(self, x.self, self(1), 'self') + selfish"
    expected = "me * f(me, x.self, self(1), 'self') + selfish"
    assert read(text).renamed({"self": "me"}) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lib::f(grad)", "::lib::f(grad)"),
        ("::lib::f(grad)", "::lib::f(grad)"),
        ("other::lib::f(grad)", "other::lib::f(grad)"),
        ("mylib::f(lib::g(x))", "mylib::f(::lib::g(x))"),
        ('m == "lib::f" ? x : lib::f("lib::g")', 'm == "lib::f" ? x : ::lib::f("lib::g")'),
        ("x.lib::f() /* lib::g */ + lib :: h", "x.lib::f() /* lib::g */ + ::lib :: h"),
    ],
)
def test_the_librarys_own_namespace_is_rooted(text: str, expected: str) -> None:
    assert read(text).rooted("lib") == expected


@pytest.mark.parametrize(
    ("text", "rewritten", "members"),
    [
        ("grad * self.dim()", "grad * self_dim", ["self_dim"]),
        ("f(self.sizes(), self.sizes())", "f(self_sizes, self_sizes)", ["self_sizes"]),
        (
            "f(self.sym_size(0), self.sym_size(-1))",
            "f(self_sym_argsize_0, self_sym_argsize_minus_1)",
            ["self_sym_argsize_0", "self_sym_argsize_minus_1"],
        ),
        ("self.scalar_type() == x", "self_scalar_type == x", ["self_scalar_type"]),
        ("self.options()", "self_options", ["self_options"]),
        ("self.cos()", "self.cos()", []),
        ("other.dim() + my_self.dim() + x.self.dim()", None, []),
        ("self.sizes()[0]", "self_sizes[0]", ["self_sizes"]),
        ("x.dim()>self.dim()?a :self.dim()", "x.dim()>self_dim?a :self_dim", ["self_dim"]),
        ('f("self.dim()", p->self.dim())', None, []),
        ("/* not self.sym_size(3) */ grad", None, []),
        ("self\n  .sizes ( ) [0]", "self_sizes [0]", ["self_sizes"]),
        ("self.dim(1) + self.dim + self.sym_size(0, 1) + self.sym_size(n + 1)", None, []),
        ("self.sym_size()", None, []),
        (
            "f(self.sym_size(k), self.sym_size(1))",
            "f(self.sym_size(k), self_sym_argsize_1)",
            ["self_sym_argsize_1"],
        ),
        ("f(self.sizes", None, []),
        ("zeros_like(self)", "zeros_of(self_info)", ["self_info"]),
        ("at::zeros_like(self) + x.zeros_like(self) + zeros_like(self, x)", None, []),
    ],
)
def test_attributes_of_a_tensor_become_members(
    text: str, rewritten: str | None, members: list[str]
) -> None:
    found, saved = take_attributes(text, "self", "Tensor", {})
    assert found == (rewritten or text)
    assert [item.member for item in saved] == members


def test_a_saved_attribute_has_type_and_value() -> None:
    _, (saved,) = take_attributes("x.sym_size(dim)", "x", "Tensor", {"dim": "dim_"})
    assert (saved.type, saved.value) == ("c10::SymInt", "{}.sym_size(dim_)")
    text = "x.sym_size(k)"
    assert take_attributes(text, "x", "Tensor", {}) == (text, [])


@pytest.mark.parametrize(
    ("text", "type_", "rewritten", "member"),
    [
        ("f(TensorGeometry(x), grad)", "Tensor", "f(x_geometry, grad)", "x_geometry"),
        ("x->sym_sizes()", "Tensor?", "x_sym_sizes_opt", "x_sym_sizes_opt"),
        ("cat_b(grad, to_args_sizes(x))", "Tensor[]", "cat_b(grad, x_args_sizes)", "x_args_sizes"),
        ("to_args_scalartypes(x)", "Tensor[]", "x_args_scalartypes", "x_args_scalartypes"),
        ("x.sym_blocksize()", "Tensor", "x_self_sym_blocksize_opt", "x_self_sym_blocksize_opt"),
    ],
)
def test_attributes_depend_on_the_type(text: str, type_: str, rewritten: str, member: str) -> None:
    found, (saved,) = take_attributes(text, "x", type_, {})
    assert (found, saved.member) == (rewritten, member)
    others = {"Tensor", "Tensor?", "Tensor[]"} - {type_}
    assert all(take_attributes(text, "x", other, {}) == (text, []) for other in others)


@pytest.mark.parametrize(("type_", "member"), [("Tensor", "x_info"), ("Tensor[]", "x_infos")])
def test_zeros_are_made_of_a_tensor_or_of_each_of_a_list(type_: str, member: str) -> None:
    found, (saved,) = take_attributes("zeros_like(x)", "x", type_, {})
    assert (found, saved.member) == (f"zeros_of({member})", member)


@pytest.mark.parametrize(
    ("text", "indices"),
    [
        ("wrap_opt_if(x, grad_input_mask[0])", [{0}]),
        (
            "f(wrap_opt_if( x, grad_input_mask [1] || grad_input_mask[12] ), wrap_opt_if(x, y))",
            [{1, 12}],
        ),
        ("wrap_opt_if(y, grad_input_mask[0]) + x", []),
        ("wrap_opt_if(x, grad_input_mask[0] && grad_input_mask[1])", []),
        ("wrap_opt_if(x, grad_input_mask[i])", []),
        ("wrap_opt_if(x, grad_input_mask[0] ||", []),
        ("wrap_opt_if(x, grad_input_mask[0", []),
        ("wrap_opt_if(x, grad_input_mask", []),
        ("wrap_opt_if(x, true)", []),
    ],
)
def test_gradients_that_a_wrapped_value_is_for(text: str, indices: list[set[int]]) -> None:
    assert read(text).wrapped("x") == indices


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("fmap(x, [](c10::SymInt i){return -i;})", {"i"}),
        ("[&]{ auto y = f(x); const at::Tensor& z = y; return z * 2; }()", {"y", "z"}),
        ("grad * x", set()),
        ("grad.sum({0}) * other", set()),
        ("[g = grad, x, &y](int i) { return g * x; }()", {"g", "i"}),
        ("[g = f(x * y, &z)](int i) { return g * i; }()", {"g", "i"}),
        ("[&] { return x[0]; }() + f(x * y)", set()),
        ("[](const char* s, const c10::string_view& t) { return f(s, t); }(x)", {"s", "t"}),
        ("[f = [](Tensor t) { return t; }](Tensor u) { return f(u); }(x)", {"f", "t", "u"}),
        ("[&] { std::vector<int64_t> v; return n.dim() > z ? not q : w; }()", {"v"}),
        ("f(a, x == y)", set()),
        ("[&] { return f(a, x == y) && g[z == a] && (f(b) & c == d); }()", set()),
        ("[&] { int64_t a = 1, b = 2; auto [p, q] = f(x); return grads[j]; }()", set("abpq")),
    ],
)
def test_names_that_a_lambda_declares(text: str, names: set[str]) -> None:
    assert read(text).local == names


def test_functions_that_a_formula_calls() -> None:
    text = "f(x.g(), at::h(1), lib::k(2), m<2>(x)) + std::get<0>(n(x))"
    assert read(text).functions == {"f", "m", "n"}


@pytest.mark.parametrize(
    ("formula", "method"),
    [
        ("x_t.mul(y, 2)", "x_t_raw.mul_(y, 2)"),
        ("x_t.mul(f(y).sum())", "x_t_raw.mul_(f(y).sum())"),
        ("x_t.mul()", "x_t_raw.mul_()"),
        ("x_t.mul(y) + z.sum()", None),
        ("x_t.mul(y).sum(z)", None),
        ("x_t.add(y)", None),
        ("z_t.mul(y)", None),
        ("z.x_t.mul(y)", None),
        ("x_t * y", None),
    ],
)
def test_a_tangent_is_written_by_the_method_that_the_formula_is(
    formula: str, method: str | None
) -> None:
    either = f"x_t_raw.defined() ? {method} : {formula}" if method else None
    assert written_in_place("x", formula, "mul") == (
        either or f"written_tangent(x_t_raw, {formula})"
    )


def test_a_gradient_at_the_conjugate_tangent() -> None:
    found = at_conjugate("grad * x.cos() * f(grad, y)", "x", ["grad"])
    assert found == "(x_t.conj() * x_p.cos() * f(x_t.conj(), y)).conj()"


def test_an_operator_is_called_again_for_one_of_its_results() -> None:
    assert called_again("f_out", ["x_t", "n"], None) == "operators::f_out::call(x_t, n)"
    assert called_again("f", ["x_t"], 2) == "::std::get<2>(operators::f::call(x_t))"
