# SPDX-License-Identifier: BSD-3-Clause
"""torch.compile's cache on disk must not outlive the library that it was made with."""

from sample_project import python

# The cache key of torch.compile knows an operator's name, not its code: a rebuilt library with
# another formula must not get the compiled backward of the old one.
GRADIENT = """
import torch, sample_ops
torch.library.register_fake("sample_ops::scale", lambda self, factor: torch.empty_like(self))
x = torch.ones(3, requires_grad=True)
step = torch.compile(lambda x: sample_ops.ops.scale(x, 2.0).sum(), backend="inductor")
step(x).backward()
print("gradient", x.grad[0].item())
"""


def gradient(project, cache):
    prepare = f"import os; os.environ['TORCHINDUCTOR_CACHE_DIR'] = {str(cache)!r}"
    result = python(prepare + GRADIENT, project.folder)
    assert result.status == 0, result.text
    return float(result.text.split("gradient ")[1])


def test_a_rebuilt_library_does_not_run_cached_gradients_of_the_old_one(project, tmp_path):
    cache = tmp_path / "cache"
    assert gradient(project, cache) == 2.0
    project.edit("derivatives.yaml", "self: grad * factor", "self: grad * factor * 3")
    assert project.build().status == 0
    assert gradient(project, cache) == 6.0
