# SPDX-License-Identifier: BSD-3-Clause
"""python -m torchext.testing.cuda_on_host LIBRARY: every check on every operator, with the CUDA
kernels on the host."""

from __future__ import annotations

import argparse
import os
import sys

from torchext.testing import check, cuda_on_host
from torchext.testing.cuda_on_host import traffic


def main(argv: list[str] | None = None) -> int:
    """Check a library with its CUDA kernels on the host; 1 where a check fails."""
    parser = argparse.ArgumentParser(
        prog="python -m torchext.testing.cuda_on_host",
        description=cuda_on_host.__doc__.partition("\n")[0],
    )
    parser.add_argument("library", help="the name of the package that holds it")
    parser.add_argument("--project", help="the folder with its setup.py (default: this one)")
    parser.add_argument("--operators", nargs="+", metavar="NAME", help="those alone")
    parser.add_argument(
        "--traffic", action="store_true",
        help="instead of the checks, count the bytes that the kernels move beside the least",
    )  # fmt: skip
    options = parser.parse_args(argv)
    sys.path.append(options.project or os.getcwd())  # what was built in place
    try:
        if options.traffic:
            found = traffic.traffic(
                options.library, project=options.project, operators=options.operators
            )
            print(traffic.table(found))
            return 0
        device = cuda_on_host.load(options.library, options.project)
        found = check(
            options.library, operators=options.operators, device=device, raise_exception=False
        )
    except (ImportError, RuntimeError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0 if found.passed else 1


if __name__ == "__main__":
    sys.exit(main())
