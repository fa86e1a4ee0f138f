// SPDX-License-Identifier: BSD-3-Clause
//
// Thrust's tuples and pairs, which are those of C++.
#pragma once

#include <tuple>
#include <utility>

namespace thrust {

using std::get;
using std::make_pair;
using std::make_tuple;
using std::pair;
using std::tie;
using std::tuple;
using std::tuple_element;
using std::tuple_size;

} // namespace thrust
