// SPDX-License-Identifier: BSD-3-Clause
//
// Libraries are compiled with hidden visibility; this marks what another shared object may use.
#pragma once

#define TORCHEXT_API __attribute__((visibility("default")))
