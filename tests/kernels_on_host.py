# SPDX-License-Identifier: BSD-3-Clause
"""For folders of tests that give the test device CUDA kernels: none of the others' tests may find
them there, so these run in processes of their own, as `make test` starts them."""

from pathlib import Path

import pytest

FOLDERS = [Path(__file__).parent / name for name in ("cuda", "cuda_on_host")]


def skip_among_others(session: pytest.Session) -> None:
    """Skip where the session has tests of other folders."""
    for item in session.items:
        if not any(folder in item.path.parents for folder in FOLDERS):
            pytest.skip("the test device would have CUDA kernels in other folders' tests as well")
