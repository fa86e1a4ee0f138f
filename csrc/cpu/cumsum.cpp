// SPDX-License-Identifier: BSD-3-Clause

#include <torchext/precompiled.h>

#include <ATen/AccumulateType.h>
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <myns/kernels/cumsum.h>

#include "../meta/lines.h"

#include <algorithm>

namespace {

constexpr int64_t kGrain = 32768; // elements that are worth a thread

} // namespace

void myns::native::structured_cumsum_cpu::impl(
    const at::Tensor& self,
    int64_t dim,
    std::optional<at::ScalarType> /*dtype*/,
    const at::Tensor& out) {
  const at::Tensor input = self.to(out.scalar_type()).contiguous();
  const Lines lines(out, dim);
  if (lines.length == 0 || lines.count == 0) {
    return;
  }
  const int64_t grain = std::max<int64_t>(kGrain / lines.length, 1);
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(
      at::kHalf, at::kBFloat16, out.scalar_type(), "myns::cumsum", [&] {
        using Acc = at::acc_type<scalar_t, /*is_cuda=*/false>;
        const scalar_t* const from = input.const_data_ptr<scalar_t>();
        scalar_t* const to = out.mutable_data_ptr<scalar_t>();
        at::parallel_for(0, lines.count, grain, [&](int64_t begin, int64_t end) {
          for (int64_t line = begin; line < end; ++line) {
            const int64_t start = lines.start(line);
            Acc sum = 0;
            for (int64_t i = 0; i < lines.length; ++i) {
              const int64_t at = start + i * lines.stride;
              sum += static_cast<Acc>(from[at]);
              to[at] = static_cast<scalar_t>(sum);
            }
          }
        });
      });
}
