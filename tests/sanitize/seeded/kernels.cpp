// SPDX-License-Identifier: BSD-3-Clause
#include <torchext/precompiled.h>

#include <ATen/ATen.h>
#include <seeded/kernels.h>

#include <vector>

namespace seeded::native {

namespace {
int64_t calls = 0;
} // namespace

at::Tensor overflow_cpu(const at::Tensor& x) {
  const std::vector<double> values(static_cast<size_t>(x.numel()), 1.0);
  const volatile double* const behind = values.data() + x.numel();
  return at::full({}, *behind);
}

int64_t undefined_cpu(int64_t n) {
  return int64_t{1} << n;
}

at::Tensor race_cpu(const at::Tensor& x) {
  ++calls;
  return at::full({}, calls, x.options());
}

} // namespace seeded::native
