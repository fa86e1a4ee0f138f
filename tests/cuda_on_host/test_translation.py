# SPDX-License-Identifier: BSD-3-Clause
"""What is rewritten of CUDA's C++, what is left as it is, and that the result is C++."""

import re
from pathlib import Path

import pytest

from torchext.toolchain.cuda_translation import TranslationError, includes, translated

KERNELS = sorted((Path(__file__).parents[2] / "csrc" / "cuda").iterdir())
HOST = "::torchext::cuda_on_host"


def of(code: str) -> str:
    """A translation, with the machine's namespace as `@`."""
    return translated(code, "a.cu").replace(HOST, "@")


def launched(name: str, configuration: str, kernel: str = "") -> str:
    """A launch of a kernel that is a name."""
    kernel = kernel or name
    call = f"[&](const auto&... torchext_a) -> decltype({kernel}(torchext_a...)) "
    call += f"{{ {kernel}(torchext_a...); }}"
    return (
        f'@::launch("{name}", TORCHEXT_KERNEL({kernel}), {call}, @::Configuration({configuration}))'
    )


def launched_value(name: str, configuration: str) -> str:
    """A launch of a kernel that is another expression."""
    shown = name.replace('"', '\\"')
    return f'@::launch("{shown}", ({name}), @::Configuration({configuration}))'


def shared(type_: str, name: str, alignment: str = "") -> str:
    key = f"[] {{ struct {alignment} Aligned {{}}; return alignof(Aligned); }}"
    return f"auto& {name} = @::shared<{type_}>({key if alignment else '[] {}'});"


def in_function(code: str) -> str:
    return f"void f() {{ {code} }}"


LAUNCHES = {
    "f<<<g, b>>>(x)": launched("f", "g, b") + "(x)",
    "f<<<1, 2, 3, s>>>(x)": launched("f", "1, 2, 3, s") + "(x)",
    "f<float, 4><<<g, b>>>()": launched("f<float, 4>", "g, b") + "()",
    "f<g<h<int>>><<<1, 2>>>()": launched("f<g<h<int>>>", "1, 2") + "()",
    "f<N < 4><<<1, 2>>>()": launched("f<N < 4>", "1, 2") + "()",
    "f<T, 1 << 3, N < 4><<<1, 2>>>()": launched("f<T, 1 << 3, N < 4>", "1, 2") + "()",
    "f<sizeof(T) <= 4><<<1, 2>>>()": launched("f<sizeof(T) <= 4>", "1, 2") + "()",
    "a::b::f<<<1, 2>>>()": launched("a::b::f", "1, 2") + "()",
    "::f<<<1, 2>>>()": launched("::f", "1, 2") + "()",
    "a<T>::template f<int><<<1, 2>>>()": launched("a<T>::template f<int>", "1, 2") + "()",
    "p->second<<<1, 2>>>()": launched_value("p->second", "1, 2") + "()",
    "(*p)<<<1, 2>>>()": launched_value("(*p)", "1, 2") + "()",
    "NAME(f)<<<1, 2>>>()": launched_value("NAME(f)", "1, 2") + "()",
    "a.f[i + 1]<<<1, 2>>>()": launched_value("a.f[i + 1]", "1, 2") + "()",
    'm["a"]<<<1, 2>>>()': launched_value('m["a"]', "1, 2") + "()",
    "std::get<0>(t)<<<1, 2>>>()": launched_value("std::get<0>(t)", "1, 2") + "()",
    "if (a) f<<<1, 2>>>()": "if (a) " + launched("f", "1, 2") + "()",
    "if (a) (*p)<<<1, 2>>>()": "if (a) " + launched_value("(*p)", "1, 2") + "()",
    "return f<<<1, 2>>>()": "return " + launched("f", "1, 2") + "()",
    "g(n < 3), f<T><<<1, 2>>>()": "g(n < 3), " + launched("f<T>", "1, 2") + "()",
    "f<<<dim3(1, a << 2), (b >> 1)>>>(c)": launched("f", "dim3(1, a << 2), (b >> 1)") + "(c)",
    "f<<<1, n >> 1, g<h<T>>()>>>(c)": launched("f", "1, n >> 1, g<h<T>>()") + "(c)",
    "#define L(K, n) n##_##K<T><<<1, 2>>>()": (
        "#define L(K, n) " + launched('" #n "_" #K "<T>', "1, 2", "n##_##K<T>") + "()"
    ),
    "#define ON(g) <<<g, 2>>>\nf ON(1)();": (
        "#define ON(g)  ->*@::chevrons(@::Configuration(g, 2))\nf ON(1)();"
    ),
}
SHARED = {
    "__shared__ float a[32];": shared("float[32]", "a"),
    "__shared__ int n;": shared("int", "n"),
    "__shared__ T a[2][N + 1], b;": shared("T[2][N + 1]", "a") + " " + shared("T", "b"),
    "__shared__ float a[1 << 5], b[N >= 4 ? 8 : 4];": (
        shared("float[1 << 5]", "a") + " " + shared("float[(N >= 4 ? 8 : 4)]", "b")
    ),
    "__shared__ float *p, q, (*r)[32];": (
        shared("float*", "p") + " " + shared("float", "q") + " " + shared("float (*)[32]", "r")
    ),
    "__shared__ A<N != 4 && N < 3, B<T>> a[4], b;": (
        shared("A<N != 4 && N < 3, B<T>>[4]", "a") + " " + shared("A<N != 4 && N < 3, B<T>>", "b")
    ),
    "__shared__ alignas(16) unsigned char s[4];": shared("unsigned char[4]", "s", "alignas(16)"),
    "__align__(N > 8 ? 16 : 8) __shared__ T s;": shared("T", "s", "__align__(N > 8 ? 16 : 8)"),
    "float __shared__ s[4];": shared("float[4]", "s"),
    "static __shared__ volatile float v[1];": shared("volatile float[1]", "v"),
    "__shared__ typename Reduce<T, 4>::Storage s;": shared("typename Reduce<T, 4>::Storage", "s"),
    "__shared__ union { int a; float b; } u;": (
        " union torchext_type_of_u { int a; float b; }; " + shared("torchext_type_of_u", "u")
    ),
    "__shared__ struct S { int a; } s[2];": " struct S { int a; }; " + shared("S[2]", "s"),
    "extern __shared__ __align__(16) char m[];": "auto* m = @::dynamic_array<char>();",
    "extern __shared__ float m[][32];": "auto* m = @::dynamic_array<float[32]>();",
    "switch (n) { case 0: __shared__ int s; break; case 1: ; }": (
        shared("int", "s") + " switch (n) { case 0: ; break; case 1: ; }"
    ),
}
SHARED = {in_function(code): in_function(expected) for code, expected in SHARED.items()}
SHARED |= {
    "#define S(T, n) __shared__ T n##_s[4]\n": (
        "#define S(T, n) " + shared("T[4]", "n##_s").rstrip(";") + "\n"
    ),
    "#define S(T) extern __shared__ T s[]\n": ("#define S(T) auto* s = @::dynamic_array<T>()\n"),
    "namespace n {\nextern __shared__ int m[];\nint f(int* m) { return g(m) + m[1]; }\n}": (
        "namespace n {\nextern const @::DynamicArray<int> m __attribute__((weak));\n"
        "int f(int* m) { return g((+m)) + m[1]; }\n}"
    ),
}
LOOPS = {
    "while (true) {}": "while (@::step()) {}",
    "do x(); while (1);": "do x(); while (@::step());",
    "for (;;);": "for (; @::step(););",
    "while (a || b) ;": "while (@::step() && (a || b)) ;",
    "goto l;": "while (@::step()) goto l;",
}
OF_KERNELS = {
    "__global__ void __launch_bounds__(256) k(int n) { f(n); }": (
        "__global__ void __launch_bounds__(256) k(int n) { @::check_launch_bounds(256); f(n); }"
    ),
    "C10_LAUNCH_BOUNDS_2(f(N, 2), 4) void k() {}": (
        "C10_LAUNCH_BOUNDS_2(f(N, 2), 4) void k() { @::check_launch_bounds(f(N, 2));}"
    ),
    "__launch_bounds__(4) __global__ void k(int a[3]);": (
        "__launch_bounds__(4) __global__ void k(int a[3]);"
    ),
    "#define K __launch_bounds__(256)\nK void k() {}": (
        "#define K __launch_bounds__(256)\nK void k() {}"
    ),
    "cudaLaunchKernel((void*)k, g, b)": "cudaLaunchKernel(k, g, b)",
    "cudaLaunchKernel((const void *) &f<T>, g, b)": "cudaLaunchKernel(   &f<T>, g, b)",
    "cudaLaunchKernelExC(&c(1, 2), reinterpret_cast<void*>(f<T>), a)": (
        "cudaLaunchKernelExC(&c(1, 2), (f<T>), a)"
    ),
    "cudaLaunchKernel((void*)(p), g, b)": "cudaLaunchKernel((p), g, b)",
    "cudaLaunchKernel(f, g, (int)b)": "cudaLaunchKernel(f, g, (int)b)",
    "x.cuda() + y->cuda().sum()": (
        "x.to(::c10::Device(::c10::DeviceType::PrivateUse1)) + "
        "y->to(::c10::Device(::c10::DeviceType::PrivateUse1)).sum()"
    ),
    "s.cuda(1); cuda(); a::cuda()": "s.cuda(1); cuda(); a::cuda()",
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
    "int x = ::threadIdx.x + a::threadIdx;": "int x = @::thread_index().x + a::threadIdx;",
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
    "#include <cuda_fp4.h>\n": ('#error "numbers of 4 bits (cuda_fp4.h) cannot run on the host"\n'),
    "#include <cuda/std/atomic>\n": (
        '#error "atomics of libcu++ (cuda/std/atomic; atomicAdd and its kin can) cannot run on the '
        'host"\n'
    ),
}
UNCHANGED = [
    "// f<<<1, 2>>>(x)",
    '/* __shared__ */ const char* s = "f<<<1, 2>>>(x) __shared__ is_cuda";',
    "a << 2 < b >> 1",
    "#define __shared__ static",
    "#ifdef __shared__\n#endif",
    'auto s = R"x(f<<<1>>>() ")x";',
    "int kCUDADevice = 1'000;",
    "while (x < 3) { ++x; }",
    "do { f(); } while (x < 3);",
    "while (int x = f()) {}",
    "for (auto x : xs) {}",
]


@pytest.mark.parametrize(
    "code", [*LAUNCHES, *SHARED, *LOOPS, *OF_KERNELS, *NAMES, *ASSEMBLY, *HEADERS]
)
def test_what_is_rewritten(code):
    expected = {**LAUNCHES, **SHARED, **LOOPS, **OF_KERNELS, **NAMES, **ASSEMBLY, **HEADERS}[code]
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
        is_rewritten = re.search(
            r"<<<|__shared__|threadIdx|blockIdx|blockDim|gridDim|LAUNCH_BOUNDS", before
        )
        assert before == after or is_rewritten or f"{HOST}::launch(" in after


def test_a_declaration_over_several_lines_keeps_them():
    code = "void f() {__shared__ float\n    a[3],\n    b;\nint c;}"
    assert of(code).count("\n") == 3
    assert of(code).splitlines()[3] == "int c;}"
    macro = "#define F \\\n  __shared__ \\\n  int a; \\\n  f(a)\nint c;"
    assert of(macro).splitlines()[4] == "int c;"
    assert all(line.endswith("\\") for line in of(macro).splitlines()[:3])


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("\n+<<<1, 2>>>(x)", "a.cu:2: this launch cannot be read: write the kernel in brackets"),
        ("f<<<1, 2", "a.cu:1: this launch cannot be read: write kernel<<<grid, block>>>"),
        (
            "\n\n__shared__ int a = 1;",
            "a.cu:3: this shared variable cannot be read: give it a type",
        ),
        (
            "__shared__",
            "a.cu:1: this shared variable cannot be read: write",
        ),
        ("#define S __shared__\n", "a.cu:1: this shared variable cannot be read: give it a type"),
        ("__shared__ int a[\n#if 1\n3\n#endif\n];", "a.cu:1: .* directives around it"),
        (
            "\nstatic __shared__ int a[3];",
            "a.cu:2: this shared variable is declared in no func",
        ),
        ("struct S { static __shared__ int a; };", "a.cu:1: .*: declare it in the kernel"),
        (
            in_function("switch (n) { case 0: __shared__ struct S { int i; } s; case 1: ; }"),
            "a.cu:1: this shared variable is jumped past: define its type ahead of what jumps",
        ),
        ("wmma::fragment f;", r"a.cu:1: tensor cores \(nvcuda::wmma\) cannot run on the host"),
        ("\nCUtensorMap m;", "a.cu:2: the tensor memory accelerator"),
        ("__global__ void k(cudaTextureObject_t t);", "a.cu:1: textures"),
    ],
)
def test_what_cannot_be_rewritten_is_an_error_with_its_line(code, message):
    with pytest.raises(TranslationError, match=f"^{message}"):
        of(code)


def test_includes_are_found_by_name():
    code = '#include <a/b.h>\n  #  include "c.cuh" // d\n#include MACRO\n// #include <e.h>\n'
    assert [found[2:] for found in includes(code)] == [("a/b.h", False), ("c.cuh", True)]
