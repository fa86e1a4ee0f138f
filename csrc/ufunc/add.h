// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <c10/macros/Macros.h>

namespace myns::native::ufunc {

template <typename T>
C10_HOST_DEVICE C10_ALWAYS_INLINE T add(T self, T other, T alpha) {
  return self + alpha * other;
}

} // namespace myns::native::ufunc
