// SPDX-License-Identifier: BSD-3-Clause
//
// The processor's own rounding modes (torchext/cuda_on_host/rounding.h).
#include <torchext/cuda_on_host/rounding.h>

#include <cfenv>
#include <cmath>

namespace torchext::cuda_on_host {
namespace {

class Mode {
 public:
  explicit Mode(Rounding rounding) : before_(std::fegetround()) {
    std::fesetround(
        rounding == Rounding::kZero   ? FE_TOWARDZERO
        : rounding == Rounding::kDown ? FE_DOWNWARD
        : rounding == Rounding::kUp   ? FE_UPWARD
                                      : FE_TONEAREST);
  }
  Mode(const Mode&) = delete;
  Mode& operator=(const Mode&) = delete;
  ~Mode() {
    std::fesetround(before_);
  }

 private:
  int before_;
};

// Volatile, so that nothing is computed before the mode is set, or after it is set back.
template <typename T>
T rounded_as(Operation operation, Rounding rounding, volatile T a, volatile T b, volatile T c) {
  const Mode mode(rounding);
  volatile T result = 0;
  switch (operation) {
    case Operation::kAdd:
      result = a + b;
      break;
    case Operation::kSubtract:
      result = a - b;
      break;
    case Operation::kMultiply:
      result = a * b;
      break;
    case Operation::kDivide:
      result = a / b;
      break;
    case Operation::kMultiplyAdd:
      result = std::fma(a, b, c);
      break;
    case Operation::kSquareRoot:
      result = std::sqrt(a);
      break;
  }
  return result;
}

template <typename To, typename From>
To converted_as(Rounding rounding, volatile From value) {
  const Mode mode(rounding);
  volatile To result = static_cast<To>(value);
  return result;
}

} // namespace

float rounded(Operation operation, Rounding rounding, float a, float b, float c) {
  return rounded_as<float>(operation, rounding, a, b, c);
}

double rounded(Operation operation, Rounding rounding, double a, double b, double c) {
  return rounded_as<double>(operation, rounding, a, b, c);
}

float to_float(Rounding rounding, double value) {
  return converted_as<float>(rounding, value);
}

float to_float(Rounding rounding, long long value) {
  return converted_as<float>(rounding, value);
}

float to_float(Rounding rounding, unsigned long long value) {
  return converted_as<float>(rounding, value);
}

double to_double(Rounding rounding, long long value) {
  return converted_as<double>(rounding, value);
}

double to_double(Rounding rounding, unsigned long long value) {
  return converted_as<double>(rounding, value);
}

} // namespace torchext::cuda_on_host
