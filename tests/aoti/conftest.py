# SPDX-License-Identifier: BSD-3-Clause
"""The example examples/aoti_cpp, as a module and as its README builds it."""

import importlib.util
import re
import subprocess

import pytest
import torch
from aoti_program import EXAMPLE, Program, command_environment


@pytest.fixture(autouse=True)
def fixed_seed():
    torch.manual_seed(20)


@pytest.fixture(scope="session")
def example():
    """The module export.py."""
    spec = importlib.util.spec_from_file_location("aoti_cpp_export", EXAMPLE / "export.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def program(tmp_path_factory) -> Program:
    """What the README's commands make; the last of them is the program's call."""
    (block,) = re.findall(r"^```sh\n(.*?)^```$", (EXAMPLE / "README.md").read_text(), re.M | re.S)
    *commands, call = block.splitlines()
    environment = command_environment(tmp_path_factory.mktemp("cuda"))
    folder = tmp_path_factory.mktemp("checkout")
    (folder / "examples").symlink_to(EXAMPLE.parent)
    for command in commands:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}"
    executable, artefacts = call.split()
    return Program(folder / executable, folder / artefacts)
