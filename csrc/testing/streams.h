// SPDX-License-Identifier: BSD-3-Clause
//
// What streams of the test device have still to do: copies to the CPU that nobody has waited for. Until
// somebody does, the destination holds other values than the copy's, so that who reads it too early is
// found. All other work is done when a call returns.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <cstdint>

namespace torchext::testing {

/// Puts off what was just copied to a CPU tensor until the stream is waited for.
void put_off(const at::Tensor& copied, const c10::Stream& stream);

/// How much has been put off on a stream, ever: what an event records.
uint64_t position(const c10::Stream& stream);

/// Does what the stream has to do, all of it or up to a position.
void finish(const c10::Stream& stream, uint64_t position = UINT64_MAX);

/// The same for all streams of a device.
void finish_device(c10::DeviceIndex index);

/// Lets whoever waits for `stream` from now on wait for a position of another first.
void wait_for(const c10::Stream& stream, const c10::Stream& other, uint64_t position);

} // namespace torchext::testing
