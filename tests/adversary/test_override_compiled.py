# SPDX-License-Identifier: BSD-3-Clause
"""Programs and torchext.override: whoever makes one, and wherever, it is that of no override.

Each is compared with what eager code gives outside of overrides, and with the same program made
outside of them. Kernels that it calls are those of the thread that calls it.
"""

import asyncio
import importlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from override_programs import MAKERS, MUL, Program, X, made, tenfold, values

import torchext
from torchext import program_makers
from torchext.runtime import runtime

ROOT = Path(__file__).parents[2]
SQUARE = X * X
TENFOLD = SQUARE * 10


@pytest.fixture(autouse=True)
def no_caches():
    """No program is that of an earlier run; and each test has Dynamo to itself."""
    import torch._functorch.config
    import torch._inductor.config

    torch._dynamo.reset()
    with (
        torch._inductor.config.patch(fx_graph_cache=False),
        torch._functorch.config.patch(enable_autograd_cache=False),
    ):
        yield
    torch._dynamo.reset()


# what takes a quarter of a minute is made once
SLOW = ["AOTInductor", "inductor, cpp wrapper"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("maker", MAKERS)
def test_a_program_is_that_of_no_override(maker):
    with torch.no_grad():
        plain = values(Program())
        with torchext.override(MUL, tenfold):
            program = made(maker)
            inside = values(program)
        assert values(program) == plain
        if maker in SLOW or maker == "jit.script":  # which calls each operator inside of one
            return
        program = made(maker)
        with torchext.override(MUL, tenfold):
            assert values(program) == inside
        assert values(program) == plain


KERNELS_ARE_CALLED = ["eager", "aot_eager", "aot_function", "make_fx, fake", "export", "jit.trace"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("maker", KERNELS_ARE_CALLED)
def test_the_kernels_that_a_program_calls_are_overridden(maker):
    with torch.no_grad():
        program = made(maker)
        with torchext.override(MUL, tenfold):
            folded, item, parameters = (result[0] for result in values(program))
    assert (folded, item, parameters) == (51, 7, 51)


@pytest.mark.parametrize("maker", ["inductor", "inductor, freezing"])
def test_inductor_overrides_what_it_calls_a_kernel_for(maker):
    from override_programs import compiled, frozen

    make = compiled() if maker == "inductor" else frozen()
    matrix = torch.eye(3)
    inverse = torch.linalg.inv(matrix) * 3  # a kernel and Inductor's code
    with torch.no_grad():
        program = make(lambda x: torch.linalg.inv(x) * 3)
        override = torchext.override("aten::linalg_inv_ex", hundredfold_inverse)
        with override, torchext.override(MUL, tenfold):
            assert torch.equal(program(matrix), inverse * 100)
        assert torch.equal(program(matrix), inverse)


def hundredfold_inverse(matrix, **options):
    inverse, info = torch.linalg.inv_ex(matrix, **options)
    return inverse * 100, info


def run_programs(where: str, caches: Path, *makers: str) -> dict:
    script = Path(__file__).with_name("override_programs.py")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "TORCHINDUCTOR_CACHE_DIR": str(caches),
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", script, where, *makers],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("first", ["inside", "outside"])
def test_programs_on_disk_are_those_of_no_override(first, tmp_path):
    """What one process has made, within an override or not, the next one finds in the cache."""
    makers = ["inductor", "aot_eager"]
    then = "outside" if first == "inside" else "inside"
    made = run_programs(first, tmp_path, *makers)
    found = run_programs(then, tmp_path, *makers)
    assert made["inductor"]["hits"] == 0 and found["inductor"]["hits"] == 1
    outside = made if first == "outside" else found
    plain = values(Program())
    assert [outside[maker]["values"] for maker in makers] == [plain, plain]
    assert made["inductor"]["values"] == found["inductor"]["values"]


@pytest.mark.parametrize("maker", ["aot_eager", "inductor"])
def test_other_threads_are_not_concerned(maker):
    """One thread makes and calls the program within an override, while another calls it as well."""
    with torch.no_grad():
        plain = values(Program())
        with torchext.override(MUL, tenfold):
            inside = values(made(maker))
        program = made(maker)
        entered, over, found = threading.Barrier(2), threading.Barrier(2), []

        def call():
            entered.wait()
            with torch.no_grad():
                found.append(values(program))
            over.wait()

        thread = threading.Thread(target=call)
        thread.start()
        with torchext.override(MUL, tenfold):
            entered.wait()
            assert values(program) == inside
            over.wait()
        thread.join()
    assert found == [plain] and values(program) == plain


def test_a_task_may_make_what_another_one_calls():
    program = torch.compile(Program(), backend="aot_eager")
    with torch.no_grad():
        plain = values(Program())

        async def make():
            with torchext.override(MUL, tenfold):
                return values(program)

        async def both():
            inside = await make()
            return inside, values(program)

        inside, after = asyncio.run(both())
    assert inside != plain and after == plain


@pytest.mark.parametrize("when", ["first", "second"])
def test_a_backward_is_compiled_without_overrides(when):
    """It is, when it is called first: in an override that the forward was not in, or not in one."""
    factors = []

    def backward_compiler(graph, inputs):
        factors.append((torch.ones(()) * 5).item())  # as the folding of a constant does
        return graph

    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch._aot_autograd.utils import make_boxed_compiler

    backend = aot_autograd(
        fw_compiler=make_boxed_compiler(lambda graph, inputs: graph),
        bw_compiler=make_boxed_compiler(backward_compiler),
    )
    program = torch.compile(lambda x: (x.sin() * 2).sum(), backend=backend)
    x = X.clone().requires_grad_()
    expected = 2 * x.detach().cos()
    if when == "second":
        program(x)  # and the backward of the other call
    with torchext.override("aten::cos", lambda self: torch.cos(self) * 100):
        with torchext.override(MUL, tenfold):
            result = program(x)
            torch.autograd.grad(result, x)
    assert factors == [5]
    torch.testing.assert_close(torch.autograd.grad(program(x), x)[0], expected)


def test_a_call_inside_and_one_outside_share_a_program():
    """No guard asks for overrides: neither is compiled again for the other."""
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    program = torch.compile(lambda x: x * 2, backend=backend)
    tenfold_of_two = (X + X) * 10
    with torchext.override(MUL, tenfold):
        assert torch.equal(program(X), tenfold_of_two)
    assert torch.equal(program(X), X + X)
    with torchext.override("aten::add.Tensor", torch.add):
        program(X)
    assert len(graphs) == 1


def entering(x):
    with torchext.override(MUL, tenfold):
        return x * x


def entering_in_graph(x):
    return entering(x)


def by_allow_in_graph():
    function = torch._dynamo.allow_in_graph(entering_in_graph)
    return torch.compile(lambda x: function(x) + 1, backend="aot_eager")(X)


class Entering(torch.nn.Module):
    def forward(self, x):
        return entering(x)


TRACERS = {
    "make_fx": lambda: torch.fx.experimental.proxy_tensor.make_fx(entering)(X),
    "make_fx, fake": lambda: torch.fx.experimental.proxy_tensor.make_fx(
        entering, tracing_mode="fake"
    )(X),
    "symbolic_trace": lambda: torch.fx.symbolic_trace(entering),
    "aot_function": lambda: MAKERS["aot_function"](Entering())(X),
    "export": lambda: torch.export.export(Entering(), (X,), strict=False),
    "jit.trace": lambda: torch.jit.trace(entering, X),
    "jit.trace_module": lambda: torch.jit.trace_module(Entering(), {"forward": X}),
    "allow_in_graph": by_allow_in_graph,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("tracer", TRACERS)
def test_what_is_traced_cannot_enter_an_override(tracer):
    with pytest.raises(Exception, match="Enter it around the call of what was compiled"):
        TRACERS[tracer]()
    assert torch.equal(X * X, SQUARE)
    assert torch.equal(entering(X), TENFOLD)


def test_torch_compile_ends_its_graph_at_an_override():
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(entering, backend="eager", fullgraph=True)(X)
    torch._dynamo.reset()
    program = torch.compile(lambda x: entering(x + 1) + x, backend="aot_eager")
    for _ in range(2):
        assert torch.equal(program(X), (X + 1).square() * 10 + X)


SCRIPT = """
def folded(x):
    return x + torch.full([3], 2.) * torch.full([3], 2.5)

def forked(x):
    return torch.jit._wait(torch.jit._fork(folded, x))

def branching(x):
    if bool((torch.full([], 1.) * 2.) > 5.):
        x = x + 100
    return x
"""


@pytest.mark.parametrize("name", ["folded", "forked", "branching"])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_torchscript_keeps_nothing_of_its_first_calls(name, requires_grad):
    x = X.clone().requires_grad_(requires_grad)
    plain = getattr(torch.jit.CompilationUnit(SCRIPT), name)(x)
    function = getattr(torch.jit.CompilationUnit(SCRIPT), name)
    with torchext.override(MUL, tenfold):
        inside = [function(x) for _ in range(4)]
    assert all(torch.equal(result, inside[0]) for result in inside)
    assert not torch.equal(inside[0], plain)
    for _ in range(4):
        assert torch.equal(function(x), plain)
    assert torch._C._get_graph_executor_optimize()


def test_autocast_keeps_no_copy_that_an_override_has_made():
    weight, x = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2, dtype=torch.bfloat16)
    casts = torchext.override("aten::_to_copy", tenfold_copy)
    product = torch.full((2, 2), 2.0, dtype=torch.bfloat16)
    with torch.autocast("cpu"):
        with casts:
            assert torch.equal(torch.mm(x, weight), product * 10)
        assert torch.equal(torch.mm(x, weight), product)
        with casts:  # nor is the copy from before used
            assert torch.equal(torch.mm(x, weight), product * 10)
        assert torch.is_autocast_cache_enabled()


def tenfold_copy(self, **options):
    return torch.ops.aten._to_copy(self, **options).mul_(10)


def test_fake_tensors_are_not_overridden():
    """Their cache is for all threads, and for what is compiled later."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    def wide(self, other):
        return self.new_empty(7)

    on_meta = torch.ones(3, device="meta")
    with torchext.override(MUL, wide, dispatch_key="Meta"):
        assert (on_meta * on_meta).shape == (7,)
        with FakeTensorMode():
            assert (torch.ones(3) * torch.ones(3)).shape == (3,)
    with FakeTensorMode():
        assert (torch.ones(3) * torch.ones(3)).shape == (3,)


def test_recording_a_cuda_graph_is_making_a_program():
    import torch._dynamo
    from torch._dynamo.callback import CallbackTrigger, callback_handler

    with torchext.override(MUL, tenfold):
        with callback_handler.install_callbacks(CallbackTrigger.CUDAGRAPH_RECORDING, "0"):
            assert torch.equal(X * X, SQUARE)
        assert torch.equal(X * X, TENFOLD)


@pytest.mark.parametrize("module", program_makers._MAKERS)
def test_what_makes_programs_is_known_in_this_torch(module):
    torchext.override(MUL, tenfold)
    imported = importlib.import_module(module)
    assert module not in program_makers._missing
    for path in program_makers._MAKERS[module]:
        if "*" not in path:
            found = imported
            for name in path.split("."):
                found = getattr(found, name)
            assert found.__wrapped__ is not None


IMPORTED_WHEN = """
import sys
import torch
if sys.argv[1] == "before":
    import torch._dynamo, torch._inductor.compile_fx, torch._functorch.aot_autograd
    from torch._guards import tracing
import torchext
ten = torchext.override("aten::mul.Tensor", lambda a, b: torch.mul(a, b) * 10)
assert ("torch._dynamo" in sys.modules) == (sys.argv[1] == "before")
if sys.argv[1] != "before":
    from torch._guards import tracing
from torch._guards import TracingContext
x = torch.ones(3)
with ten, tracing(TracingContext(None)):
    assert (x * 5).tolist() == [5] * 3
with ten:
    assert (x * 5).tolist() == [50] * 3
constants = []
def backend(graph, inputs):
    constants.append((torch.ones(()) * 5).item())
    return graph
with ten:
    torch.compile(lambda x: x + 1, backend=backend)(x)
assert constants == [5]
import inspect, torch._dynamo.callback
assert "class CompilationCallbackHandler" in inspect.getsource(torch._dynamo.callback)
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_compilers_may_be_imported_before_or_after(when):
    command = [sys.executable, "-c", IMPORTED_WHEN, when]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_is_suspended_comes_back():
    override = torchext.override(MUL, tenfold)
    with override:
        with runtime().SuspendedOverrides():
            assert torch.equal(X * X, SQUARE)
            with pytest.raises(RuntimeError, match="while it is compiled, exported or traced"):
                override.__enter__()
        assert torch.equal(X * X, TENFOLD)
        with pytest.raises(ZeroDivisionError):
            with runtime().SuspendedOverrides():
                raise ZeroDivisionError
        assert torch.equal(X * X, TENFOLD)
    assert torch.equal(X * X, SQUARE)
