# SPDX-License-Identifier: BSD-3-Clause
"""What is rewritten of CUDA's C++, and what is left as it is."""

import re
from pathlib import Path

import pytest

from torchext.toolchain.cuda_translation import TranslationError, includes, translated

KERNELS = sorted((Path(__file__).parents[2] / "csrc" / "cuda").iterdir())
HOST = "::torchext::cuda_on_host"


def of(code: str) -> str:
    """A translation, with the machine's namespace as `@`."""
    return translated(code, "a.cu").replace(HOST, "@")


def launched(name: str, call: str, configuration: str) -> str:
    return f'@::launch("{name}", {call}, @::Configuration({configuration}))'


def deduced(name: str) -> str:
    return f"[&](const auto&... a) {{ {name}(a...); }}"


def valued(name: str) -> str:
    return f"[kernel = ({name})](const auto&... a) {{ kernel(a...); }}"


LAUNCHES = {
    "f<<<g, b>>>(x)": launched("f", deduced("f"), "g, b") + "(x)",
    "f<<<1, 2, 3, s>>>(x)": launched("f", deduced("f"), "1, 2, 3, s") + "(x)",
    "f<float, 4><<<g, b>>>()": launched("f<float, 4>", deduced("f<float, 4>"), "g, b") + "()",
    "f<g<h<int>>><<<1, 2>>>()": launched("f<g<h<int>>>", deduced("f<g<h<int>>>"), "1, 2") + "()",
    "a::b::f<<<1, 2>>>()": launched("a::b::f", deduced("a::b::f"), "1, 2") + "()",
    "::f<<<1, 2>>>()": launched("::f", deduced("::f"), "1, 2") + "()",
    "a<T>::template f<int><<<1, 2>>>()": (
        launched("a<T>::template f<int>", deduced("a<T>::template f<int>"), "1, 2") + "()"
    ),
    "p->second<<<1, 2>>>()": launched("p->second", valued("p->second"), "1, 2") + "()",
    "(*p)<<<1, 2>>>()": launched("(*p)", valued("(*p)"), "1, 2") + "()",
    "NAME(f)<<<1, 2>>>()": launched("NAME(f)", valued("NAME(f)"), "1, 2") + "()",
    "if (a) f<<<1, 2>>>()": "if (a) " + launched("f", deduced("f"), "1, 2") + "()",
    "return f<<<1, 2>>>()": "return " + launched("f", deduced("f"), "1, 2") + "()",
    "f<<<dim3(1, a << 2), (b >> 1)>>>(c)": (
        launched("f", deduced("f"), "dim3(1, a << 2), (b >> 1)") + "(c)"
    ),
}
SHARED = {
    "__shared__ float a[32];": (
        "static const char a_key = 0; auto& a = @::shared<float[ 32 ]>(&a_key, 1);"
    ),
    "__shared__ int n;": "static const char n_key = 0; auto& n = @::shared<int>(&n_key, 1);",
    "__shared__ T a[2][N + 1], b;": (
        "static const char a_key = 0; auto& a = @::shared<T[ 2 ] [ N + 1 ]>(&a_key, 1); "
        "static const char b_key = 0; auto& b = @::shared<T>(&b_key, 1);"
    ),
    "__shared__ alignas(16) unsigned char s[4];": (
        "static const char s_key = 0; auto& s = @::shared<unsigned char[ 4 ]>(&s_key, 16);"
    ),
    "static __shared__ volatile float v[1];": (
        "static const char v_key = 0; auto& v = @::shared<volatile float[ 1 ]>(&v_key, 1);"
    ),
    "__shared__ typename Reduce<T, 4>::Storage s;": (
        "static const char s_key = 0; auto& s = "
        "@::shared<typename Reduce < T , 4 >::Storage>(&s_key, 1);"
    ),
    "__shared__ union { int a; float b; } u;": (
        "union u_type { int a ; float b ; }; "
        "static const char u_key = 0; auto& u = @::shared<u_type>(&u_key, 1);"
    ),
    "__shared__ struct S { int a; } s[2];": (
        "struct S { int a ; }; static const char s_key = 0; auto& s = @::shared<S[ 2 ]>(&s_key, 1);"
    ),
    "void f() { extern __shared__ __align__(16) char m[]; }": (
        "void f() { char* m = @::dynamic_array<char>(); }"
    ),
    "namespace n {\nextern __shared__ int m[];\nint f() { return m[1]; }\n}": (
        "namespace n {\n;\nint f() { return (@::dynamic_array<int>())[1]; }\n}"
    ),
}
NAMES = {
    "threadIdx.x": "@::thread_index().x",
    "blockIdx.y * blockDim.y": "@::block_index().y * dim3(@::block_size()).y",
    "config.gridDim = gridDim.x": "config.gridDim = dim3(@::grid_size()).x",
    "void f() { dim3 blockDim(8); g(blockDim); } int x = blockDim.x;": (
        "void f() { dim3 blockDim(8); g(blockDim); } int x = dim3(@::block_size()).x;"
    ),
    "void f(dim3 gridDim) { g(gridDim); }": "void f(dim3 gridDim) { g(gridDim); }",
    "x.is_cuda() && d == at::kCUDA": "x.is_privateuseone() && d == at::kPrivateUse1",
    "TORCH_LIBRARY_IMPL(a, CUDA, m)": "TORCH_LIBRARY_IMPL(a, PrivateUse1, m)",
    "#ifdef __CUDACC__\n#endif": "#ifdef TORCHEXT_CUDACC\n#endif",
    "#if __CUDA_ARCH__ >= 800\n#endif": "#if TORCHEXT_CUDA_ARCH >= 800\n#endif",
    "__device__ inline __forceinline__ int f();": "__device__ __forceinline__  int f();",
    "static __noinline__ int f();": "static __attribute__((noinline)) int f();",
    "__attribute__((__noinline__)) int f();": "__attribute__((__noinline__)) int f();",
}
ASSEMBLY = {
    'asm("mov.u32 %0, %%laneid;" : "=r"(id));': "id = @::lane();",
    'asm volatile("bfe.u32 %0, %1, %2, %3;" : "=r"(a) : "r"(b), "r"(c), "r"(d + 1));': (
        "a = @::extracted_bits(b, c, d + 1);"
    ),
    'asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));': (
        '@::fail("has inline PTX, which cannot run on the host");'
    ),
}
HEADERS = {
    "#include <thrust/sort.h>\n": '#error "Thrust cannot run on the host"\n',
    "#include <mma.h>  // tensor cores\n": '#error "tensor cores (mma.h) cannot run on the host"\n',
    '#include "cutlass/gemm.h"\n': '#error "CUTLASS cannot run on the host"\n',
    "#include <thrust/tuple.h>\n": "#include <thrust/tuple.h>\n",
    "#include <vector>\n": "#include <vector>\n",
}
UNCHANGED = [
    "// f<<<1, 2>>>(x)",
    '/* __shared__ */ const char* s = "f<<<1, 2>>>(x) __shared__ is_cuda";',
    "a << 2 < b >> 1",
    "#define __shared__ static",
    "#ifdef __shared__\n#endif",
    'auto s = R"x(f<<<1>>>() ")x";',
    "int kCUDADevice = 1'000;",
]


@pytest.mark.parametrize("code", [*LAUNCHES, *SHARED, *NAMES, *ASSEMBLY, *HEADERS])
def test_what_is_rewritten(code):
    expected = {**LAUNCHES, **SHARED, **NAMES, **ASSEMBLY, **HEADERS}[code]
    assert " ".join(of(code).split(" ")) == expected


@pytest.mark.parametrize("code", UNCHANGED)
def test_what_stays(code):
    assert of(code) == code


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.name)
def test_every_line_stays_where_it_was(path):
    code = path.read_text()
    lines = translated(code, path.name).splitlines()
    assert len(lines) == len(code.splitlines())
    for before, after in zip(code.splitlines(), lines, strict=True):
        is_rewritten = re.search(r"<<<|__shared__|threadIdx|blockIdx|blockDim|gridDim", before)
        assert before == after or is_rewritten or f"{HOST}::launch(" in after


def test_a_declaration_over_several_lines_keeps_them():
    code = "__shared__ float\n    a[3],\n    b;\nint c;"
    assert of(code).count("\n") == 3
    assert of(code).splitlines()[3] == "int c;"
    macro = "#define F \\\n  __shared__ \\\n  int a; \\\n  f(a)\nint c;"
    assert of(macro).splitlines()[4] == "int c;"
    assert all(line.endswith("\\") for line in of(macro).splitlines()[:3])


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("\n+<<<1, 2>>>(x)", "a.cu:2: this launch cannot be read"),
        ("f<<<1, 2", "a.cu:1: this launch cannot be read"),
        ("\n\n__shared__ int a = 1;", "a.cu:3: this shared variable cannot be read"),
        ("__shared__", "a.cu:1: this shared variable cannot be read"),
        ("wmma::fragment f;", r"a.cu:1: tensor cores \(nvcuda::wmma\) cannot run on the host"),
        ("\nCUtensorMap m;", "a.cu:2: the tensor memory accelerator"),
    ],
)
def test_what_cannot_be_rewritten_is_an_error_with_its_line(code, message):
    with pytest.raises(TranslationError, match=f"^{message}"):
        of(code)


def test_includes_are_found_by_name():
    code = '#include <a/b.h>\n  #  include "c.cuh" // d\n#include MACRO\n// #include <e.h>\n'
    assert [found[2:] for found in includes(code)] == [("a/b.h", False), ("c.cuh", True)]
