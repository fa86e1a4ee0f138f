# SPDX-License-Identifier: BSD-3-Clause
"""The fallback of a whole backend: what it refuses, and ATen's operators against OpInfo."""

import contextlib
import copy

import pytest
import torch
from torch.testing import assert_close
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves

import torchext


def second(ws, xs):
    both(ws, xs)
    return xs


def both(ws, xs):
    for w in ws:
        w.add_(1)
    for x in xs:
        x.mul_(2)
    return ws, xs


def made(x, out=None):
    return x * 3 if out is None else torch.mul(x, 3, out=out)


def quantized(x):
    return torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)


@pytest.fixture(scope="module")
def plain(device):
    """Operators that torch.library defines for the CPU alone."""
    library = torch.library.Library("fallbackplain", "DEF")
    for schema, kernel in {
        "double(Tensor x) -> Tensor": lambda x: x * 2,
        "part(Tensor(a) x) -> Tensor(a)": lambda x: x[:1],
        "make(int n, *, Device device) -> Tensor": lambda n, device: torch.zeros(n, device=device),
        "draw(Tensor x, *, Generator? generator=None) -> Tensor": lambda x, generator: x,
        "second(Tensor(a!)[] ws, Tensor(b!)[] xs) -> Tensor(b!)[]": second,
        "both(Tensor(a!)[] ws, Tensor(b!)[] xs) -> (Tensor(a!)[], Tensor(b!)[])": both,
        "made(Tensor x, Tensor(a!)? out=None) -> Tensor(a!)": made,
        "nested(Tensor x) -> Tensor": lambda x: torch.nested.nested_tensor([x, x]),
        "sparse(Tensor x) -> Tensor": lambda x: x.to_sparse(),
        "quantized(Tensor x) -> Tensor": quantized,
        "mkldnn(Tensor x) -> Tensor": lambda x: x.to_mkldnn(),
        "counted(Tensor x, Tensor(a!) y) -> Tensor": lambda x, y: y.add_(1).to_sparse(),
    }.items():
        library.define(schema)
        library.impl(schema.partition("(")[0], kernel, "CPU")
    library.define("turn_(Tensor(a!) x) -> Tensor(a!)", tags=torch.Tag.inplace_view)
    library.impl("turn_", lambda x: x.t_(), "CPU")
    library.define("dropout(Tensor x) -> Tensor", tags=torch.Tag.nondeterministic_seeded)
    library.impl("dropout", lambda x: x, "CPU")
    library.define("nowhere(Tensor x) -> Tensor")
    yield torch.ops.fallbackplain
    library._destroy()


def test_an_operator_of_other_people_runs(plain, stats, device):
    assert plain.double(torch.ones(2, device=device)).tolist() == [2, 2]
    assert stats()["fallbackplain::double"].calls == 1


REFUSED = {
    "part": "it returns a view, and a copy's view shares no memory with it",
    "turn_": "it changes sizes and strides of its argument in place",
    "draw": "it draws random numbers, and the generator of the CPU is not that of the device",
    "dropout": "it draws random numbers, and the generator of the CPU is not that of the device",
    "nowhere": "it has no kernel there",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_copies_cannot_stand_for_is_refused_with_the_reason(name, plain, stats, device):
    with pytest.raises(NotImplementedError) as error:
        getattr(plain, name)(torch.ones(2, 2, device=device))
    beginning = (
        f"fallbackplain::{name} has no kernel for torchext and cannot fall back to the CPU: "
    )
    assert str(error.value).splitlines()[0] == beginning + REFUSED[name]
    assert stats() == {}


@pytest.mark.parametrize("norm", [torch.nn.BatchNorm1d, torch.nn.InstanceNorm1d])
def test_running_statistics_are_written_though_no_schema_says_so(norm, device):
    def trained(where):
        module = norm(3, track_running_stats=True).to(where)
        module(torch.arange(24.0).reshape(2, 3, 4).to(where))
        return [buffer.cpu() for buffer in module.buffers()]

    assert_close(trained(device), trained("cpu"))
    assert trained("cpu")[0].count_nonzero() == 3


def test_running_statistics_are_written_in_training_only(stats, device):
    norm = torch.nn.BatchNorm1d(1000).to(device).eval()
    x = torch.ones(2, 1000, device=device, requires_grad=True)
    result = norm(x)
    assert stats()["aten::native_batch_norm"].bytes_to_device == result.nbytes
    with torch.inference_mode():
        norm(torch.ones(2, 1000, device=device))
    versions = [buffer._version for buffer in norm.buffers()]
    result.sum().backward()  # what is saved for it has not changed
    assert [buffer._version for buffer in norm.buffers()] == versions
    written = stats()["aten::native_batch_norm_backward"].bytes_to_device
    assert written == x.nbytes + 2 * 4 * 1000  # gradients of x, of weight and of bias


def test_a_list_that_is_written_to_is_the_result_of_its_letter(plain, device):
    def called(op, device):
        ws, xs = [torch.ones(1, 2, device=device)], [torch.ones(n, device=device) for n in (3, 1)]
        return tree_leaves(op(ws, xs)), [*ws, *xs]

    for op, written in ((plain.second, slice(1, 3)), (plain.both, slice(0, 3))):
        found, given = called(op, device)
        assert [id(t) for t in found] == [id(t) for t in given[written]]
        expected, _ = called(op, "cpu")
        assert_close([t.cpu() for t in found], expected)


def test_a_result_for_an_argument_that_is_missing(plain, device):
    x = torch.ones(2, device=device)
    assert plain.made(x).tolist() == [3, 3]
    out = torch.zeros(2, device=device)
    assert plain.made(x, out) is out and out.tolist() == [3, 3]


WITHOUT_TENSORS = "its result is a sparse, nested, quantized or mkldnn tensor"


@pytest.mark.parametrize("name", ["nested", "sparse", "quantized", "mkldnn"])
def test_a_result_that_the_device_has_no_tensors_of_is_refused(name, plain, device):
    with pytest.raises(NotImplementedError, match=f"cannot fall back .* {WITHOUT_TENSORS}"):
        getattr(plain, name)(torch.ones(2, device=device))


def test_where_a_result_is_refused_nothing_is_written(plain, device):
    x, y = torch.ones(2, 2, device=device)
    with pytest.raises(NotImplementedError, match=WITHOUT_TENSORS):
        plain.counted(x, y)
    assert y.tolist() == [1, 1]


def test_a_transformer_whose_sequences_have_padding(device):
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    module = torch.nn.TransformerEncoder(layer, 1).eval()
    there = copy.deepcopy(module).to(device)
    x, padding = torch.randn(2, 3, 8), torch.tensor([[False] * 3, [False, True, True]])
    with torch.no_grad():
        expected = module(x, src_key_padding_mask=padding)
        found = there(x.to(device), src_key_padding_mask=padding.to(device)).cpu()
    assert_close(found[~padding], expected[~padding])


def test_who_writes_raises_the_version(device):
    library = torch.library.Library("fallbackwrites", "DEF")
    library.define("increment_(Tensor(a!) x) -> ()")
    library.impl("increment_", lambda x: (x.add_(1), None)[1], "CPU")
    try:
        x, t = torch.ones(2, device=device, requires_grad=True), torch.ones(2, device=device)
        y = (x * t).sum()
        torch.ops.fallbackwrites.increment_(t)
        assert (t.tolist(), t._version) == ([2, 2], 1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()
        with torch.inference_mode():
            torch.ops.fallbackwrites.increment_(torch.ones(2, device=device))
    finally:
        library._destroy()


def test_conjugated_views_that_share_memory(device):
    library = torch.library.Library("fallbackviews", "DEF")
    library.define("add_to(Tensor(a!) x, Tensor y) -> ()")
    library.impl("add_to", lambda x, y: (x.add_(y), None)[1], "CPU")
    for key in ("Conjugate", "Negative"):
        library.impl("add_to", torch.library.fallthrough_kernel, key)
    try:
        values = torch.tensor([0 + 1j, 1 + 2j, 2 + 3j, 3 + 4j])
        for view in (lambda b: b[2:].conj(), lambda b: torch._neg_view(b[2:])):
            expected, actual = values.clone(), values.to(device)
            for buffer in (expected, actual):
                torch.ops.fallbackviews.add_to(buffer[:2], view(buffer))
            assert_close(actual.cpu(), expected)
    finally:
        library._destroy()


MIXED = {
    "linear": lambda x, cpu: torch.nn.functional.linear(x, cpu),
    "mm": lambda x, cpu: x @ cpu,
    "gather": lambda x, cpu: x.gather(0, cpu.long()),
    "cat": lambda x, cpu: torch.cat([x, cpu]),
    "where": lambda x, cpu: torch.where(cpu > 0, x, x),
    "out": lambda x, cpu: torch.exp(x, out=cpu),
    "conv": lambda x, cpu: torch.nn.functional.conv1d(x[None], cpu[None]),
    "embedding_bag": lambda x, cpu: torch.nn.functional.embedding_bag(cpu.long(), x, mode="sum"),
    "bag": lambda x, cpu: torch.nn.EmbeddingBag(2, 2).to(x.device)(
        cpu.long().flatten(), torch.zeros(1, dtype=torch.long, device=x.device)
    ),
    "segment_reduce": lambda x, cpu: torch.segment_reduce(
        x[0], "sum", lengths=cpu[0].long(), unsafe=True
    ),
}


@pytest.mark.parametrize("name", MIXED)
def test_a_tensor_that_was_left_on_the_cpu_is_refused(name, device):
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        MIXED[name](torch.ones(2, 2, device=device), torch.ones(2, 2))


def test_indices_and_numbers_may_be_on_the_cpu(device):
    x = torch.arange(3.0, device=device)
    assert x[torch.tensor([2, 0])].tolist() == [2, 0]
    x[torch.tensor([1])] = torch.tensor(5.0)
    assert (x * torch.tensor(2.0)).tolist() == [0, 10, 4]


def test_what_the_backend_runs_on_any_device_falls_back_too(device):
    x = torch.tensor([1 + 2j, 3j])
    assert_close(x.to(device).conj_physical_().cpu(), x.conj_physical())
    real = torch.ones(2, device=device)
    with torchext.fallback.mode("error"):  # of real numbers there is nothing to do
        assert real.conj_physical_() is real


def test_an_operator_that_makes_tensors_from_none_is_refused(device):
    with pytest.raises(NotImplementedError, match="it makes tensors, and takes none"):
        torch.tril_indices(3, 3, device=device)


def test_disable_and_enable(plain, device):
    x = torch.ones(2, device=device)
    torchext.fallback.disable("privateuse1")
    try:
        with pytest.raises(NotImplementedError, match="Could not run 'fallbackplain::double'"):
            plain.double(x)
    finally:
        for name in ("privateuse1", device.type, "privateuseone"):  # once is enough
            torchext.fallback.enable(name)
    assert plain.double(x).tolist() == [2, 2]


def test_what_is_no_device_type(device):
    for name, why in {
        "tpu9": "is no device type",
        "torchext:1": "is a device, and not a device type",
        "cpu": "does not fall back to the CPU",
        "meta": "does not fall back to the CPU",
        "mkldnn": "has no operators of its own",
    }.items():
        with pytest.raises(ValueError, match=f"'{name}' {why}"):
            torchext.fallback.enable(name)


def test_what_is_no_name_of_a_device_type(device):
    for wrong in (device, None, 3):
        with pytest.raises(TypeError, match="a device type is a name such as 'cuda', and not"):
            torchext.fallback.enable(wrong)


def test_another_fallback_in_its_place_is_an_error(device):
    library = torch.library.Library("_", "IMPL")
    library.fallback(torch.library.fallthrough_kernel, "XPU")
    try:
        with pytest.raises(RuntimeError, match="another fallback is registered .* on XPU"):
            torchext.fallback.enable("xpu")
    finally:
        library._destroy()
    torchext.fallback.enable("xpu")
    torchext.fallback.disable("xpu")


def moved(value, device):
    """The tensors of a value on the device, each a leaf."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone().to(device).requires_grad_(value.requires_grad)
    if type(value) in (list, tuple):
        return type(value)(moved(item, device) for item in value)
    if isinstance(value, dict):
        return {key: moved(item, device) for key, item in value.items()}
    return value


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors(item)]
    return []


def run(op, sample, device):
    """The results of a sample on a device with its arguments afterwards, and their gradients."""
    arguments = moved([sample.input, *sample.args], device)
    kwargs = moved(sample.kwargs, device)
    torch.manual_seed(0)
    results = tensors(op(*arguments, **kwargs))
    if device != "cpu":
        torch.accelerator.synchronize(device)  # `to` has samples that do not block
    leaves = [x for x in tensors([arguments, list(kwargs.values())]) if x.requires_grad]
    roots = [x for x in results if x.requires_grad]
    if not (op.supports_autograd and leaves and roots):
        return [*results, *tensors(arguments)], []
    loss = sum(x.abs().sum() for x in roots)
    gradients = torch.autograd.grad(loss, leaves, allow_unused=True)
    return [*results, *tensors(arguments)], gradients


# What makes tensors on the device that it is asked for, and is not here.
ELSEWHERE = (
    "arange eye full linspace logspace normal ones randint randn scalar_tensor to zeros"
).split()


def check(op, sample, device):
    """What the device gives is what the CPU gives."""
    expected = run(op, sample, "cpu")
    is_elsewhere = op.name in ELSEWHERE or op.name.startswith("signal.windows.")
    for one, other in zip(run(op, sample, device), expected, strict=True):
        for x, y in zip(one, other, strict=True):
            assert (x is None) == (y is None)
            if y is not None:
                assert x.device.type == device.type or is_elsewhere
                assert_close(x.cpu(), y.cpu(), equal_nan=True)


# What differs is not the fallback's: tensors without contents, a storage that a copy has not.
NOT_EQUAL = {
    "as_strided": "partial_views",
    "empty": "", "empty_like": "", "empty_permuted": "", "empty_strided": "",
    "new_empty": "", "new_empty_strided": "",
}  # fmt: skip
# Fused on the CPU, and for another device made of operators that add in another order.
IN_ANOTHER_ORDER = ("nn.functional.scaled_dot_product_attention",)
# Layouts that the test device has not, an argument that has to be on the CPU, random numbers.
NOT_THERE = {
    "sparse.mm": "SparseCsrtorchext",
    "sparse.sampled_addmm": "SparseCsrtorchext",
    "tensor_split": "expected tensor_indices_or_sections to be on cpu",
    "to_sparse": WITHOUT_TENSORS,
    "torch.ops.aten._scaled_dot_product_flash_attention_for_cpu": "it draws random numbers",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "op",
    # jiterator is CUDA's
    [op for op in op_db if torch.float32 in op.dtypes and "jiterator" not in op.name],
    ids=lambda op: op.formatted_name,
)
def test_operators_of_torch_give_what_they_give_on_the_cpu(op, device):
    if NOT_EQUAL.get(op.name) == op.variant_test_name:
        pytest.skip("its result has no contents, or a storage that a copy has not")
    why = NOT_THERE.get(op.name)
    with pytest.raises(RuntimeError, match=why) if why else contextlib.nullcontext():
        requires_grad = op.supports_autograd
        dtype = torch.float64 if op.name in IN_ANOTHER_ORDER else torch.float32
        samples = list(op.sample_inputs("cpu", dtype, requires_grad=requires_grad))[:2]
        assert samples
        for sample in samples:
            check(op, sample, device)
