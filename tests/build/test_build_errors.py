# SPDX-License-Identifier: BSD-3-Clause
"""What the build says when something is wrong; never with a traceback."""

import os
import sys

import pytest
from sample_project import python, run

from torchext.toolchain import cuda, diagnosis, environment, platforms
from torchext.toolchain.op_library import OpLibrary, expand

KERNEL = {
    "name": "ns::native::mul_cpu",
    "prototype": "at::Tensor ns::native::mul_cpu(const at::Tensor& self)",
    "schema": "mul(Tensor self) -> Tensor",
    "location": "native_functions.yaml:12",
}


def assert_refused(build, *phrases):
    assert build.status == 1, build.text
    assert "Traceback" not in build.text, build.text
    for phrase in phrases:
        assert phrase in build.text, build.text


def test_a_wrong_signature_names_kernel_prototype_schema_and_line(project):
    project.edit("csrc/scale.cpp", "double factor", "float factor")
    assert_refused(
        project.build(),
        "kernel sample_ops::native::scale_cpu is defined with other types",
        "expected: at::Tensor sample_ops::native::scale_cpu(const at::Tensor& self, double factor)",
        "schema:   scale(Tensor self, float factor) -> Tensor",
        "declared: native_functions.yaml:2",
    )


def test_a_missing_kernel_names_kernel_prototype_schema_and_line(project):
    project.edit("csrc/square.cpp", "sample_ops::native::square_cpu", "another_name")
    assert_refused(
        project.build(),
        "kernel sample_ops::native::square_cpu is not defined",
        "expected: at::Tensor sample_ops::native::square_cpu(const at::Tensor& self)",
        "schema:   square(Tensor self) -> Tensor",
        "declared: native_functions.yaml:12",
    )


def test_an_error_that_names_no_kernel_is_the_compilers_own(project):
    project.edit("csrc/square.cpp", "at::mul(self, self)", "at::mul(self, slef)")
    build = project.build()
    assert_refused(build, "slef")
    assert "expected:" not in build.text


@pytest.mark.parametrize(
    ("wrong", "word"),
    [("grad.no_such_method(factor)", "no_such_method"), ('grad * "text"', "operator*")],
)
def test_what_only_the_compiler_finds_in_a_formula_points_into_the_yaml(wrong, word, project):
    project.edit("derivatives.yaml", "self: grad * factor", f"self: {wrong}")
    build = project.build()
    assert_refused(build, word)
    lines = (project.folder / "derivatives.yaml").read_text().splitlines()
    line = next(i for i, text in enumerate(lines, 1) if wrong in text)
    assert f"derivatives.yaml:{line}:" in build.text


def test_a_condition_that_does_not_compile_points_into_the_yaml(project):
    condition = 'self: grad * factor\n  output_differentiability: ["self.is_nothing()"]'
    project.edit("derivatives.yaml", "self: grad * factor", condition)
    assert_refused(project.build(), "derivatives.yaml:4:", "is_nothing")


def test_a_formula_that_gives_no_gradient_points_into_the_yaml(project):
    project.edit("derivatives.yaml", "self: grad * factor", "self: ::std::make_tuple(grad)")
    assert_refused(project.build(), "derivatives.yaml:3:", "store")


def test_a_formula_that_gives_one_tensor_for_a_list_says_so(project):
    operator = "joined(Tensor[] parts) -> Tensor"
    for name, added in (
        ("native_functions.yaml", f"- func: {operator}\n  dispatch: {{CPU: joined}}"),
        ("derivatives.yaml", f"- name: {operator}\n  parts: grad * 2"),
    ):
        text = (project.folder / name).read_text()
        (project.folder / name).write_text(f"{text}\n{added}\n")
    lines = (project.folder / "derivatives.yaml").read_text().splitlines()
    line = lines.index("  parts: grad * 2") + 1
    assert_refused(
        project.build(),
        f"derivatives.yaml:{line}:",
        "the gradient of 'parts' is a list of tensors, and this formula gives none",
    )


def test_a_mistake_in_the_yaml_ends_the_build(project):
    project.edit("native_functions.yaml", "square(Tensor self) -> Tensor", "square(Tensor self")
    assert_refused(project.build(), "native_functions.yaml:12:", "sample_ops._C were refused")


def test_a_pattern_without_files_ends_the_build(project):
    project.edit("setup.py", '"csrc/*.cpp"', '"csrc/*.cpp", "kernels/*.cpp"')
    assert_refused(project.build(), "no file is named ['kernels/*.cpp']")


def test_two_sources_of_one_object_end_the_build(project):
    (project.folder / "csrc/scale.cc").write_text("int x;\n")
    project.edit("setup.py", '"csrc/*.cpp"', '"csrc/*.cpp", "csrc/*.cc"')
    assert_refused(project.build(), "csrc/scale.cc", "csrc/scale.cpp", "same object file")


def test_an_unknown_compiler_ends_the_build(project):
    assert_refused(project.build(CXX="no-such-compiler"), "CXX=no-such-compiler", "Install g++")


def test_a_cpp_runtime_of_its_own_ends_the_build(project):
    build = project.build(LDFLAGS="-static-libstdc++")
    assert_refused(build, "was linked without libstdc++.so.6", "-static-libstdc++ in LDFLAGS")
    code = "import torch, sample_ops; assert sample_ops.ops.shift(torch.ones(1), 2.0).item() == 3"
    assert python(code, project.folder).status == 0  # the library of the build before


def test_without_torch_the_build_says_what_to_do(project):
    without_torch = (
        "import sys, runpy; sys.modules['torch'] = None; sys.argv = ['setup.py', 'build_ext'];"
        "runpy.run_path('setup.py', run_name='__main__')"
    )
    build = run([sys.executable, "-c", without_torch], project.folder)
    assert_refused(build, "torch is not installed", "--no-build-isolation")


def test_cuda_that_is_insisted_on_but_not_there_ends_the_build(project):
    build = project.build(TORCHEXT_CUDA="1", CUDA_HOME="/no/such/toolkit")
    assert_refused(build, "TORCHEXT_CUDA=1, but")


@pytest.mark.parametrize(
    "line",
    [
        "a.cpp:2:72: error: 'at::Tensor ns::native::mul_cpu(int)' should have been declared inside",
        "a.cpp:2:1: error: no declaration matches 'at::Tensor ns::native::mul_cpu(int)'",
        "a.cpp:2:9: error: out-of-line definition of 'mul_cpu' does not match any declaration in "
        "namespace 'ns::native'",
        'a.cu(2): error: no instance of overloaded function "ns::native::mul_cpu" matches the '
        "specified type",
    ],
)
def test_each_compilers_words_for_a_wrong_signature_are_known(line):
    assert "other types" in diagnosis.explain(line, [KERNEL])


@pytest.mark.parametrize(
    "line",
    [
        "a.cpp:(.text+0x1): undefined reference to `ns::native::mul_cpu(at::Tensor const&)'",
        "ld.lld: error: undefined symbol: ns::native::mul_cpu(at::Tensor const&)",
    ],
)
def test_each_linkers_words_for_a_missing_kernel_are_known(line):
    assert "not defined" in diagnosis.explain(line, [KERNEL])


@pytest.mark.parametrize(
    "line",
    [
        "a.cpp:2:5: error: 'int ns::native::mul_cup(int)' should have been declared inside "
        "'ns::native'",
        "a.cpp:2:9: error: out-of-line definition of 'mul_cup' does not match any declaration in "
        "namespace 'ns::native'",
        'a.cu(2): error: namespace "ns::native" has no member "mul_cup"',
    ],
)
def test_each_compilers_words_for_a_name_that_no_kernel_has_are_known(line):
    text = diagnosis.explain(line, [KERNEL])
    assert text.startswith("error: no entry names a kernel ns::native::mul_cup\n")
    assert text.endswith("did you mean 'mul_cpu', of native_functions.yaml:12?\n")
    assert diagnosis.explain(line.replace("ns::", "other::"), [KERNEL]) == ""


def test_a_kernel_that_is_called_otherwise_is_named_with_the_one_that_is_meant(project):
    project.edit("csrc/square.cpp", "native::square_cpu(", "native::sqaure_cpu(")
    assert_refused(
        project.build(),
        "error: no entry names a kernel sample_ops::native::sqaure_cpu",
        "did you mean 'square_cpu', of native_functions.yaml:12?",
    )


def test_a_kernel_that_several_forms_share_is_named_once():
    line = "a.cpp:2:1: error: no declaration matches 'at::Tensor ns::native::mul_cpu(int)'"
    other = {**KERNEL, "schema": "another form", "location": "native_functions.yaml:9"}
    assert diagnosis.explain(line, [KERNEL, other]) == diagnosis.explain(line, [KERNEL])
    overload = {**other, "prototype": "at::Tensor ns::native::mul_cpu(double self)"}
    assert diagnosis.explain(line, [KERNEL, overload]).count("expected:") == 2


@pytest.mark.parametrize(
    "line",
    [
        "a.cpp:9:1: error: too few arguments to function 'at::Tensor ns::native::mul_cpu(int)'",
        "undefined reference to `ns::native::mul_cpu_out(at::Tensor const&)'",
        "undefined reference to `other::ns::native::mul_cpu(at::Tensor const&)'",
        "a.cpp: In function 'at::Tensor ns::native::mul_cpu(const at::Tensor&)':",
    ],
)
def test_lines_about_something_else_blame_no_kernel(line):
    assert diagnosis.explain(line, [KERNEL]) == ""


def test_an_unknown_platform_is_refused():
    with pytest.raises(SystemExit, match="cannot build on platform 'win32'"):
        platforms.current("win32")


def test_an_unknown_option_is_refused():
    with pytest.raises(TypeError, match="unknown options \\['extra_flags'\\]"):
        OpLibrary("a._C", namespace="a", native_functions="n.yaml", extra_flags=[])


def test_ccache_before_the_compiler_is_left_to_torch(monkeypatch):
    monkeypatch.setenv("CXX", "ccache c++")
    assert environment.find_compiler(platforms.PLATFORMS["linux"]) == "c++"


def test_ccache_before_the_c_compiler_is_no_flag(monkeypatch):
    for name in ("CC", "CXX", "MAX_JOBS", "LC_ALL"):
        monkeypatch.setenv(name, "ccache cc" if name == "CC" else "")
    environment.prepare(platforms.PLATFORMS["linux"])
    assert os.environ["CC"] == "cc"


def test_what_a_build_needs_and_lacks_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "yaml", None)  # then importing it fails
    with pytest.raises(SystemExit, match="building needs pyyaml: python -m pip install pyyaml"):
        environment.prepare(platforms.PLATFORMS["linux"])
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="building needs ninja: python -m pip install ninja"):
        environment.prepare(platforms.PLATFORMS["linux"])


def test_flags_in_cxx_are_refused(monkeypatch):
    monkeypatch.setenv("CXX", "c++ -m32")
    with pytest.raises(SystemExit, match="flags go into CXXFLAGS"):
        environment.find_compiler(platforms.PLATFORMS["linux"])


def test_globs_are_sorted_and_skip_what_builds_generate(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b.cpp", "a.cpp", "build/generated/c.cpp", "sub/d.cpp"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert expand(["**/*.cpp"]) == (["a.cpp", "b.cpp", "sub/d.cpp"], [])


@pytest.fixture
def toolkit(tmp_path, monkeypatch):
    """A toolkit of which only nvcc exists, reached through a script on PATH."""
    home = tmp_path / "cuda-13.0"
    (home / "bin").mkdir(parents=True)
    nvcc = home / "bin/nvcc"
    nvcc.write_text(
        '#!/bin/sh\ncase "$1" in --version) echo "release 13.0, V13.0.88";;\n'
        f'*) echo "#$ TOP={home}/bin/.." >&2;; esac\n'
    )
    nvcc.chmod(0o755)
    (tmp_path / "path").mkdir()
    wrapper = tmp_path / "path/nvcc"
    wrapper.write_text(f'#!/bin/sh\nexec {nvcc} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}:/usr/bin:/bin")
    for variable in ("CUDA_HOME", "CUDA_PATH", "TORCHEXT_CUDA"):
        monkeypatch.delenv(variable, raising=False)
    return home


def test_the_toolkit_behind_a_wrapper_script_is_found(toolkit):
    assert cuda.decide("13.0").home == str(toolkit)


def test_cuda_is_off_for_a_torch_without_cuda(toolkit):
    assert cuda.decide(None).home is None


def test_cuda_is_off_for_a_toolkit_of_another_major_version(toolkit):
    assert "torch is built for CUDA 12.8" in cuda.decide("12.8").reason


def test_cuda_can_be_switched_off(toolkit, monkeypatch):
    monkeypatch.setenv("TORCHEXT_CUDA", "0")
    assert cuda.decide("13.0").home is None


@pytest.mark.parametrize(
    "line",
    [
        "kernels.cpp:(.text+0x1): undefined reference to `PyExc_RuntimeError'",
        "ld.lld: error: undefined symbol: PyGILState_Ensure",
        "kernels.cpp:(.text+0x1): undefined reference to `_Py_Dealloc'",
    ],
)
def test_python_in_a_source_file_is_said_in_one_line(line: str) -> None:
    text = diagnosis.explain("\n".join([line] * 300), [KERNEL])
    assert text.count("\n") == 1 and "in place of <torch/extension.h>" in text
