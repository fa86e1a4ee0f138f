// SPDX-License-Identifier: BSD-3-Clause
//
// Autocast of the test device: ATen's operators are cast by the policies that every backend may take,
// and are called as they are where there is none.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include <cstdint>
#include <optional>

namespace torchext::testing {
namespace {

// ATen's lists have signatures whose types are named without their namespace.
using namespace at;

Tensor refuse_binary_cross_entropy(
    const Tensor&, const Tensor&, const std::optional<Tensor>&, int64_t) {
  TORCH_CHECK(
      false,
      "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast; "
      "use binary_cross_entropy_with_logits or BCEWithLogitsLoss instead");
}

} // namespace

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define FP32_SET_OPT_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define PROMOTE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_LOWER_PRECISION_FP(LOWER_PRECISION)
  AT_FORALL_FP32(FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(FP32_SET_OPT_DTYPE)
  AT_FORALL_PROMOTE(PROMOTE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
#undef LOWER_PRECISION
#undef FP32
#undef FP32_SET_OPT_DTYPE
#undef PROMOTE
  m.impl("binary_cross_entropy", &refuse_binary_cross_entropy);
}

} // namespace torchext::testing
