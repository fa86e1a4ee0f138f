# SPDX-License-Identifier: BSD-3-Clause
"""build_ext for an environment without torch: metadata and sdist work, a build says what to do."""

from setuptools.command.build_ext import build_ext


class BuildExtension(build_ext):
    """Stands in for the real command; refuses to build."""

    def run(self) -> None:
        raise SystemExit(
            "error: torch is not installed in the environment that builds. An operator library is "
            "compiled against the torch it will run with: install torch, then build with\n"
            "    python -m pip install --no-build-isolation ."
        )
