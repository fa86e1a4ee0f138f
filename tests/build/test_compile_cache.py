# SPDX-License-Identifier: BSD-3-Clause
"""torch.compile's cache on disk must not outlive the library that it was made with."""

import pytest
from sample_project import python

# The cache key of torch.compile knows an operator's name, not its code: a rebuilt library with
# another formula must not get the compiled backward of the old one.
GRADIENT = """
import os, threading
os.environ["TORCHINDUCTOR_CACHE_DIR"] = {cache!r}
import torch

def gradient():
    {load}
    torch.library.register_fake("sample_ops::scale", lambda self, factor: torch.empty_like(self))
    x = torch.ones(3, requires_grad=True)
    scale = torch.ops.sample_ops.scale
    step = torch.compile(lambda x: scale(x, 2.0).sum(), backend="inductor")
    step(x).backward()
    print("gradient", x.grad[0].item())
    hits = torch._dynamo.utils.counters["aot_autograd"]["autograd_cache_hit"]
    print("hits", hits)

{run}
"""
IN_MAIN = "gradient()"
IN_THREAD = "thread = threading.Thread(target=gradient); thread.start(); thread.join()"
WAYS = {
    "import before a thread": ("pass", f"import sample_ops; {IN_THREAD}"),
    "torch.ops": ("torch.ops.load_library({path!r})", IN_MAIN),
    "torch.ops in a thread": ("torch.ops.load_library({path!r})", IN_THREAD),
}


def gradient(project, cache, way) -> tuple[float, int]:
    """The gradient, and how often the cache served."""
    load, run = (part.format(path=str(project.package / "_C.so")) for part in WAYS[way])
    code = GRADIENT.format(cache=str(cache / way.replace(" ", "_")), load=load, run=run)
    result = python(code, project.folder)
    assert result.status == 0 and "hits" in result.text, result.text
    return float(result.text.split("gradient ")[1].split()[0]), int(result.text.split("hits ")[1])


@pytest.mark.timeout(600)
def test_a_rebuilt_library_does_not_run_cached_gradients_of_the_old_one(project, tmp_path):
    for way in WAYS:
        assert gradient(project, tmp_path, way) == (2.0, 0), way
    assert gradient(project, tmp_path, "torch.ops") == (2.0, 1)
    project.edit("derivatives.yaml", "self: grad * factor", "self: grad * factor * 3")
    assert project.build().status == 0
    for way in WAYS:
        assert gradient(project, tmp_path, way) == (6.0, 0), way
