// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cuda_runtime_api.h>

namespace torchext::cuda_on_host {

/// Returns the error, which cudaGetLastError() returns as well.
cudaError_t failed(cudaError_t error);

} // namespace torchext::cuda_on_host
