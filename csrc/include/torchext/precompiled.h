// SPDX-License-Identifier: BSD-3-Clause
// Empty. As the first line of a source it lets the compiler read torch's headers as they were
// compiled by an earlier build: torchext/toolchain/precompiled.py.
#pragma once
