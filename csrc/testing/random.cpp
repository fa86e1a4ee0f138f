// SPDX-License-Identifier: BSD-3-Clause
//
// Random numbers of the test device: those of the CPU's generator. The fallback of a backend refuses
// to draw them, for a device has a generator of its own.
#include <torch/library.h>
#include <torchext/cpu_fallback.h>

namespace torchext::testing {
namespace {

// ATen's operators that draw random numbers and have a kernel for the CPU.
constexpr const char* kRandomOperators[] = {
    "_fused_sdp_choice",
    "_sample_dirichlet",
    "_standard_gamma",
    "bernoulli.out",
    "bernoulli_.Tensor",
    "bernoulli_.float",
    "binomial",
    "cauchy_",
    "exponential_",
    "geometric_",
    "log_normal_",
    "multinomial",
    "multinomial.out",
    "native_dropout",
    "normal.Tensor_Tensor",
    "normal.Tensor_Tensor_out",
    "normal.Tensor_float",
    "normal.Tensor_float_out",
    "normal.float_Tensor",
    "normal.float_Tensor_out",
    "normal_",
    "poisson",
    "random_",
    "random_.from",
    "random_.to",
    "randperm.generator_out",
    "rrelu_with_noise",
    "rrelu_with_noise.out",
    "rrelu_with_noise_",
    "uniform_",
};

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  for (const char* name : kRandomOperators) {
    m.impl(
        name, torch::CppFunction::makeFromBoxedFunction<&cpu_fallback<RandomNumbers::kFromCpu>>());
  }
}

} // namespace torchext::testing
