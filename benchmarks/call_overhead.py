# SPDX-License-Identifier: BSD-3-Clause
"""What a call costs beside torch's own and the other ways to write an operator.

`python benchmarks/call_overhead.py [--out FILE] [--plot FILE]` multiplies two tensors of 16 floats
on one thread, so that what is timed is the call: torch's operator, torchext's, and the product of
the same torch operator made by a C++ torch::autograd::Function, torch.library.register_autograd and
torch.library.custom_op. The alternatives are interleaved in one run; each figure is the median over
rounds, with the quartiles, and as a ratio to torch.ops.aten.mul.Tensor of the same round.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch

import torchext.ops  # noqa: F401  registers namespace myns

Mul = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
REFERENCE = "torch.ops.aten.mul.Tensor"
MODES = {
    "no_grad": "forward without gradients",
    "recording": "recording forward",
    "backward": "forward and backward",
}
_NAMESPACE = "torchext_benchmark"
_FUNCTION = """
#include <ATen/ops/mul.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

using at::Tensor;

static Tensor mul(const Tensor& a, const Tensor& b) {
  return at::mul(a, b);
}

struct Mul : torch::autograd::Function<Mul> {
  static Tensor forward(
      torch::autograd::AutogradContext* context, const Tensor& a, const Tensor& b) {
    at::AutoDispatchBelowADInplaceOrView guard;
    context->save_for_backward({a, b});
    static auto op = c10::Dispatcher::singleton()
                         .findSchemaOrThrow("torchext_benchmark::function", "")
                         .typed<Tensor(const Tensor&, const Tensor&)>();
    return op.call(a, b);
  }

  static torch::autograd::variable_list backward(
      torch::autograd::AutogradContext* context, torch::autograd::variable_list grads) {
    const auto saved = context->get_saved_variables();
    return {grads[0] * saved[1], grads[0] * saved[0]};
  }
};

static Tensor mul_autograd(const Tensor& a, const Tensor& b) {
  return Mul::apply(a, b);
}

TORCH_LIBRARY_FRAGMENT(torchext_benchmark, m) {
  m.def("function(Tensor a, Tensor b) -> Tensor");
  m.def("registered(Tensor a, Tensor b) -> Tensor");
}

TORCH_LIBRARY_IMPL(torchext_benchmark, CPU, m) {
  m.impl("function", mul);
  m.impl("registered", mul);
}

TORCH_LIBRARY_IMPL(torchext_benchmark, Autograd, m) {
  m.impl("function", mul_autograd);
}
"""


@torch.library.custom_op(f"{_NAMESPACE}::custom", mutates_args=())
def custom(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The product by torch.library.custom_op."""
    return a * b


def alternatives() -> dict[str, Mul]:
    """Every way to multiply, by the name that it has in the results; builds those in C++."""
    from torch.utils.cpp_extension import load_inline

    load_inline(_NAMESPACE, _FUNCTION, extra_cflags=["-O2"], is_python_module=False)
    ops = getattr(torch.ops, _NAMESPACE)
    for operator in (custom, f"{_NAMESPACE}::registered"):
        torch.library.register_autograd(
            operator if isinstance(operator, str) else operator._qualname,
            lambda ctx, grad: (grad * ctx.saved_tensors[1], grad * ctx.saved_tensors[0]),
            setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
        )
    return {
        "torch.mul": torch.mul,
        REFERENCE: torch.ops.aten.mul.Tensor,
        "torch.ops.myns.mul": torch.ops.myns.mul,
        "torch.ops.myns.mul.Tensor": torch.ops.myns.mul.Tensor,
        "C++ torch::autograd::Function": ops.function.default,
        "torch.library.register_autograd": ops.registered.default,
        "torch.library.custom_op": custom,
    }


def microseconds(mul: Mul, mode: str, calls: int) -> float:
    """Time of one call, in microseconds, in the mode "no_grad", "recording" or "backward"."""
    a, b = (torch.randn(16, requires_grad=mode != "no_grad") for _ in range(2))
    start = time.perf_counter()
    if mode == "backward":
        for _ in range(calls):
            mul(a, b).sum().backward()
    else:
        for _ in range(calls):
            mul(a, b)
    return (time.perf_counter() - start) / calls * 1e6


def measure(
    muls: dict[str, Mul], mode: str, rounds: int, calls: int
) -> dict[str, dict[str, float | list[float]]]:
    """Of every alternative the median and quartiles of times and of ratios to the reference."""
    times: dict[str, list[float]] = {name: [] for name in muls}
    for round_ in range(rounds + 2):
        for name, mul in muls.items():
            time_ = microseconds(mul, mode, calls)
            if round_ >= 2:  # the first two warm up
                times[name].append(time_)
    found = {}
    for name, own in times.items():
        ratios = [t / r for t, r in zip(own, times[REFERENCE])]
        found[name] = {
            "median_us": statistics.median(own),
            "quartiles_us": statistics.quantiles(own, n=4)[::2],
            "ratio": statistics.median(ratios),
            "ratio_quartiles": statistics.quantiles(ratios, n=4)[::2],
        }
    return found


def spread(figures: dict[str, float | list[float]]) -> float:
    """Half the distance between the quartiles of the times, relative to the median."""
    low, high = figures["quartiles_us"]
    return (high - low) / 2 / figures["median_us"]


def table(results: dict[str, dict]) -> str:
    """The results as text."""
    lines = []
    for mode, figures in results.items():
        lines.append(f"{MODES[mode]}: microseconds a call (quartiles), ratio to {REFERENCE}")
        for name, f in figures.items():
            (low, high), (from_, to) = f["quartiles_us"], f["ratio_quartiles"]
            time_ = f"{f['median_us']:7.2f} ({low:.2f}-{high:.2f})"
            lines.append(f"  {name:32} {time_:24} {f['ratio']:6.2f}x ({from_:.2f}-{to:.2f})")
        lines.append(f"  spread of the reference: {spread(figures[REFERENCE]):.1%}")
    return "\n".join(lines)


def plot(results: dict[str, dict], file: Path) -> None:
    """The ratios of the recording modes as a picture; needs matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    modes = [mode for mode in results if mode != "no_grad"]
    figure, axes = pyplot.subplots(1, len(modes), figsize=(11, 3.2), sharey=True)
    for axis, mode in zip(axes, modes):
        names = list(results[mode])[::-1]
        ratios = [results[mode][name]["ratio"] for name in names]
        bars = axis.barh(names, ratios, color=["C1" if "myns" in n else "C0" for n in names])
        axis.bar_label(bars, [f"{ratio:.2f}x" for ratio in ratios], padding=3)
        axis.axvline(1.0, color="black", linewidth=0.8)
        axis.set_title(MODES[mode])
        axis.set_xlabel(f"time / time of {REFERENCE}")
        axis.margins(x=0.15)
    figure.tight_layout()
    figure.savefig(file, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--out", type=Path, help="write the figures as JSON")
    parser.add_argument("--plot", type=Path, help="draw the ratios, as PNG")
    options = parser.parse_args()
    torch.set_num_threads(1)
    muls = alternatives()
    results = {mode: measure(muls, mode, options.rounds, options.calls) for mode in MODES}
    print(table(results))
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        content = {"torch": torch.__version__, "rounds": options.rounds, "results": results}
        options.out.write_text(json.dumps(content, indent=2) + "\n")
    if options.plot:
        plot(results, options.plot)


if __name__ == "__main__":
    main()
