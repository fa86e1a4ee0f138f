// SPDX-License-Identifier: BSD-3-Clause
//
// The functions that gradient formulas call beside ATen's: the names and meaning of PyTorch's own
// (torch/csrc/autograd/FunctionsManual.h), most of which no library exports. Each header of the
// folder is one topic; what is not inline is defined in <topic>-inl.h, which a library compiles
// once if its formulas call it.
#pragma once

#include <ATen/TensorOperators.h> // for the operators in formulas
#include <ATen/core/Reduction.h>  // at::Reduction, which formulas name
#include <ATen/core/functional.h> // c10::fmap, which formulas call
#include <torchext/derivatives/activation.h>
#include <torchext/derivatives/basic.h>
#include <torchext/derivatives/conversion.h>
#include <torchext/derivatives/convolution.h>
#include <torchext/derivatives/cumulative.h>
#include <torchext/derivatives/distance.h>
#include <torchext/derivatives/dropout.h>
#include <torchext/derivatives/fft.h>
#include <torchext/derivatives/grid_sampler.h>
#include <torchext/derivatives/group_normalization.h>
#include <torchext/derivatives/indexing.h>
#include <torchext/derivatives/linalg_determinant.h>
#include <torchext/derivatives/linalg_factorizations.h>
#include <torchext/derivatives/linalg_householder.h>
#include <torchext/derivatives/linalg_lstsq.h>
#include <torchext/derivatives/linalg_matrix_functions.h>
#include <torchext/derivatives/linalg_solve.h>
#include <torchext/derivatives/linalg_spectral.h>
#include <torchext/derivatives/loss.h>
#include <torchext/derivatives/matmul.h>
#include <torchext/derivatives/norm.h>
#include <torchext/derivatives/normalization.h>
#include <torchext/derivatives/pointwise.h>
#include <torchext/derivatives/rearrangement.h>
#include <torchext/derivatives/reduction.h>
#include <torchext/derivatives/rnn.h>
#include <torchext/derivatives/view.h>
