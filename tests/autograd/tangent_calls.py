# SPDX-License-Identifier: BSD-3-Clause
"""One call for each operator with a formula for tangents, and the same made of torch's operators.

All are functions of the library's namespace and of two 2 x 3 tensors, and give the results that
depend on them. `ALL` takes them from the library, `REFERENCES` from torch.
"""

import torch
from plain_calls import Call

FACTOR = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]], dtype=torch.float64)
INDEX = torch.tensor([1, 0, 1])


def _each_product(ops, x, y):
    return tuple(ops.each_product([x, y, x[0]], [y, FACTOR.to(x.dtype), y[1]]))


def _each_product_reference(x, y):
    return x * y, y * FACTOR.to(x.dtype), x[0] * y[1]


ALL: dict[str, Call] = {
    "product": lambda ops, x, y: (ops.product(x, y),),
    "product (broadcast)": lambda ops, x, y: (ops.product(x[0], y),),
    "expo": lambda ops, x, y: (ops.expo(x * y),),
    "squared": lambda ops, x, y: (ops.squared(x * y),),
    "neg": lambda ops, x, y: (ops.neg(x * y),),
    "scaled_sum": lambda ops, x, y: (ops.scaled_sum(x, y, 1.5),),
    "total": lambda ops, x, y: (ops.total(x * y),),
    "flagged": lambda ops, x, y: (ops.flagged(x * y, [False, True]),),
    "rows_at": lambda ops, x, y: (ops.rows_at(x * y, INDEX),),
    "sine_cosine": lambda ops, x, y: ops.sine_cosine(x * y),
    "clash_results": lambda ops, x, y: ops.clash_results(x * y),
    "clash_tangent": lambda ops, x, y: (ops.clash_tangent(x, y),),
    "turned": lambda ops, x, y: ops.turned(x, y),
    "scaled_or_not": lambda ops, x, y: (ops.scaled_or_not(x, y),),
    "scaled_or_not (missing)": lambda ops, x, y: (ops.scaled_or_not(x * y),),
    "times_total": lambda ops, x, y: (ops.times_total(x, [y, x, y]),),
    "stacked": lambda ops, x, y: (ops.stacked([x, FACTOR.to(x.dtype), y]),),
    "halves": lambda ops, x, y: tuple(ops.halves(x * y)),
    "each_product": _each_product,
    "each_expo": lambda ops, x, y: tuple(ops.each_expo([x, x * y, y[0]])),
    "each_scaled": lambda ops, x, y: tuple(ops.each_scaled([x, y], [2, -0.5])),
    "value_and_index": lambda ops, x, y: (ops.value_and_index(x * y)[0],),
    "float_and_value": lambda ops, x, y: (ops.float_and_value(x * y)[1],),
    "differentiable_if": lambda ops, x, y: (ops.differentiable_if(x * y, True),),
    "pair_if": lambda ops, x, y: (ops.pair_if(x * y, False)[1],),
    "ignores_other": lambda ops, x, y: (ops.ignores_other(x, y.detach()),),
    "masked_pair": lambda ops, x, y: ops.masked_pair(x * y, [True, True]),
    "masked_pair (first)": lambda ops, x, y: (ops.masked_pair(x * y, [True, False])[0],),
    "masked_pair (second)": lambda ops, x, y: (ops.masked_pair(x * y, [False, True])[1],),
}
REFERENCES = {
    "product": lambda x, y: (x * y,),
    "product (broadcast)": lambda x, y: (x[0] * y,),
    "expo": lambda x, y: ((x * y).exp(),),
    "squared": lambda x, y: ((x * y) ** 2,),
    "neg": lambda x, y: (-(x * y),),
    "scaled_sum": lambda x, y: (x + 1.5 * y,),
    "total": lambda x, y: ((x * y).sum(),),
    "flagged": lambda x, y: (x * y * 3,),
    "rows_at": lambda x, y: ((x * y).index_select(0, INDEX),),
    "sine_cosine": lambda x, y: ((x * y).sin(), (x * y).cos()),
    "clash_results": lambda x, y: ((x * y).sin(), (x * y).cos()),
    "clash_tangent": lambda x, y: (x * y,),
    "turned": lambda x, y: (x * y.cos(), x * y.sin()),
    "scaled_or_not": lambda x, y: (x * y,),
    "scaled_or_not (missing)": lambda x, y: (x * y,),
    "times_total": lambda x, y: (x * (y + x + y),),
    "stacked": lambda x, y: (torch.stack([x, FACTOR.to(x.dtype), y]),),
    "halves": lambda x, y: ((x * y)[:1], 2 * (x * y)[1:]),
    "each_product": _each_product_reference,
    "each_expo": lambda x, y: (x.exp(), (x * y).exp(), y[0].exp()),
    "each_scaled": lambda x, y: (2 * x, -0.5 * y),
    "value_and_index": lambda x, y: (2 * x * y,),
    "float_and_value": lambda x, y: (2 * x * y,),
    "differentiable_if": lambda x, y: (2 * x * y,),
    "pair_if": lambda x, y: (3 * x * y,),
    "ignores_other": lambda x, y: (x * y.detach(),),
    "masked_pair": lambda x, y: ((x * y).exp(), (x * y) ** 2),
    "masked_pair (first)": lambda x, y: ((x * y).exp(),),
    "masked_pair (second)": lambda x, y: ((x * y) ** 2,),
}
# Right for complex numbers too.
COMPLEX = ("product", "expo", "squared", "neg", "scaled_sum", "total", "stacked", "halves")
# Call an operator with a list of results: PyTorch's slow fallback of vmap takes none.
NOT_BATCHED = ("times_total", "halves")
# Detaches an input, which finite differences do not see.
DETACHING = ("ignores_other",)


def has_tangents(name: str) -> bool:
    """Whether the operator of a call has a formula for tangents."""
    others = {"lacks_other", "typed"}
    return name.split(" ")[0] in {call.split(" ")[0] for call in ALL} | others
