# SPDX-License-Identifier: BSD-3-Clause
"""What is translated compiles: CUDA's C++ that nvcc takes, as the host's compiler reads it."""

import subprocess

import pytest
from torch.utils import cpp_extension

from torchext.toolchain import csrc, cuda_on_host, environment, platforms
from torchext.toolchain.cuda_translation import translated, translation

HOST = csrc.folder("testing") / "cuda_on_host" / "include"
# Declared ahead of each case.
KERNELS = """
#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
using Kernel = void (*)(float*);
struct Pair { int a, b; };
struct __attribute__((packed)) Packed { char c; int n; };
struct Bits { static const int kNumber = 5; unsigned bits : 3; };
__global__ void plain(float* x) { x[0] = 1; }
__global__ void add_kernel(float* x) { x[0] = 1; }
__global__ void defaults(float* x, const float* y = nullptr, int n = 5) { x[0] = y ? y[0] : n; }
__global__ void of_pair(float* x, Pair p, int n = 1) { x[0] = p.a + p.b; }
__global__ void of_function(float* x, float (*f)(float)) { x[0] = f(x[0]); }
__global__ void overloaded(float* x, const float* y) { x[0] = y[0]; }
__global__ void overloaded(double* x, const float* y) { x[0] = y[0]; }
template <int N> __global__ void numbered(float* x) { x[0] = N; }
template <bool B, typename T> __global__ void flagged(T* x) { x[0] = B; }
template <typename T> __global__ void deduced(T* x, const float* y, int n = 5) { x[0] = n; }
template <typename... A> __global__ void packed(float* x, A... a) { x[0] = (a + ... + 0); }
template <typename T> __global__ void templated(T* x) { x[0] = 1; }
template <typename T> auto get() { return &templated<T>; }
template <typename T, typename U> struct Both { T t; U u; };
template <typename T, int N> struct Tile { T data[N]; };
float once(float);
double once(double);
"""
LAUNCHES = {
    "null pointers": "defaults<<<1, 1>>>(x, 0, 3); defaults<<<1, 1>>>(x, NULL); "
    "overloaded<<<1, 1>>>(x, 0); deduced<<<1, 1>>>(x, 0); deduced<<<1, 1>>>(x, NULL, 3);",
    "default arguments": "defaults<<<1, 1>>>(x); deduced<float><<<1, 1>>>(x, x);",
    "braces": "of_pair<<<{1, 1}, {32}>>>(x, {n, 2}); of_pair<<<1, 1>>>(x, {});",
    "fields": "Bits b{}; Packed p{}; defaults<<<1, 1>>>(x, x, b.bits); "
    "defaults<<<1, 1>>>(x, x, p.n); packed<<<1, 1>>>(x, b.bits, p.n, Bits::kNumber);",
    "overloaded functions": "of_function<<<1, 1>>>(x, once);",
    "packs": "packed<int, float><<<1, 1>>>(x, 1, 2.0f); packed<int><<<1, 1>>>(x, 1, 2); "
    "packed<<<1, 1>>>(x);",
    "arrays of kernels": "Kernel all[] = {plain, add_kernel}; all[n]<<<1, 1>>>(x); "
    'std::map<std::string, Kernel> map; map["a"]<<<1, 1>>>(x);',
    "calls": "std::tuple<Kernel> t{plain}; std::get<0>(t)<<<1, 1>>>(x); get<float>()<<<1, 1>>>(x);",
    "less-than": "flagged<sizeof(float) <= 4><<<1, 1>>>(x); numbered<1 << 3><<<1, 1>>>(x); "
    "constexpr int N = 3; flagged<N < 4><<<1, 1>>>(x); flagged<(N > 4), float><<<1, 1>>>(x);",
    "pasted names": "\n#define LAUNCH(name, ...) name##_kernel<<<1, 32>>>(__VA_ARGS__)\n"
    "LAUNCH(add, x);",
    "chevrons of a macro": "\n#define ON(grid, block) <<<grid, block>>>\n"
    "plain ON(1, 32)(x); defaults ON(1, 32)(x, 0, 3);",
    "commas": "plain<<<1, 1>>>(x), templated<float><<<1, 1>>>(x); n ? plain<<<1, 1>>>(x) : "
    "plain<<<2, 1>>>(x);",
}
SHARED = {
    "extents": "__shared__ float a[1 << 5], b[N >> 1], c[N == 4 ? 8 : 4], d[N > 4 ? 4 : N][2]; "
    "a[0] = b[0] = c[0] = d[0][0] = x[0];",
    "types": "__shared__ std::conditional_t<(N > 3), float, double> v[4], w[4]; "
    "__shared__ std::conditional_t<N != 4 && N < 5, float, double> u; "
    "__shared__ Tile<float, (N >> 1)> t; __shared__ Both<Both<int, float>, int> o; "
    "v[0] = w[0] = u = t.data[0] = o.u = 1;",
    "alignment": "__shared__ __align__(sizeof(T) > 8 ? 16 : 8) T a[8]; alignas(double) __shared__ "
    "char b[8]; __shared__ float c __attribute__((aligned(16))); a[0] = b[0] = c = 1;",
    "declarators": "__shared__ float *p, q, (*r)[32], *s[4]; __shared__ void (*f)(int); "
    "p = x; q = 2; (*r)[3] = 1; s[0] = p; f(3);",
    "names": "__shared__ int s[32]; __shared__ int s_key[32]; s[0] = s_key[0] = 1;",
    "dynamic": "extern __shared__ float s[][32]; s[1][2] = 1;",
    "lambdas": "__shared__ float s[4]; extern __shared__ float d[]; auto get = [=](int i) { return "
    "s[i] + d[i]; }; auto set = [=](int i, float v) { s[i] = v; d[i] = v; }; auto of = [](int i) { "
    "return s[i]; }; auto all = [&] { return [=] { return s[0]; }(); }; auto own = [](float* s) { "
    "return s[0]; }; auto named = [x](int i) mutable -> float { s[i] = x[i]; return s[i]; }; "
    "set(1, get(0) + of(1) + all() + own(x) + named(2));",
    "switch": "switch (N) { case 0: __shared__ int s[N]; s[0] = 1; break; case 1: break; }",
    "goto": "if (x == nullptr) goto end; if (x[0] > 1) { x[0] = 1; } else goto end; "
    "__shared__ int s; s = 1; end: x[0] = 1;",
    "macros": "\n#define BUFFER(T, name, n) __shared__ T name##_buffer[n]\n"
    "#define DYNAMIC(T) extern __shared__ T dynamic[]\n"
    "BUFFER(float, a, 32); BUFFER(int, b, N); DYNAMIC(T); dynamic[0] = a_buffer[0] + b_buffer[0];",
}
FILES = {
    "arrays of a file": """
extern __shared__ float memory[];
namespace a { extern __shared__ int memory[]; namespace { extern __shared__ float two[][32]; } }
struct Member { float* memory; Member(float* memory) : memory(memory) {} };
__device__ float parameter(float* memory, int i) { memory += i; return memory[0]; }
__global__ void uses(float* x) {
  float* p = memory;
  int* q = reinterpret_cast<int*>(memory);
  auto* r = (double*)memory;
  x[0] = parameter(memory, 1) + *memory + p[0] + q[1] + r[1] + a::memory[1] + a::two[1][2];
  Member m(memory);
  templated(memory + 1);
  deduced(memory, memory);
}
__global__ void another(float* x) { __shared__ float memory[32]; memory[0] = x[0]; }
""",
    "loops": """
constexpr int log2_of(int n) { int r = 0; while (true) { if (n < 2) return r; n /= 2; ++r; } }
constexpr int digits_of(int n) { int r = 0; for (;;) { if (n < 1) return r; n /= 10; ++r; } }
constexpr int halved(int n) { int r = 0; for (; (n /= 2) > 0; ++r) ; return r; }
static_assert(log2_of(8) == 3 && digits_of(12) == 2 && halved(8) == 3);
#define POLL(x) while (!(x)) ;
__device__ void polls(volatile int* x) {
  POLL(x[0]) while (1) { if (x[1]) break; }
  do ; while (x[2]);
  if (x[3]) goto end; else x[0] = 1;
  while (int n = x[4]) {}
  for (char c : "abc") {}
end: for (int i = 0; ; ++i);
}
""",
    "a thread's variables": """
__device__ unsigned f(const dim3& blockDim, uint3 threadIdx) { return blockDim.x + threadIdx.x; }
__global__ void g(float* x) { uint3 t = ::threadIdx; x[0] = f(::blockDim, t) + ::gridDim.x; }
""",
}


@pytest.fixture(scope="module")
def compiles(tmp_path_factory):
    """Whether translated code compiles; what the compiler says where it does not."""
    folder = tmp_path_factory.mktemp("translated")
    headers = cuda_on_host._torch_headers()
    includes = [HOST, headers, csrc.folder("include"), *cpp_extension.include_paths("cpu")]
    command = [
        environment.find_compiler(platforms.current()), "-std=c++17", "-fsyntax-only",
        *cuda_on_host._KERNEL_FLAGS, *(f"-I{path}" for path in includes),
    ]  # fmt: skip

    def compile_text(text: str) -> str:
        path = folder / "a.cpp"
        path.write_text(text)
        return subprocess.run([*command, path], capture_output=True, text=True).stderr

    return compile_text


@pytest.mark.parametrize("name", LAUNCHES)
def test_launches(compiles, name):
    code = f"{KERNELS}\nvoid run(float* x, int n) {{ {LAUNCHES[name]} }}"
    assert compiles(translated(code, "a.cu")) == ""


@pytest.mark.parametrize("name", SHARED)
def test_shared_memory(compiles, name):
    head = "template <typename T, int N> __global__ void kernel(T* x)"
    instance = "template __global__ void kernel<float, 4>(float*);"
    code = f"{KERNELS}\n{head} {{ {SHARED[name]} }}\n{instance}"
    assert compiles(translated(code, "a.cu")) == ""


@pytest.mark.parametrize("name", FILES)
def test_files(compiles, name):
    assert compiles(translated(KERNELS + FILES[name], "a.cu")) == ""


def test_an_array_that_an_included_file_declares(compiles):
    header = translation("extern __shared__ float memory[];\n", "a.cuh")
    assert header.arrays == {"memory"}
    code = "__global__ void f(float* x) { x[0] = *reinterpret_cast<int*>(memory) + memory[1]; }"
    made = translation(code, "a.cu", header.arrays)
    assert made.arrays == {"memory"}
    assert compiles(header.text + made.text) == ""
