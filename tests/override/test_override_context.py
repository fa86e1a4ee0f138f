# SPDX-License-Identifier: BSD-3-Clause
"""torchext.override: which kernel runs on which thread, and what the operator keeps meanwhile."""

import gc
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Callable

import pytest
import torch
from override_kernels import ADD, times

import torchext
import torchext.ops  # namespace myns


def test_the_kernel_runs_inside_the_block_only(pair):
    a, b = pair
    before = a + b
    with torchext.override(ADD, times(3)):
        assert torch.equal(a + b, before * 3)
        assert torch.equal(torch.add(a, b, alpha=2), torch.sub(a, b, alpha=-2) * 3)
        assert torch.equal(a.clone().add_(b), before)  # another operator
    assert torch.equal(a + b, before)


def test_an_operator_is_named_by_its_overload_too(pair):
    a, b = pair
    with torchext.override(torch.ops.aten.add.Tensor, torch.ops.aten.add.Tensor):
        assert torch.equal(a + b, a.add(b))
    with torchext.override("aten::sin", torch.cos):
        assert torch.equal(a.sin(), a.cos())


def test_nested_overrides_reach_one_another_from_inside_out(pair):
    a, b = pair
    plain = a + b
    seen = []

    def noting(name: str, kernel: Callable) -> Callable:
        def noted(*args, **kwargs):
            seen.append(name)
            return kernel(*args, **kwargs)

        return noted

    with torchext.override(ADD, noting("outer", times(2))):
        with torchext.override(ADD, noting("inner", times(5))):
            assert torch.equal(a + b, plain * 2 * 5)
            assert seen == ["inner", "outer"]
        seen.clear()
        assert torch.equal(a + b, plain * 2)
        assert seen == ["outer"]


def test_an_override_entered_in_a_kernel_reaches_what_the_kernel_would(pair):
    a, b = pair
    plain = a + b

    def kernel(self, other, *, alpha=1):
        with torchext.override(ADD, times(7)):
            return torch.add(self, other, alpha=alpha)

    with torchext.override(ADD, times(2)), torchext.override(ADD, kernel):
        assert torch.equal(a + b, plain * 2 * 7)


def test_a_kernel_sees_the_overrides_of_other_operators(pair):
    a, b = pair
    with torchext.override("aten::mul.Tensor", lambda self, other: torch.sub(self, other)):
        with torchext.override(ADD, lambda self, other, *, alpha=1: torch.mul(self, other)):
            assert torch.equal(a + b, a - b)


def test_an_operator_as_the_kernel_runs_in_its_place(pair):
    a, b = pair
    with torchext.override(ADD, "myns::add.Tensor"):
        with torch.autograd.profiler.profile() as profile:
            result = a + b
        names = [event.name for event in profile.function_events]
    assert torch.equal(result, a + b)
    assert names.index("aten::add") < names.index("myns::add")


def test_the_same_object_is_entered_again_and_decorates(pair):
    a, b = pair
    plain = a + b
    doubled = torchext.override(ADD, times(2))
    with doubled:
        with doubled:
            assert torch.equal(a + b, plain * 4)
        assert torch.equal(a + b, plain * 2)

    @doubled
    def add(depth: int):
        return a + b if depth == 0 else add(depth - 1)

    assert torch.equal(add(0), plain * 2)
    assert torch.equal(add(2), plain * 8)
    assert torch.equal(a + b, plain)


def test_exceptions_pass_and_restore_everything(pair):
    a, b = pair
    plain = a + b

    class Mine(Exception):
        pass

    def failing(self, other, *, alpha=1):
        torch.add(self, other)
        raise Mine("from the kernel")

    with torchext.override(ADD, times(2)):
        with pytest.raises(Mine, match="from the kernel"):
            with torchext.override(ADD, failing):
                a + b
        assert torch.equal(a + b, plain * 2)
        with torchext.override(ADD, failing):
            for _ in range(2):
                with pytest.raises(Mine):
                    a + b
    assert torch.equal(a + b, plain)


def test_overrides_may_be_left_in_another_order(pair):
    a, b = pair
    plain = a + b
    first, second = torchext.override(ADD, times(2)), torchext.override(ADD, times(3))
    first.__enter__()
    with second:
        first.__exit__()
        assert torch.equal(a + b, plain * 3)
    assert torch.equal(a + b, plain)
    with pytest.raises(RuntimeError, match="an override is left that nobody is in"):
        first.__exit__()


def test_gradients_are_the_operators_own(pair):
    a, b = (x.requires_grad_() for x in pair)
    expected = torch.autograd.grad((a * b).sum(), [a, b])

    def mul(self, other):
        assert not torch.is_grad_enabled() or (self * other).grad_fn is None  # below autograd
        return torch.mul(self, other)

    with torchext.override("aten::mul.Tensor", mul):
        result = a * b
        assert result.grad_fn.name() == "MulBackward0"
        assert torch.autograd.gradcheck(torch.mul, (a, b), check_forward_ad=True)
        assert torch.autograd.gradgradcheck(torch.mul, (a, b))
    torch.testing.assert_close(torch.autograd.grad(result.sum(), [a, b]), expected)
    with torchext.override(ADD, "myns::add.Tensor"):
        assert torch.autograd.gradcheck(torch.add, (a, b))


def test_transforms_run_above_the_kernel(pair):
    x, seen = pair[0], []

    def mul(self, other):
        seen.append(type(self) is torch.Tensor and not torch._C._functorch.is_batchedtensor(self))
        return torch.mul(self, other)

    with torchext.override("aten::mul.Tensor", mul):
        gradients = torch.func.vmap(torch.func.grad(lambda row: (row * row * row).sum()))(x)
        jacobian = torch.func.jacrev(lambda row: row * row)(x[0])
    torch.testing.assert_close(gradients, 3 * x.square())
    torch.testing.assert_close(jacobian, torch.diag(2 * x[0]))
    assert len(seen) > 2 and all(seen)


def test_a_profile_may_begin_and_end_across_the_block(pair):
    a, b = pair
    with torchext.override(ADD, times(2)):
        profile = torch.autograd.profiler.profile().__enter__()
        assert torch.equal(a + b, a.add(b))
    assert torch.equal(a + b, b + a)
    profile.__exit__(None, None, None)
    assert [event.name for event in profile.function_events].count("aten::mul") == 2

    with torch.autograd.profiler.profile():
        override = torchext.override(ADD, times(2)).__enter__()
    override.__exit__()


def test_a_kernel_lives_as_long_as_its_override(pair):
    a, b = pair
    kernel = times(2)
    alive, override = weakref.ref(kernel), torchext.override(ADD, kernel)
    del kernel
    with override:
        assert torch.equal(a + b, a.add(b))
    assert alive() is not None
    del override
    assert alive() is None


def test_arguments_reach_a_function_as_the_operator_gets_them():
    seen = {}

    def full_like(self, fill_value, **options):
        seen.update(options)
        return torch.full_like(self, fill_value, **options)

    with torchext.override("aten::full_like", full_like):
        torch.full_like(torch.ones(2), 1, dtype=torch.half, memory_format=torch.contiguous_format)
    assert seen["dtype"] is torch.half and seen["memory_format"] is torch.contiguous_format

    def cat(tensors, dim):
        seen["tensors"] = len(tensors)
        return torch.cat(tensors, dim)

    with torchext.override("aten::cat", cat):
        assert torch.cat([torch.ones(1, 2)] * 3, 1).shape == (1, 6)
    assert seen["tensors"] == 3


def test_several_results():
    x = torch.tensor([3.0, 1.0, 2.0])

    def sort(self, dim=-1, descending=False):
        values, indices = torch.sort(self, dim, not descending)
        return values, indices

    with torchext.override("aten::sort", sort):
        assert torch.sort(x).values.tolist() == [3, 2, 1]
    with torchext.override("aten::sort", lambda self, *_: torch.sort(self)[0]):
        with pytest.raises(RuntimeError, match="returned 1 results, and the operator has 2"):
            torch.sort(x)


def test_threads_have_overrides_of_their_own(pair):
    a, b = pair
    plain = a + b
    barrier, wrong = threading.Barrier(8), []
    factors = [None, 2, 3, "myns::add.Tensor", None, 5, 7, 11]

    def work(factor):
        barrier.wait()
        for _ in range(150):
            if factor is None:
                result, expected = a + b, plain
            elif factor == "myns::add.Tensor":
                expected = plain
                with torchext.override(ADD, factor):
                    result = a + b
            else:
                expected = plain * factor
                with torchext.override(ADD, times(factor)):
                    result = a + b
            if not torch.equal(result, expected):
                wrong.append((factor, result))

    with torchext.override(ADD, times(13)):  # for this thread only
        threads = [threading.Thread(target=work, args=(factor,)) for factor in factors]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert torch.equal(a + b, plain * 13)
    assert wrong == []


def test_forked_tasks_inherit_the_overrides(pair):
    a, b = pair
    forked = torch.jit.CompilationUnit(
        """
        def add(x, y):
            return x + y

        def add_elsewhere(x, y):
            return torch.jit._wait(torch.jit._fork(add, x, y))
        """
    ).add_elsewhere
    plain, ran_on = a + b, []

    def kernel(self, other, *, alpha=1):
        ran_on.append(threading.get_ident())
        return torch.add(self, other, alpha=alpha) * 2

    with torchext.override(ADD, kernel):
        assert torch.equal(forked(a, b), plain * 2)
    assert len(ran_on) == 1 and ran_on[0] != threading.get_ident()
    assert torch.equal(forked(a, b), plain)
    assert len(ran_on) == 1


def test_backward_runs_under_the_overrides_of_its_caller(pair):
    x = pair[0].requires_grad_()
    y = x.sin().sum()
    with torchext.override("aten::cos", lambda self: torch.cos(self) * 3):
        (under,) = torch.autograd.grad(y, x, retain_graph=True)
    (after,) = torch.autograd.grad(y, x)
    torch.testing.assert_close(under, after * 3)


def test_the_kernel_is_installed_once_by_any_number_of_threads():
    barrier = threading.Barrier(8)

    def install():
        barrier.wait()
        torchext.override("aten::erfinv", torch.erfinv)

    threads = [threading.Thread(target=install) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    registered = torch._C._dispatch_dump("aten::erfinv")
    assert registered.count("torchext.override") == 1


def test_a_child_that_forks_meanwhile_may_override_as_well():
    code = """
import os, threading
import torch, torchext

def make():
    return torchext.override("aten::mul.Tensor", lambda self, other: torch.mul(self, other) * 3)

done = threading.Event()

def repeat():
    while not done.is_set():
        make()

make()
threads = [threading.Thread(target=repeat) for _ in range(2)]
for thread in threads:
    thread.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        with make():
            os._exit((torch.ones(()) * 2).item() != 6)
    assert os.waitpid(child, 0)[1] == 0
done.set()
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr


def test_an_object_that_keeps_an_override_by_its_own_method_is_garbage():
    class Tracer:
        def __init__(self):
            self.override = torchext.override("aten::mul.Tensor", self.mul)

        def mul(self, a, b):
            return torch.mul(a, b) * 3

    def made():
        tracer = Tracer()
        with tracer.override:
            gc.collect()  # while a thread is in it, it is none
            assert (torch.ones(()) * 2).item() == 6
        return weakref.ref(tracer)

    references = [made() for _ in range(5)]
    gc.collect()
    assert not any(reference() for reference in references)


def test_a_function_may_leave_out_one_of_several_results():
    """As convolution_backward does with the gradient of an input that needs none."""
    backward = torch.ops.aten.convolution_backward.default
    calls = []

    def count(*args, **kwargs):
        results = backward(*args, **kwargs)
        calls.append([result is None for result in results])
        return results

    convolution = torch.nn.Conv2d(1, 1, 3)
    with torchext.override("aten::convolution_backward", count):
        convolution(torch.ones(1, 1, 4, 4)).sum().backward()
    assert calls == [[True, False, False]]
    assert convolution.weight.grad.unique().item() == 4


def test_installing_warns_of_nothing_and_hides_no_warning():
    code = """
import warnings
import torch, torchext, torchext.compat
with warnings.catch_warnings():
    warnings.simplefilter("error")
    torchext.override("aten::sin", torch.sin)
library = torch.library.Library("aten", "IMPL")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    library.impl("cos", lambda self: torch.sin(self), "CPU")
if torchext.compat.version() < (2, 14):  # from there on torch does not warn of Python's
    assert any("Overriding a previously registered" in str(w.message) for w in caught), caught
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0 and result.stderr == "", result.stderr


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_what_is_compiled_meanwhile_is_right_afterwards(backend, pair):
    a, b = pair
    torch._dynamo.reset()

    @torch.compile(backend=backend)
    def compiled(x, y):
        return torch.relu(x + y).sum()

    expected = torch.relu(a + b).sum()
    with torchext.override(ADD, times(2)):
        under = compiled(a, b)
    # Inductor has an addition of its own
    torch.testing.assert_close(under, expected * (2 if backend == "eager" else 1))
    torch.testing.assert_close(compiled(a, b), expected)


def test_a_compiled_function_enters_overrides_between_its_graphs(pair):
    a, b = pair
    torch._dynamo.reset()

    @torch.compile(backend="eager")
    def compiled(x, y):
        z = x * y
        with torchext.override(ADD, times(2)):
            z = z + x
        return z + y

    expected = (a * b + a) * 2 + b
    torch.testing.assert_close(compiled(a, b), expected)
    torch.testing.assert_close(compiled(a, b), expected)


def test_any_backend_and_any_namespace():
    x = torch.ones(2, 3, device="meta")
    kernel = lambda self, other, *, alpha=1: self.new_empty(5)  # noqa: E731
    with torchext.override(ADD, kernel, dispatch_key="Meta"):
        assert (x + x).shape == (5,)
    assert (x + x).shape == (2, 3)
    y = torch.ones(2)
    with torchext.override("myns::mul.Tensor", "aten::mul.Tensor"):
        assert torch.ops.myns.mul.Tensor(y, y + y).tolist() == [2, 2]
    with torchext.override("myns::mul.Tensor", lambda self, other: self - other):
        assert torch.ops.myns.mul.Tensor(y, y).tolist() == [0, 0]


def test_functions_for_forms_that_write(pair):
    a, b = pair

    def tenfold_(self, other, *, alpha=1):
        self.copy_((self + other) * 10)

    def tenfold_out(self, other, *, alpha=1, out):
        return out.copy_((self + other) * 10)

    expected = (a + b) * 10
    x, out = a.clone(), torch.empty_like(a)
    with (
        torchext.override("aten::add_.Tensor", tenfold_),
        torchext.override("aten::add.out", tenfold_out),
    ):
        assert x.add_(b) is x
        assert torch.add(a, b, out=out) is out
    torch.testing.assert_close([x, out], [expected, expected])
    with torchext.override("aten::add_.Tensor", times(10)):
        with pytest.raises(RuntimeError, match="another tensor than 'self'"):
            a.clone().add_(b)


def test_a_kernel_that_is_registered_later_is_overridden_too():
    a = torch.ones(2)
    with torchext.override("aten::sinh", torch.cosh):
        assert torch.equal(a.sinh(), a.cosh())
    library = torch.library.Library("aten", "IMPL")
    library.impl("sinh", torch.zeros_like, "CPU")
    assert torch.equal(a.sinh(), torch.zeros(2))
    with torchext.override("aten::sinh", lambda self: torch.sinh(self) + 7):
        assert torch.equal(a.sinh(), torch.full((2,), 7.0))
    assert torch.equal(a.sinh(), torch.zeros(2))
    del library
    gc.collect()
    torch.testing.assert_close(a.sinh(), torch.exp(a) / 2 - torch.exp(-a) / 2)


def test_a_kernel_that_is_removed_again_is_not_called(pair):
    a = pair[0]
    plain, ones, zeros = a.cosh(), torch.ones_like(a), torch.zeros_like(a)
    library = torch.library.Library("aten", "IMPL")
    library.impl("cosh", torch.zeros_like, "CPU")
    with torchext.override("aten::cosh", lambda self: torch.cosh(self) + 1):
        assert torch.equal(a.cosh(), ones)
        another = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            another.impl("cosh", torch.ones_like, "CPU", allow_override=True)
        assert torch.equal(a.cosh(), ones)
        with torchext.override("aten::cosh", lambda self: torch.cosh(self) * 3):
            # Inner and outer kernel, and what was registered last.
            assert torch.equal(a.cosh(), (ones + 1) * 3)
            del another
            gc.collect()
            assert torch.equal(a.cosh(), (zeros + 1) * 3)
            del library
            gc.collect()
            assert torch.equal(a.cosh(), (plain + 1) * 3)
        assert torch.equal(a.cosh(), plain + 1)
    assert torch.equal(a.cosh(), plain)


def test_a_kernel_that_another_calls_is_removed_for_it_too():
    a = torch.ones(2)
    below = torch.library.Library("aten", "IMPL")
    below.impl("asinh", torch.zeros_like, "CPU")
    with torchext.override("aten::asinh", torch.cosh):
        switch = torch.library.get_kernel("aten::asinh", "CPU")
    above = torch.library.Library("aten", "IMPL")
    keys = torch._C._dispatch_keys(a)
    above.impl("asinh", lambda self: switch.call_boxed(keys, self), "CPU", allow_override=True)
    with torchext.override("aten::asinh", torch.cosh):
        assert torch.equal(a.asinh(), a.cosh())
    assert torch.equal(a.asinh(), torch.zeros(2))
    del below
    gc.collect()
    with pytest.raises(RuntimeError, match="invalidated"):  # as of any kernel of get_kernel
        a.asinh()
    del above
    gc.collect()
    torch.testing.assert_close(a.asinh(), torch.log(a + torch.sqrt(a * a + 1)))


def test_an_operator_that_is_defined_again_has_its_new_kernel():
    for factor in (2, 3):
        library = torch.library.Library("definedagain", "DEF")
        library.define("scaled(Tensor x) -> Tensor")
        library.impl("scaled", lambda x, factor=factor: x * factor, "CPU")
        x = torch.ones(2)
        with torchext.override("definedagain::scaled", torch.neg):
            assert torch.equal(torch.ops.definedagain.scaled(x), -x)
        assert torch.equal(torch.ops.definedagain.scaled(x), x * factor)
        library._destroy()
        del library
        gc.collect()
