# SPDX-License-Identifier: BSD-3-Clause
"""Writes docs/language.md from the fields of codegen/spec/model.py: `python docs/make_language.py`.

A test compares the page with what this writes, so that it cannot drift from what is accepted.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from codegen.analysis.library import RESERVED_NAMESPACES  # noqa: E402
from codegen.cpp.types import argument_type  # noqa: E402
from codegen.formula.attributes import ATTRIBUTES  # noqa: E402
from codegen.fused.dtypes import CASTS  # noqa: E402
from codegen.fused.functions import functions  # noqa: E402
from codegen.fused.tree import ELEMENT, Call, Name, OfRow, text  # noqa: E402
from codegen.schema.parser import parse_schema  # noqa: E402
from codegen.spec.dispatch_keys import COMPOSITE_KEYS, DISPATCH_KEYS  # noqa: E402
from codegen.spec.keys import spec_keys  # noqa: E402
from codegen.spec.load import TAGS  # noqa: E402
from codegen.spec.model import Derivative, Operator  # noqa: E402
from codegen.spec.short_forms import SHORT_KEYS  # noqa: E402
from codegen.spec.values import ITERATOR_RULES  # noqa: E402

PAGE = ROOT / "docs" / "language.md"

_HEAD = """\
<!-- Written by docs/make_language.py from codegen/spec/model.py; edit those. -->

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

_FORMS = """\
## Forms

The in-place and out= forms of an operator are entries or come from `autogen:`. Those without a
formula, functionalization, batching or samples of their own have those of the functional form that
they belong to. That is what `autogen:` and `structured_delegate` say; otherwise base name,
arguments, results and overload agree:

| form | of `f` | of `f.tanh` |
| --- | --- | --- |
| in-place | `f_` | `f_.tanh` |
| out= | `f.out`, or `f.values`, where it writes to `values` | `f.tanh_out`, `f.tanh_values` |

An overload of which only some words stand in that of the functional form belongs to that one if no
other takes these arguments (`add.out` to `add.Tensor`, `pow_.Scalar` to `pow.Tensor_Scalar`); where
several do, it is an error. No other form stands in for a form without a functional one, which runs
on copies of what it writes to where it is traced. In C++ overloads that take the same types have
their overload in their name, `NS::f_tanh(x)`. A function whose schema has SymInt has ATen's second
name too, `NS::f_symint(x, y.sym_sizes())`; both take SymInt.

"""

_SHORT = """\
## The short way

```yaml
- func: sin(Tensor self) -> Tensor
  forms: [sin_, sin.out]
  structured_inherits: TensorIteratorBase
  meta: unary_float
  dispatch: CPU, CUDA
```

| key | form | meaning |
| --- | --- | --- |
{keys}
| `dispatch` | text or list | Keys alone, whose kernels are named after the operator: `sin_cpu`, \
`sin_cuda`; `sin_cpu_` of an in-place entry, `sin_out_cpu` of an out= entry, `sin` where the \
kernel is made of other operators (`dispatch: CompositeExplicitAutograd`). |
| `layout` | text | That of all tensors. |
| `meta` | text | The function of TensorIterator that sets up the result of a structured operator: \
{rules}, of as many tensors as it takes. Nobody writes a meta function then; beside `forms:`, \
`device_check: NoCheck`, `tags: pointwise` and `vmap: pointwise` are implied. |

In-place forms that no kernel serves, of an operator that is not structured, call the functional one
and copy; they convert and broadcast nothing. What a reduction returns a rule says in one line too,
`meta: {{size: "reduce(self.shape, dim, keepdim)", dtype: self}}`. While a file is read its short
entries become upstream's, so that everything on this page holds for them; `python -m
torchext.codegen expand native_functions.yaml` prints the file in that form, with its comments.

"""

_STRUCTURED = """\
## Structured operators

One shape rule and one kernel per device serve three forms, which are three entries:

```yaml
- func: scale(Tensor self, Scalar factor) -> Tensor
  structured_delegate: scale.out

- func: scale_(Tensor(a!) self, Scalar factor) -> Tensor(a!)
  structured_delegate: scale.out

- func: scale.out(Tensor self, Scalar factor, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  structured_inherits: TensorIteratorBase
  dispatch:
    CPU: scale_cpu
    CUDA: scale_cuda
```

`NS/kernels/scale.h` declares the classes, whose functions the library defines; `TORCH_META_FUNC`,
`TORCH_IMPL_FUNC` and the like of `ATen/TensorMeta.h` may stand in place of the qualified names.

```cpp
void NS::meta::structured_scale::meta(const at::Tensor& self, const at::Scalar& factor) {
  build_borrowing_unary_op(maybe_get_output(), self);
}

void NS::native::structured_scale_cpu::impl(
    const at::Tensor& self, const at::Scalar& factor, const at::Tensor& out) {
  // *this is the iterator; its output is a new tensor, `self`, or the given one
}
```

The meta class is named after the functional form (`mul.Tensor` has `structured_mul_Tensor`), a
kernel's class after the kernel. A meta function without an iterator calls for each result
`set_output_contiguous(index, sizes, options)`, `set_output_strided` where the kernel needs certain
strides, or `set_output_raw_strided` where it copes with those of a given tensor. One
that asks for `sym_sizes()` and calls `set_output_contiguous_symint` and the like serves dynamic
shapes too; with an iterator they are served as they are. `Tensor?` is an `at::OptionalTensorRef`,
`Tensor[]` a `const at::ITensorListRef&`, integers are concrete.

Generated for each form: a function for every device that has a kernel, Meta, functionalization, and
for the functional and in-place forms one for all other devices, which fills its result through the
out= form. An out= tensor is resized with the usual warning where its shape differs, and never
converted; a result that overlaps itself, or an input in part, is refused; a kernel that needs other
strides, or whose operator has no in-place form and is given an input as its result, writes to
another tensor, which is copied. `cpu_fallback` on the out= form serves all forms.

With `precomputed:` the meta function returns `TORCH_PRECOMPUTE_STRUCT(scale)().set_dim(dim)`. A
`ufunc_inner_loop: scale (Floating, Half)` asks for no kernel but for a function in `ufunc/scale.h`
on the include path:

```cpp
template <typename T>
C10_HOST_DEVICE T NS::native::ufunc::scale(T self, T factor);
```

with one parameter for each argument, tensors and Scalars as T: float for float16 and bfloat16. The
groups of dtypes are `Integral`, `Floating`, `Complex`, `FloatingAndComplex`, `All` and
`AllAndComplex`, which hold neither 16-bit floats nor bool.

In-place and out= forms carry the tags `inplace` and `out`, where torch has them; an out= form of an
operator that the library has in functional form as well has no `out`, by which Inductor would call
it for that one, with the tensors first and the keyword arguments twice. Under `vmap` an out= form
calls the functional one and copies into the batched tensor, unless its entry has a
`FuncTorchBatched` kernel; one that is not batched takes no batched result.

"""

_ARGUMENTS = """\
## Layouts

A kernel that reads rows through a pointer says so, and is never given anything else:

```yaml
  layout:
    input: contiguous
    cache: last_dim_contiguous
```

What is not laid out so is copied before the kernel runs, below autograd; where the kernel writes to
a copy, the copy is written back and the argument itself is returned, so that views and strides stay
as they are. An argument that is copied and shares memory with one that is written to is refused.
This holds for every kernel of the operator that runs below autograd on strided tensors, in-place,
out= and composite ones included; the out= tensors and what a rule allocates are laid out by the
rule. `contiguous` is what torch calls so: a dimension of one element has any stride. A functional
operator all of whose tensors are `contiguous` gets the tag `needs_contiguous_strides`: Inductor
then computes them so, and nothing is copied.

## Dtypes

```yaml
  dtypes: Floating, bfloat16, float16    # of every tensor that is read
  dtypes:
    x: [Floating, bfloat16]              # of one argument; others are free
    index: [int32, int64]
  dtypes:
    CPU: Floating
    CUDA: {x: [Floating, bfloat16, float8_e4m3fn], scale: float32}
```

Names are torch's (`float32`), c10's (`Float`) or those of the groups of a `ufunc_inner_loop`. Where
a dispatch key has dtypes of its own they replace the others; Meta takes what any device takes. A
tensor of another dtype is a RuntimeError that names operator, argument and dtypes, in every
form and before the kernel runs. The dtype that is looked at is that of the argument, before a
TensorIterator promotes: where arguments of several dtypes meet, each of them must be listed.

## Samples

Arguments on which `torchext.testing.check` and `pytest --torchext` call the operator
([testing.md](testing.md)):

```yaml
  samples:
    - {input: [3, 4], weight: [4]}             # sizes; random values of the dtype under test
    - {input: [3, 4], eps: 0.25}               # what has a default may be left out, `Tensor?` too
    - x: {size: [5], low: 0, high: 1, exclude_zero: True}
      index: {values: [0, 2, 4], dtype: int64}
      mask: {size: [5], dtype: bool, requires_grad: False}
```

A tensor is its size, or a map: `size`, `dtype`, `low`, `high` and `exclude_zero` as in
`torch.testing.make_tensor` (low -2 and high 2 where floats have none; a `low` alone of 9 or more
has twice itself for `high`, a `high` alone of -9 or less for `low`), `values` in place of a size,
`requires_grad: False` for what no gradient is checked of, `fixed: True` for what is as it is, such
as places in another tensor: no check gives it other values or sizes. Without `dtype`, values are in
that under test. Sizes that are equal in a sample belong together: the checks change them together.
Lists are lists, one value stands for all of `int[2]`; a `ScalarType`, `MemoryFormat` or `Layout` is
torch's name, a complex number `1-2j`, a `Generator` its seed. In-place and out= forms use the
samples of the functional form; out= tensors are made.

## Batches

Under `torch.vmap` an operator with `vmap:` runs once for all examples. `pointwise` puts the batch
dimension in front of all others, where it broadcasts: every result must be the broadcast of all
tensor arguments. Where a batch of scalars meets another dtype the operator runs for each example,
because they promote as scalars. Arguments whose shapes the rule compares with one another, or gives
a result (`x.shape == y.shape`, `like: x`), are expanded where they are not batched; what else it
asks of a shape (`x.dim == 2`, `scale.numel == 1`) is asked of each example, which has a call of its
own where the batch dimension would change the answer. `leading` joins the batch dimension with the
leading one: `[batch, rows, ...]` is `[batch * rows, ...]` for the kernel. Where all of
them have one dimension, each is a row, and the batch becomes the leading dimension; beside others a
tensor of one dimension has a number for each row. An argument that has rows and is not batched is
expanded; where another tensor, such as a weight, is batched, an example is a number without
dimensions, the numbers of rows differ, or the rule asks what all rows together may answer otherwise
(`x.shape[0] % 2 == 0`, `x.numel`, `x.dim == 1` of a row alone), the operator runs for each example.

```yaml
- func: rms_norm(Tensor input, Tensor? weight=None, float eps=1e-6) -> Tensor
  vmap: leading                        # input has rows, weight belongs to all of them

- func: lookup(Tensor table, Tensor index) -> Tensor
  vmap: leading(index)

- func: pooled(Tensor x, int[] kernel) -> Tensor
  vmap: leading if x.dim == 4          # [batch, channels, height, width]; three are one example

- func: turned(Tensor x, int[] angles) -> Tensor
  vmap: leading(x, rows=len(angles))   # of each row come so many, which lie together
```

A condition is of one example, in the language of `meta:`; where it does not hold the operator runs
for each example.

Nested vmap and every `in_dims` are served, and in-place and out= forms too: what is written to must
be batched if an argument is, and is not resized. A result that does not have the batch dimension
where the rule has it is an error that names the operator.

Without a rule, or where it does not serve a call, the operator runs for each example. New results
are stacked, and must have one shape, dtype and device; a result that is no tensor must be the same
for all. Lists may be batched in part, unless they are written to. A view of an argument
(`Tensor(a) -> Tensor(a)`, also in lists) is one view of the whole batch, which shares its memory,
so that writing to it changes the argument; what the examples view must lie at even distances, and
the gradient is that of sizes and strides. An operator with the tag `inplace_view` gives the batched
argument itself another layout. For a batch of size 0 the Meta kernel says what the results are; an
operator without one is called once, on zeros, and is refused where their values would decide.

An operator that draws random numbers, as its tag `nondeterministic_seeded` or an argument of type
`Generator` says, does what `randomness` of torch.vmap says, whether an argument is batched or not.
With `error` it is refused. With `different` it draws for each example, in one call where a rule
serves it: then it must draw for every element, or every row, of all its tensors. What it writes to
must be batched. With `same` it is called once where nothing is batched, and otherwise for each
example, before which the generators are set back: those that it is given, that of the CPU and those
of its arguments' devices. No traced program does that: torch.compile refuses such a call by name.
Its out= forms are refused under vmap, as torch refuses its own. A composite operator without
`vmap:` needs no tag for this: under vmap its parts run, each of which does as `randomness` says.

"""

_KERNELS = """\
## What kernels are given

A kernel takes the arguments in the order of the schema; where `meta:` makes the results, those come
behind them, as `const at::Tensor&`, with the sizes, dtype and strides of the rule. Their memory is
not zeroed. Without `meta:` it returns what it made.

| schema | C++ |
| --- | --- |
{types}

With `_symint` in a kernel's name `SymInt` is `c10::SymInt`, and `SymInt[]` `c10::SymIntArrayRef`.
A structured operator's `impl` takes `Tensor?` as `at::OptionalTensorRef`, and `Tensor[]` as
`const at::ITensorListRef&`.

A `Tensor` is there: a missing one, None from Python, is refused with the operator and the argument
before a kernel sees it. What may be missing is a `Tensor?`, `std::nullopt` then; in a `Tensor[]` of
gradients those are undefined that nobody gave. A list of a fixed length has it: `int[2]` takes two
numbers, or one that stands for both, as a list too, and refuses any other list, but one as long as
a default such as `int[2] stride=[]`; `float[3]` takes three in a list. (torch's Python repeats a
number for `int` and `float`, not for `SymInt`.) `int[1]` is a number or a list of any length, as in
ATen. An operator that is handed such a default on, as ATen's `avg_pool2d_backward`, says `int[]`.

An error of torch's types that a private operator raises in its own name, `ns::_name: ...`, while a
composite kernel of the library calls it, begins with the operator that was called and says
`(in ns::_name)` behind it. Where Python stands between the two, under fake tensors and the modes
that trace programs, and in kernels without a C++ signature, it stays as it is.

"""

_RULES = """\
## Kernels for each instruction set

What setup.py names in `OpLibrary(..., cpu_capabilities=["*_loops.cpp"])` is compiled once for the
processor that everybody has, for AVX2 and for AVX-512, and a kernel calls what this machine runs
best: chosen as ATen chooses its own, `ATEN_CPU_CAPABILITY` included. So is the loop of every
expression. `TORCHEXT_CPU_CAPABILITIES` says for which of `DEFAULT`, `AVX2` and `AVX512` a build
compiles them, or `native`, the one that torch chooses on this machine: that takes a third of their
time, and a kernel refuses to run where the processor has none of them. Changing it compiles all
again.

```cpp
// scale.h
#include <torchext/cpu_capabilities.h>
TORCHEXT_DECLARE_VECTORIZED(void, scale, (float* x, int64_t n, float by))

// scale_loops.cpp, where CPU_CAPABILITY is DEFAULT, AVX2 and AVX512 in turn
#include <ATen/cpu/vec/vec.h>
namespace CPU_CAPABILITY {
void scale(float* x, int64_t n, float by) {
  using V = at::vec::Vectorized<float>;
  at::vec::map([by](V v) { return v * V(by); }, x, x, n);
}
}

// a kernel
TORCHEXT_VECTORIZED(scale)(x, n, 0.5f);
```

What else such a file defines stands in an unnamed namespace. On other processors than x86-64 it is
compiled once.

## Results that are arguments

A schema says of each result whether it is new (`Tensor`) or an argument that is written to
(`Tensor(a!)`), in any order; an argument that may be missing is a result that is new without it.

| schema | what its kernel returns in C++ |
| --- | --- |
| `f_(Tensor(a!) x) -> Tensor(a!)` | `at::Tensor&` |
| `f.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)` | `at::Tensor&` |
| `f(Tensor x, Tensor(a!) y, float z) -> Tensor(a!)` | `at::Tensor` |
| `f(Tensor x, Tensor(a!) out) -> (Tensor(a!), Tensor)` | `std::tuple<at::Tensor, at::Tensor>` |
| `f(Tensor(a!) x, Tensor(b!) y) -> (Tensor(b!), Tensor(a!))` | the same |
| `f(Tensor x, Tensor(a!)? out=None) -> Tensor(a!)` | `at::Tensor` |

Results are references where they are the first argument alone, or the last ones in their order, and
all are written to; otherwise they are values, and a kernel returns the argument itself. An operator
with a type that has no C++ spelling (`Any`, `Future(t)`, `...`) has boxed kernels:
`void f(const c10::OperatorHandle& op, torch::jit::Stack* stack)`.

An operator that only writes, whose results are arguments that it writes to or that has none, needs
neither a Meta kernel nor `meta:`: on Meta it returns its arguments as they are. (An out= form,
which may resize, does.) A functional form of an operator that writes, by `autogen:`, differentiates
as that does on copies, if the one has formulas and the other none.

Where torch cannot trace such a schema, or a formula reads what is written to an argument that is
not returned, or an argument is called `mode`, `dispatch_key` or `_…`, which torch mixes up with its
own, traced calls become `f.functional`, an operator that is generated beside `f`: it runs `f` on
copies of what that writes to and returns them. A traced call
in which what is written to has elements in common with another argument is refused by name (it is
copied alone, and the other would not see what is written; pass a `.clone()`), and sizes that are
symbols become numbers where one memory holds both. An argument that is written to then keeps its
size under `torch.compile`. Other operators without results, and those alone, torch traces as those
of `torch.library`: arguments that share memory are seen, but for `x` beside `x.detach()`;
`torch.func.functionalize` refuses them, and takes their functional form, by `autogen:`.
A lazily conjugated or negated view (`x.conj()`) that is written to is written as a copy and copied
back, and must then share no memory with another argument where it is not the only one that is
written to, or not the first result. One that is only read is read as it was before the call.

A new result is no argument, shares memory with none, and no element with another result: Inductor
computes further results in its memory, and autograd gives it a history. A kernel that returns
something else is refused by name, with formulas and without, whether gradients are recorded or not,
compiled calls included; in `torch.inference_mode()` by `torchext.testing.check` alone. It returns a
copy, `at::clone(x)`; where that costs too much, the function that calls the operator decides
whether there is anything to do, and returns `x` without a call. With the tag
`maybe_aliasing_or_mutating` a result may share memory with an argument. A CompositeImplicitAutograd
kernel may return its argument too, as those of ATen do (`conj_physical`), and says so with the tag.

## Views

`Tensor(a) -> Tensor(a)` says that the result is a view of the argument, `-> Tensor(a)[]` that each
tensor of the list is (registered as `Tensor(a)[](a)`, without which `torch.compile` takes each for
a tensor of its own). The kernel makes it by ATen's views, on every device alike:

```yaml
- func: halves(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]
  dispatch:
    CompositeExplicitAutograd: halves

- func: flip(Tensor(a) self) -> Tensor(a)
  dispatch:
    CompositeExplicitAutograd: flip

- func: flip_(Tensor(a!) self) -> Tensor(a!)
  tags: inplace_view
  dispatch:
    CompositeExplicitAutograd: flip_
```

It is a view as ATen's are: `_base`, version counters, writes to the view and to the base with their
gradients and tangents, `torch.no_grad` and inference mode, `_view_func`. Formulas are as for other
results, of a list in terms of `grads`. Views that one call returns together cannot be written to
while gradients are recorded; a view of an operator without a formula neither. A result that shares
no memory with the argument is an error that names the operator, and one that is the argument itself
becomes another tensor of its memory. An operator that makes its argument a view of itself, as
`transpose_` does, has the tag `inplace_view`.

For calls that are traced there are two more operators beside each view: `flip_scatter(base, src)`
is `base` with the values of `src` where the view is, by which a write reaches the base, and
`flip_copy` a copy of the view; `autogen:` or an entry of its own may name the latter. Tracing asks
for one result, of one argument of type `Tensor` that is not keyword-only; of an `inplace_view`
operator for a functional form that is a view. Others are refused by name by `torch.compile`, and so
is a view that has another sign than its base, as `torch._neg_view` makes: generated code would not
see it. An `inplace_view` operator on an argument of the compiled function fails as ATen's does.

## Rules of results

An operator that is not structured says in `meta:` what its results are; its kernels are given them,
last, and return nothing:

```yaml
- func: silu_and_mul(Tensor input) -> Tensor
  autogen: silu_and_mul.out
  meta:
    check:
      - input.dim >= 1
      - floating(input)
      - input.shape[-1] % 2 == 0
    size: input.shape[:-1] + (input.shape[-1] // 2,)
    dtype: input
  dispatch:
    CPU: silu_and_mul_cpu
```

```cpp
void NS::native::silu_and_mul_cpu(const at::Tensor& input, const at::Tensor& out);
```

What fails is reported by the operator's name and its arguments'. An operator that others call, such
as `_pool`, which the library's function `pool` calls in Python, has words of its own, in which the
caller finds what it has passed:

```yaml
    check:
      - x.dim == 4: "pool: images must be [batch, channels, height, width]"
```

Generated: the functional form, Meta, the out= form of `autogen:` with its functionalization. With
several results, `results:` has a rule for each, by its name in the schema (or `out0`, `out1`, ...).
A result that is an argument has no rule, but where that may be missing, `Tensor(a!)? out`: the rule
then allocates it, and brings one that is given to its size as in an out= form. The kernel of
`f(Tensor x, Tensor(a!) n, Tensor(b!)? out=None) -> (Tensor(a!), Tensor(b!))` is given `x`, `n` and,
last, `out`.

| key | meaning |
| --- | --- |
| `like` | a tensor whose size and dtype the result has |
| `size` | a shape; in a list `dynamic` is a size that values tell, `dynamic <= n` a bounded one |
| `dtype` | a dtype, or a tensor that has it |
| `strides` | what the kernel is given: `contiguous`, the default; `any`; or strides, as a shape |
| `when` | a condition without which the result is undefined |
| `check` | a list of conditions, looked at first; one that names a missing `Tensor?` is left out |

Where `size` has a `dynamic` size, or the entry says `allocates: True`, a kernel is not given its
results: it returns what it made, and in every call sizes and dtype are compared with the rule, an
error that names the rule's line; one that is not contiguous, or has not the strides that the rule
says, is copied, since compiled code reads it so. Of a dynamic size a traced call has an unbacked
symbol, with its bound; under `torch.compile` that needs
`torch._dynamo.config.capture_dynamic_output_shape_ops`, as ATen's `nonzero` does, without which the
graph breaks. A tensor on Meta that is not traced is refused:

```yaml
- func: keep(Tensor boxes, Tensor scores, int most=-1) -> Tensor
  meta:
    check:
      - "boxes.shape[0] == scores.shape[0]": "as many scores as boxes, got {scores.shape}"
    size: "[min(most, boxes.shape[0]) if most >= 0 else dynamic <= boxes.shape[0]]"
    dtype: int64
  dispatch:
    CPU: keep_cpu
```

A `Tensor[]` is ruled tensor by tensor, of each tensor or number of a list, or of `range(n)`, where
the kernel makes the list; how many came back is compared as well:

```yaml
- func: padded(Tensor[] inputs, int[] most) -> Tensor[]
  allocates: True
  meta:
    for x in inputs:
      size: "(max(x.shape[0], most[0]),) + x.shape[1:]"
      dtype: x
  dispatch:
    CPU: padded_cpu                      # std::vector<at::Tensor> padded_cpu(inputs, most)
```

A rule with `check:` alone is for every operator that has a C++ signature, whatever it returns: it
is looked at before each kernel, on Meta too. In the words of a check `{x.shape}` stands for the
value of an expression; a condition of several parts shows the values of what it names by itself.

Expressions are Python's. Integers: numbers, integer arguments, `x.dim`, `x.numel`, `x.shape[i]`,
`len(list)`, `min`, `max`, `+ - * // %`. Shapes: `x.shape`, its slices, lists of integers, tuples
`(a, b)`, joined by `+`; `broadcast(shape, ...)`, `replace(shape, dim, size)`, `reduce(shape, dim or
dims, keepdim)` (no dims: all), `cat(tensors, dim)`. Dtypes: `x.dtype`, `promote(x, ...)` and
`promote_to_float(x, ...)` of tensors, a `ScalarType` argument, `float32` and the like. `tensors[i]`
is a tensor; `a if condition else b`; `n or 3` for an `int?` that is missing or 0, and for a
`ScalarType?` that is missing.
A `Tensor?` that a result depends on and that is missing is refused where the rule comes to ask for
it (`a.shape if a is not None else b.shape`), and a check that asks for one is left out.
Numbers (`scale > 0`, of a float or Scalar) and texts (`mode in ("max", "avg")`) are compared.
Conditions: comparisons, `x is None`, bool arguments, `mask[0]`, `and`, `or`, `in`, `not`, and in
`check` also `floating(x)` and `has_dim(x, dim)`. Integers are SymInts: symbolic sizes stay
symbolic, and a condition on one is asserted at run time. Division by zero and negative sizes are
errors that name the operator.

"""

_EXPRESSIONS = """\
## Operators that are one expression

```yaml
- func: swiglu(Tensor gate, Tensor up) -> Tensor
  forms: [swiglu_, swiglu.out]
  pointwise: gate * sigmoid(gate) * up
```

is an operator without a kernel file: what is computed of each element, in one pass over memory.
From the line follow

- the kernels, for the CPU compiled once for each instruction set (AVX-512, AVX2 and neither, or
  those of `TORCHEXT_CPU_CAPABILITIES`; chosen as ATen chooses its own, `ATEN_CPU_CAPABILITY`) from
  ATen's vectors, for CUDA with accesses of 16 bytes; tensors broadcast, and strides are read as
  they are;
- Meta with symbolic sizes, `vmap`, and the forms, which convert, resize and refuse as ATen's do;
- derivatives of every order and mode. `swiglu_backward`, `swiglu_double_backward` and `swiglu_jvp`
  are operators too, whose kernels are expressions, derived by the table below. They compute the
  gradients that are asked for alone; a tensor that was broadcast has the sum of its own. What is
  saved is the arguments that any of the gradients needs, whichever are asked for, or the result
  where its gradient needs less of them. Beyond the second derivative, and in forward mode beyond
  the first, they differentiate as the ATen operators that the expression is written with. `python
  -m torchext.codegen expand FILE` prints them, with names of `let:` for what stands in them more
  than once. An entry in derivatives.yaml replaces what would be derived, and `differentiable:
  False` leaves it out. Where nothing depends smoothly on a tensor (`1 if x > 0 else 0`,
  `floor(x)`), results do not require grad, as those of comparisons, and in-place forms refuse to
  write to what does;
- a CompositeImplicitAutograd kernel of ATen's operators: a device without a kernel runs it, and
  Inductor compiles the expression together with what stands around it, forward and backward, in
  place of a call that it cannot see into.

Expressions are Python's: `+ - * / % **`, comparisons, `and`, `or`, `not`, `a if c else b`, numbers,
the arguments (`Tensor`, `Tensor?`, `Scalar`, `float`, `int`, `bool`), the names of `let:`, and the
functions below. `weight is None` asks for a tensor that may be missing; that, and what is made of
numbers alone (`1 - beta`), is known once a call, in double precision, of integers exactly where an
int64 has them (`2 ** -1` is 0.5). A condition that is known so
chooses as Python does: what stands in the branch that is not taken is no part of the value, nor of
a gradient, as in `x if weight is None else x / weight`, and as a part of another condition too,
`x if weight is None or x > weight else x / weight` (the dtype and whether a result requires
grad follow from all that the expression names, whatever is chosen); one of elements chooses between
two values, as torch.where does. A tensor that may be missing stands only where it is given. Of
several results each has an expression, in a list; an argument `bool[N] output_mask` says which of N
are wanted. A long one goes on in the next line, in any way that YAML has. The arguments of an
operator that is differentiated are not called `grad`, `grads`, `result` or `output_mask`, which
formulas are about. Beside an expression an entry may say `forms`, `let`, `opaque`, `dtypes`,
`autocast`, `samples`, `differentiable`, `doc` and what else is no kernel's: those are generated.

```yaml
- func: rotate(Tensor x, Tensor y, Tensor angle) -> (Tensor, Tensor)
  let:
    c: cos(angle)
    s: sin(angle)
  pointwise:
    - x * c - y * s
    - x * s + y * c
```

torch.compile sees the expression, forward and backward, and fuses it with what stands beside it; an
operator with `opaque: True` it calls as a kernel.

The dtype is that of an operator of ATen that takes all the tensors and numbers which decide on the
value: `x if mask > 0 else y` has that of x and y. Everything is computed in the dtype of all of
them together, of float16 and bfloat16 in float32, and rounded once; what is written out is not
reordered, so that `x - x` stays NaN where x is. Integers and bools are served where the functions
have them; complex numbers, Scalars too, where `dtypes:` has some, by the functions that are marked.
What is real beside them is computed as a real number, `log(x) * z` with a negative x as NaN, and
the gradient of a real tensor is real. `dtypes: [bfloat16, float32]` leaves out what no call needs,
in the loops of all that is derived too, which compile in as much less time: expressions are
compiled for the floats that it lists, for float32 beside 16 bits, and for what these are together;
for all where a result may have the default dtype. Every result has the sizes that
all tensors broadcast to; sizes that do not are an error that names the arguments.

| function | complex | gradients |
| --- | --- | --- |
{functions}

`grad` is the gradient of the result, `result` that; an argument without a formula has no gradient,
as comparisons have none. Of complex numbers what multiplies `grad` is conjugated, `grad *
conj(cos(x))` of a sine, and `x (complex)` stands for what holds of real numbers only. Values at
kinks, NaN, infinities and signed zeros are PyTorch's, but of complex sums, which torch.add
multiplies by 1 first: there an infinite part makes no NaN of the other. A power by the number 0.5
or -0.5 is a square root, as PyTorch has it but for float16 on the CPU. A complex number has powers
by numbers, and by no tensor. In what is derived `handle_r_to_c(like, x)` is the real part of x
where `like` is real, as in PyTorch's formulas.
`detach(x)` is x, and has no gradient; `broadcast_with(x, like)` is x in a result of the sizes of
both.

## Operators that are one expression of rows

```yaml
- func: rms_norm(Tensor input, Tensor? weight=None, float eps=1e-6) -> Tensor
  rows: input * rsqrt(mean(input ** 2) + eps) * (1 if weight is None else weight)
```

is an operator that works along the last dimension, with all that follows from `pointwise:` but what
is named below. A value is a number of the call, a number that each row has one of, or one for each
element; they broadcast, and a result has a row for each row, or one dimension less.

| function | gradients |
| --- | --- |
{of_rows}

| written | is |
| --- | --- |
| `x` | the elements of a tensor; one of size `[n]` belongs to all rows |
| `x[..., None]` | the number that a tensor of one dimension less has for the row |
| `x[index]` | one element: `index` is a tensor that has one integer for each row |
| `x[:n // 2]` | one of equal slices of an argument's rows, as `x[n // 3:2 * n // 3]` is too |
| `n` | how many elements a row has; in a slice how many the argument has |
| `cat(x, y)` | a result whose rows consist of others, all of one length |
| `sum_to_size(x, y)` | a result of the size of `y`: the sum where rows of that are broadcast |
| `to(x, int8)` | a result in another dtype: {casts} |
| `to(x * w, x)` | a result in the dtype of an argument that it is computed of |

All rows and slices of one operator are equally long: an argument is used in slices of one length,
or whole. None of them is copied. What is joined, and what is cast, is a whole result, computed in
the precision that everything has, and rounded once as `torch.Tensor.to` rounds; integers and floats
of 8 bits have no gradient.

```yaml
- func: silu_and_mul(Tensor input) -> Tensor
  rows: silu(input[:n // 2]) * input[n // 2:]

- func: quantize(Tensor input) -> (Tensor values, Tensor scale)
  let:
    scale: maximum(amax(abs(input)), 1e-10) / 127
  rows:
    - to(round(input / scale), int8)
    - to(scale, float32)
```

An index that is no place of the row is an IndexError where the element is wanted; it is not, in

```yaml
- func: cross_entropy(Tensor input, Tensor target, int ignore_index=-100) -> Tensor
  rows: 0 if target == ignore_index else logsumexp(input) - input[target]
```

A row is gone over as often as its reductions need, in memory that is near by then; what takes long
to compute is kept between. On CUDA a warp serves a short row, and a block a long one. Sums are made
of parts, in float32 of 16-bit floats. What a largest number is only taken out for keeps a formula
short with `detach(amax(x))`. `exp(x - logsumexp(x))`, which
the gradient of `logsumexp` is, is computed as softmax is: it adds up to 1 where the elements are so
large that `logsumexp` is no more than the largest.

Everything is computed in floating point. `argmax` and `count` return int64; with them, and with
`arange`, rows of 16,777,216 elements and more are computed in float64, and so are rows whose length
torch.compile does not know. Integers that rows have one of are compared as integers: a kernel
refuses one that its dtype does not have. (Tensors of elements are compared in the dtype of all:
int64 beside floats is refused, since large ones would be rounded.) Strides are read as they are
where the last dimension is dense, results are contiguous. A batch of `vmap` is one call, whose rows
are those of all examples. Other devices than the CPU and CUDA and torch.compile run the ATen
operators of the expression: there an index that is no place of the row makes NaN, and on CUDA a
device-side assertion fails. The gradient of a row that belongs to all rows, a weight's, is summed
by the kernel, in an order that does not depend on the number of threads; where the tensor was
broadcast otherwise, or the gradient needs nothing of it, its rows are written and then summed.
`prod` is a float, and `prod_of_others`, its gradient, stands in operators that say `differentiable:
False`. Not yet: complex numbers, forms that are structured.

"""

_OVERRIDES = """\
## Kernels for PyTorch's operators

An entry of namespace `aten` defines no operator: it registers kernels for one of PyTorch's, so that
`a + b` runs them.

```yaml
- func: aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
  device_check: NoCheck
  dispatch:
    CPU: my_add
```

The kernel `NS::native::my_add` is declared in `NS/kernels/add.h`, and called behind the usual
device check and guard. Schema, tags, gradient, Meta kernel and C++ API stay PyTorch's: the entry
takes `dispatch:`, `device_check`, `device_guard`, `layout:`, `use_const_ref_for_mutable_tensors`
and `doc:`, and keys without effect; any other key is an error, and so is a formula for it. The
library may have an operator of its own with the same name.

In the kernel `at::add` is the kernel itself; PyTorch's stands in `<ATen/ops/add_cpu_dispatch.h>`,
`at::cpu::add`. In-place and out= forms are operators of their own.

The library is loaded only where the schema is that of the torch that is there. An operator that is
CompositeImplicitAutograd there differentiates through the operators that it calls (`square`,
`matmul`), which a kernel for a device would hide: it is refused, unless the entry has a kernel for
`Autograd` too. Where loading fails, PyTorch's kernels are back.

`torch.compile` traces above such kernels: what Inductor makes code for (`add`) is Inductor's code,
what it calls is the kernel. For a block of Python there is `torchext.override`.

"""

_FORMULAS = """\
## Formulas

`NAMES: FORMULA`. NAMES are arguments, or several with commas whose gradients one formula gives as a
tuple. FORMULA is a C++ expression; unqualified functions are ATen's and those of
`torchext/derivative_helpers.h`, and operators of the library are written with their namespace
(`myns::rms_norm_backward(grad, ...)`), which makes them differentiable in turn. It may use

| name | meaning |
| --- | --- |
| `grad` | the gradient of the first differentiable result, the only one that then is so |
| `grads[i]`, `grad_<result>` | that of the i-th differentiable result, or the named one's |
| `grads` | all of them; of a list result one per element |
| an argument's name | its value, saved; a missing `Tensor?` is an undefined tensor |
| `result`, `result0`, a result's name | a result; saved |
| `grad_input_mask` | which of the NAMES need a gradient, as `std::array<bool, N>` |
| `wrap_opt_if(x, grad_input_mask[i])` | `x`, saved only if the i-th gradient is needed |
| `retain_variables` | whether the graph is kept for another backward |
{attributes}

Where `output_differentiability` lets a result require grad whose gradient no formula names, that is
an error of the spec: it would be dropped. With several results, or a list, a gradient is an
undefined tensor where nothing that was differentiated depends on the result, as for PyTorch's own
formulas: `grad_a * 2` then raises, with the operator and the result, and `grad_a.defined() ? grad_a
* 2 : Tensor()` gives no gradient instead. `materialize_grads: True` in the entry makes zeros of it,
as `torch.autograd.Function` does, for the results whose gradients the formulas name. A gradient
that a formula gives as an undefined tensor is none at all (None in Python).

One entry names gradients in one way. A formula that names `i` is for the i-th element of lists
(`grads[i]`, `self[i]`), where a list is the one result with gradients; a list that has fewer
elements is refused. `non_differentiable` in place of a formula: no gradient flows to the argument,
and no tangent; a second derivative reaches it where another formula reads it. A tensor argument
that no line names must not require grad: the call raises. A tangent reads arguments as they were
before the operator wrote to others, also where they share memory.
In `sym_size(k)` k is a number or an argument; otherwise the tensor is saved.
(Upstream exempts one called `output`, the result of the forward operator that an operator of a
backward takes beside its input; so does this generator, in operators whose name has `backward`.)
A name of the library's namespace that is no operator, or another number of arguments than it has,
is an error of the spec; so is, where torch is installed, a function that ATen has not. C++
functions of your own, which differentiate through what they call, stand in another namespace, and
in a header that an entry without a name includes:

```yaml
- headers: my_ops/formulas.h             # on the include path: include_dirs in setup.py

- name: cube(Tensor self) -> Tensor
  self: my_ops::formulas::cube_backward(grad, self)
  result: my_ops::formulas::cube_backward(self_t, self_p)
```

What they take and return only the compiler checks. An entry without any formula is an error, unless
it has `output_differentiability` or is of an operator of a backward. A formula that holds `: `, or
begins with a character of YAML's own such as `{{` or `!`, stands in quotes.

`not_implemented("name")` raises when backward reaches it. Nothing is saved but what a formula uses,
and only if a gradient that needs it is asked for. What only the C++ compiler can tell is
reported on the formula's own line.

## Forward mode

NAMES are results: the formula gives their tangents, one for each differentiable result or none at
all. It uses `self_t`, the tangent of a differentiable argument (zeros where it has none), or
`self_t_raw`, the same (undefined where it has none, for formulas in which zero times infinity would
be NaN), `self_p`, its value, results and the other arguments by name, as the kernel has them: a
`Tensor?` is a `std::optional<at::Tensor>`. `sum_of_defined(a, b)` adds what may be undefined, and
`expanded_as(tangent, result)` gives a tangent the sizes of its result. A formula that gives an
undefined tensor says that there is no tangent; what was written to has zeros then, in the place of
its old one. A tangent is converted to the dtype of its result. `auto_linear`
is the operator itself at the tangents, where one of its results is differentiable, that one;
`auto_element_wise` the formula of the gradient, for an operator whose Jacobian is diagonal. An
operator without such lines refuses tangents by name. A result's tangent shares no memory with an
argument or its tangent, whatever the formula returns, so that writing to the one does not change
the other.

## What is written to

An operator that writes its result to an argument (`Tensor(a!) self` and `-> Tensor(a!)`) has an
entry of its own, or differentiates by the entry of its functional form, `mul` for `mul_`. The
argument's old value is copied where a formula reads it and not otherwise; in an entry of its own
`original_self_p` and `original_self_t` are the old value and tangent, `result` is the new value. An
argument that is written to and not returned cannot have a gradient; formulas see what was written.
Where it is written to again before backward, backward refuses it, as for ATen's operators; a
compiled call keeps the value of its own moment. One whose gradient is `non_differentiable` loses
its history, and its name is the old value; where its result is not differentiable either, it must
not require grad. The tangents of several results are all computed before
one is overwritten. While gradients or tangents are recorded, two arguments that are written to
share no memory, and while gradients are, one of several differentiable results is written to no
view of another tensor; both are refused by name. Where the argument may be missing (`Tensor(a!)?
total=None`), `result` is new without it, and `total` and `total_t` are undefined tensors; a
keyword-only one that is given refuses gradients, as in ATen. An out= form refuses tensors that
require grad.

What one operator writes to a buffer and the formula of another one reads in the same graph, as
`update(buffer, x)` and `x * buffer`, Inductor of torch 2.13 writes over in backward, ATen's
`index_copy_` and `index_put_` in the place of `update` included. What ends it is
`torch._functorch.config.donated_buffer = False`, with an empty cache of torch.compile.

## Formulas per autograd key

Under `dispatch:` each key has formulas and a node of its own: `Default` for all devices, or
`AutogradCUDA`, `AutogradNestedTensor`, ...
"""

_KEYS = """\
## Dispatch keys

{keys}.

`CUDA` kernels (and those of other CUDA keys) are compiled where CUDA is. Kernels of devices run
behind a check that all tensors are on one device and a guard that makes it current; see
`device_check` and `device_guard`. Meta kernels that are generated refuse what they refuse.
{composite} take kernels that are made of other operators.

## Tags

{tags}.
"""


_SCHEMA_TYPES = (
    "Tensor", "Tensor(a!)", "Tensor?", "Tensor(a!)?", "Tensor[]", "Tensor?[]", "Tensor[]?",
    "Scalar", "Scalar?", "int", "int?", "int[]", "int[]?", "int[2]", "float", "float?", "float[]",
    "float[]?", "bool", "bool?", "bool[3]", "bool[]", "str", "str?", "str[]", "complex",
    "ScalarType", "ScalarType?", "Layout", "Device", "MemoryFormat", "Generator?",
)  # fmt: skip


def _functions(of_rows: bool) -> str:
    """The functions of expressions, with the formulas of their gradients."""
    rows = []
    for name, function in functions().items():
        is_internal = function.makes_result or function.kind == "given"
        if function.is_of_rows != of_rows or is_internal:
            continue
        arguments = tuple(map(Name, function.arguments))
        if name == ELEMENT:
            arguments = arguments[0], OfRow(function.arguments[1])
        known = len(arguments) - len(function.defaults)
        defaults = dict(zip(function.arguments[known:], function.defaults))
        words = [f"{a}={text(defaults[a])}" if a in defaults else a for a in function.arguments]
        call = f"{name}({', '.join(words)})" if function.is_called else text(Call(name, arguments))
        formulas = (
            (argument, " ".join(words.split())) for argument, words in function.formulas.items()
        )
        lines = [f"`{argument}: {formula}`" for argument, formula in formulas]
        marks = [] if of_rows else ["yes" if function.takes_complex else ""]
        rows.append(f"| {' | '.join([f'`{call}`', *marks, '<br>'.join(lines)])} |")
    return "\n".join(rows)


def _types() -> str:
    """The rows of schema types and what a kernel without `_symint` takes for them."""
    schemas = [parse_schema(f"f({type_} x) -> ()") for type_ in _SCHEMA_TYPES]
    types = [argument_type(schema.arguments[0], symint=False) for schema in schemas]
    return "\n".join(f"| `{s}` | `{t}` |" for s, t in zip(_SCHEMA_TYPES, types))


def page() -> str:
    """The whole page."""
    attributes = "\n".join(
        f"| `{a.call.replace('DIM', 'k')}` | saved in place of the `{a.of}` |" for a in ATTRIBUTES
    )
    parts = [
        _HEAD.format(reserved=", ".join(f"`{n}`" for n in RESERVED_NAMESPACES)),
        "## native_functions.yaml\n",
        _table(Operator),
        "Keys without effect here, accepted because upstream's entries have them:\n",
        _without_effect(),
        _FORMS,
        _SHORT.format(keys=_short_keys(), rules=", ".join(f"`{rule}`" for rule in ITERATOR_RULES)),
        _EXPRESSIONS.format(
            functions=_functions(False),
            of_rows=_functions(True),
            casts=", ".join(f"`{dtype}`" for dtype in CASTS),
        ),
        _STRUCTURED,
        _KERNELS.format(types=_types()),
        _RULES,
        _ARGUMENTS,
        _OVERRIDES,
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


def _table(record: type) -> str:
    lines = ["| key | form | meaning |", "| --- | --- | --- |"]
    for name, field in spec_keys(record).items():
        if not field.metadata["without_effect"]:
            extension = " *extension*" if field.metadata["is_extension"] else ""
            doc = field.metadata["doc"].replace("|", "\\|")
            lines.append(f"| `{name}`{extension} | {field.metadata['form']} | {doc} |")
    return "\n".join(lines) + "\n"


def _short_keys() -> str:
    keys = SHORT_KEYS.items()
    return "\n".join(f"| `{name}` *extension* | {form} | {doc} |" for name, (form, doc) in keys)


def _without_effect() -> str:
    lines = ["| key | meaning upstream | why it changes nothing |", "| --- | --- | --- |"]
    for name, field in spec_keys(Operator).items():
        if why := field.metadata["without_effect"]:
            lines.append(f"| `{name}` | {field.metadata['doc']} | {why} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
