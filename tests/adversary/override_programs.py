# SPDX-License-Identifier: BSD-3-Clause
"""A program in which something is known before it is called, and the ways to make it.

Run as a script: `override_programs.py inside|outside MAKER...` makes and calls it in each
way, within an override or outside of any, and prints the results and the hits of Inductor's cache.
"""

import contextlib
import json
import sys

import torch

import torchext

X = torch.tensor([1.0, 2.0, 3.0])
MUL = "aten::mul.Tensor"


def tenfold(self, other):
    return torch.mul(self, other) * 10


class Program(torch.nn.Module):
    """Three sums, of the argument and of what is known before."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((3,), 2.5))
        self.register_buffer("scale", torch.full((3,), 2.0))

    def forward(self, x):
        # Inductor computes it on the joint graph; then a trace does; then who knows the parameters
        folded = torch.ones(3) * 5
        item = (torch.tensor(2) * torch.tensor(3)).item()
        parameters = self.weight * self.scale
        return x + folded, x + item, x + parameters


def compiled(**options):
    def make(module):
        torch._dynamo.reset()
        return torch.compile(module, fullgraph=True, **options)

    return make


def frozen(**options):
    def make(module):
        torch._dynamo.reset()
        return torch.compile(module, options={"freezing": True, **options})

    return make


def by_aot_function(compiler):
    def make(module):
        from functorch.compile import aot_module

        return aot_module(module, compiler)

    return make


def as_it_is(graph, _inputs):
    return graph


def by_make_fx(mode):
    def make(module):
        from torch.fx.experimental.proxy_tensor import make_fx

        return make_fx(module, tracing_mode=mode, _allow_non_fake_inputs=True)(X)

    return make


def exported(strict, **options):
    def make(module):
        program = torch.export.export(module, (X,), strict=strict)
        return program.run_decompositions().module()

    return make


def by_aot_inductor(module):
    program = torch.export.export(module, (X,))
    return torch._inductor.aoti_load_package(torch._inductor.aoti_compile_and_package(program))


def by_compile_fx(module):
    from torch._inductor.compile_fx import compile_fx

    return compile_fx(torch.fx.symbolic_trace(module), [X])


def by_const_fold(module):
    from torch.fx.experimental.const_fold import split_const_subgraphs

    folded = split_const_subgraphs(module)
    folded(X)  # which folds
    return folded


def traced(module):
    return torch.jit.trace(module, X)


def scripted(module):
    made = torch.jit.script(module)
    for _ in range(3):  # when it is optimised
        made(X)
    return made


MAKERS = {
    "eager": compiled(backend="eager"),
    "aot_eager": compiled(backend="aot_eager"),
    "inductor": compiled(),
    "inductor, dynamic": compiled(dynamic=True),
    "inductor, freezing": frozen(),
    "inductor, cpp wrapper": compiled(options={"cpp_wrapper": True}),
    "aot_function": by_aot_function(as_it_is),
    "compile_fx": by_compile_fx,
    "make_fx, real": by_make_fx("real"),
    "make_fx, fake": by_make_fx("fake"),
    "make_fx, symbolic": by_make_fx("symbolic"),
    "symbolic_trace": torch.fx.symbolic_trace,
    "const_fold": by_const_fold,
    "export": exported(strict=False),
    "export, strict": exported(strict=True),
    "AOTInductor": by_aot_inductor,
    "jit.trace": traced,
    "jit.script": scripted,
    "jit.freeze": lambda module: torch.jit.freeze(scripted(module)),
    "jit.freeze, traced": lambda module: torch.jit.freeze(traced(module)),
    "optimize_for_inference": lambda module: torch.jit.optimize_for_inference(scripted(module)),
}


def made(maker: str):
    return MAKERS[maker](Program().eval())


def values(program) -> list[list[float]]:
    return [result.tolist() for result in program(X)]


def main(where: str, makers: list[str]) -> None:
    from torch._dynamo.utils import counters

    override = torchext.override(MUL, tenfold)
    found = {}
    for maker in makers:
        counters.clear()
        with override if where == "inside" else contextlib.nullcontext():
            results = values(made(maker))
        found[maker] = {"values": results, "hits": counters["inductor"]["fxgraph_cache_hit"]}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
