// SPDX-License-Identifier: BSD-3-Clause
//
// torch's headers of functorch include nlohmann/json, which torch does not install. They use it in
// functions that nobody calls here, so that its names are enough. Where the library is installed it
// is what is included.
#pragma once
#pragma GCC system_header

#if __has_include_next(<nlohmann/json.hpp>)
#include_next <nlohmann/json.hpp>
#else

#include <string>

namespace nlohmann {

class json {
 public:
  json();
  template <typename T>
  explicit json(const T& value);
  static json parse(const std::string& text);
  std::string dump() const;
  template <typename T>
  T get() const;
};

} // namespace nlohmann

#endif
