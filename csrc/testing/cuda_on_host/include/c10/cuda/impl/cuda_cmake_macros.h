// SPDX-License-Identifier: BSD-3-Clause
//
// What the build of a CUDA torch writes: how its libraries are linked.
#pragma once
