// SPDX-License-Identifier: BSD-3-Clause
#include <negation/kernels.h>

namespace {

template <typename F>
void for_each_element(const at::Tensor& x, const at::Tensor& out, F f) {
  const float* from = x.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) {
    to[i] = f(from[i]);
  }
}

} // namespace

void negation::native::negated_cpu(const at::Tensor& x, const at::Tensor& out) {
  for_each_element(x, out, [](float a) { return -a; });
}

void negation::native::doubled_cpu(const at::Tensor& x, const at::Tensor& out) {
  for_each_element(x, out, [](float a) { return 2 * a; });
}

void negation::native::halved_cpu(const at::Tensor& x, const at::Tensor& out) {
  const float* from = x.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) {
    to[i] = from[i * x.stride(0)] / 2;
  }
}
