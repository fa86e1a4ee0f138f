// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <ATen/core/Tensor.h>

namespace myns::native {

/// The lines of a contiguous tensor along one dimension.
struct Lines {
  Lines(const at::Tensor& tensor, int64_t dim) {
    for (int64_t i = 0; i < tensor.dim(); ++i) {
      (i < dim ? outer : i > dim ? stride : length) *= tensor.size(i);
    }
    count = outer * stride;
  }

  /// Offset of the first element of a line.
  C10_HOST_DEVICE int64_t start(int64_t line) const {
    return line / stride * stride * length + line % stride;
  }

  int64_t outer = 1;
  int64_t length = 1;
  int64_t stride = 1; ///< from one element of a line to the next
  int64_t count = 0;
};

} // namespace myns::native
