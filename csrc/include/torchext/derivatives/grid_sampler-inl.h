// SPDX-License-Identifier: BSD-3-Clause
//
// A sample is out = sum_k w_k(x) I[k] over the nodes k around the coordinate x; a weight is the
// product of weights along each axis. Contracted with ggI and ggGrid, its backward gives
//
//   sum over samples of grad_output (sum_k w_k ggI[k] + sum_k (ggGrid . grad w_k) I[k])
//
// whose derivatives these are. The first term is grid sampling of ggI; for the second, the weights
// are derived along each axis. Shapes: N samples, C channels, P points, K nodes of a point.
#pragma once

#include <torchext/derivatives/basic.h>
#include <torchext/derivatives/grid_sampler.h>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/native/GridSamplerUtils.h>
#include <c10/util/Exception.h>

#include <array>
#include <tuple>
#include <vector>

namespace torchext {
inline namespace v1 {
namespace derivatives {

namespace {

using at::Tensor;
using Interpolation = at::native::detail::GridSamplerInterpolation;
using Padding = at::native::detail::GridSamplerPadding;

// What of an axis decides where a coordinate lies.
struct AxisRule {
  c10::SymInt size;
  Padding padding;
  bool align_corners;
};

// The k nodes around each coordinate of an axis; those outside of the input weigh nothing.
struct Axis {
  Tensor index; // (N, k, P)
  // (N, k, P): the weight, its first and second derivative by the grid; undefined for zero.
  std::array<Tensor, 3> weight;
};

// The coordinate in the input of a coordinate of the grid, which lies in [-1, 1]. The order of
// operations is the kernels', so that the nodes are, too.
Tensor unnormalize(const Tensor& coordinate, const AxisRule& rule) {
  if (rule.align_corners) {
    return (coordinate + 1) / 2 * at::Scalar(rule.size - 1);
  }
  return ((coordinate + 1) * at::Scalar(rule.size) - 1) / 2;
}

// How fast that grows.
c10::SymFloat unnormalize_slope(const AxisRule& rule) {
  const c10::SymInt extent = rule.align_corners ? rule.size - 1 : rule.size;
  return c10::SymFloat(extent) / c10::SymFloat(2.0);
}

// A value and its derivative by what it was made of; an undefined derivative is one.
struct Padded {
  Tensor value;
  Tensor slope;
};

// A triangle wave: mirrored at the centres of the outer nodes or at the outer edges.
Padded reflect(const Tensor& x, const AxisRule& rule) {
  const double low = rule.align_corners ? 0.0 : -0.5;
  const c10::SymInt span = rule.align_corners ? rule.size - 1 : rule.size;
  if (span == 0) {
    return {at::zeros_like(x), at::zeros_like(x)};
  }
  const Tensor distance = (x - low).abs();
  const Tensor rest = at::fmod(distance, at::Scalar(span));
  const Tensor is_odd = at::floor(distance / at::Scalar(span)).remainder(2) == 1;
  const Tensor mirrored = at::where(is_odd, at::Scalar(span) - rest, rest) + low;
  const Tensor is_reversed = at::logical_xor(is_odd, x < low);
  return {mirrored, 1 - 2 * is_reversed.to(x.scalar_type())};
}

Padded pad(const Tensor& x, const AxisRule& rule) {
  if (rule.padding == Padding::Zeros) {
    return {x, Tensor()};
  }
  const Padded inner = rule.padding == Padding::Reflection ? reflect(x, rule) : Padded{x, Tensor()};
  const at::Scalar last(rule.size - 1);
  const Tensor moves = at::logical_and(inner.value > 0, inner.value < last).to(x.scalar_type());
  return {inner.value.clamp(0, last), inner.slope.defined() ? moves * inner.slope : moves};
}

// Stacks weights and drops those of nodes (of floating point) outside of the input.
Axis masked_axis(
    const std::vector<Tensor>& nodes,
    const std::array<std::vector<Tensor>, 3>& weights,
    const AxisRule& rule) {
  const Tensor node = at::stack(nodes, 1);
  const Tensor is_inside = at::logical_and(node >= 0, node <= at::Scalar(rule.size - 1));
  Axis axis;
  axis.index = at::where(is_inside, node, at::zeros({}, node.options())).to(at::kLong);
  for (size_t order = 0; order < weights.size(); ++order) {
    if (!weights[order].empty()) {
      const Tensor weight = at::stack(weights[order], 1);
      axis.weight[order] = at::where(is_inside, weight, at::zeros({}, weight.options()));
    }
  }
  return axis;
}

Axis linear_axis(const Tensor& coordinate, const AxisRule& rule) {
  const Padded x = pad(unnormalize(coordinate, rule), rule);
  const Tensor first = x.value.floor();
  const Tensor t = x.value - first;
  Tensor slope = at::full_like(t, at::Scalar(unnormalize_slope(rule)));
  slope = x.slope.defined() ? slope * x.slope : slope;
  return masked_axis({first, first + 1}, {{{1 - t, t}, {-slope, slope}, {}}}, rule);
}

// Keys 1981, Cubic convolution interpolation for digital image processing, with a = -3/4: the
// weight of a node at `distance` in [0, 1], and its derivatives.
Tensor keys_near(const Tensor& distance, int order) {
  constexpr double a = -0.75;
  switch (order) {
    case 0:
      return ((a + 2) * distance - (a + 3)) * distance * distance + 1;
    case 1:
      return (3 * (a + 2) * distance - 2 * (a + 3)) * distance;
    default:
      return 6 * (a + 2) * distance - 2 * (a + 3);
  }
}

// The same at a distance in [1, 2].
Tensor keys_far(const Tensor& distance, int order) {
  constexpr double a = -0.75;
  switch (order) {
    case 0:
      return ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a;
    case 1:
      return (3 * a * distance - 10 * a) * distance + 8 * a;
    default:
      return 6 * a * distance - 10 * a;
  }
}

// Here the nodes are padded rather than the coordinate.
Axis cubic_axis(const Tensor& coordinate, const AxisRule& rule) {
  const Tensor x = unnormalize(coordinate, rule);
  const Tensor first = x.floor();
  const Tensor t = x - first;
  std::vector<Tensor> nodes;
  for (int offset = -1; offset <= 2; ++offset) {
    nodes.push_back(pad(first + offset, rule).value);
  }
  const at::Scalar slope(unnormalize_slope(rule));
  std::array<std::vector<Tensor>, 3> weights;
  for (int order = 0; order < 3; ++order) {
    std::vector<Tensor> of_nodes = {
        keys_far(t + 1, order),
        keys_near(t, order),
        keys_near(1 - t, order),
        keys_far(2 - t, order)};
    for (size_t node = 0; node < of_nodes.size(); ++node) {
      const bool is_ahead = node >= 2; // its distance shrinks as the coordinate grows
      Tensor weight = is_ahead && order == 1 ? -of_nodes[node] : of_nodes[node];
      for (int factor = 0; factor < order; ++factor) {
        weight = weight * slope;
      }
      weights[order].push_back(weight);
    }
  }
  return masked_axis(nodes, weights, rule);
}

// The nodes of every point of a grid and their weights, and what `input` has there.
class Sampler {
 public:
  Sampler(
      const Tensor& input, const Tensor& grid, bool is_cubic, Padding padding, bool align_corners)
      : input_(input), count_(input.dim() - 2) {
    for (int64_t axis = 0; axis < count_; ++axis) {
      const AxisRule rule{input.sym_size(axis + 2), padding, align_corners};
      const Tensor x = coordinate(grid, axis);
      axes_.push_back(is_cubic ? cubic_axis(x, rule) : linear_axis(x, rule));
      const Tensor index = spread(axes_.back().index, axis);
      places_ = places_.defined() ? places_ * at::Scalar(rule.size) + index : index;
    }
    places_ = places_.flatten(1, count_);
  }

  int64_t axis_count() const {
    return count_;
  }

  // The coordinates of `axis` in a grid, or in a tensor like it: (N, P). The first axis has the
  // last number of a point.
  Tensor coordinate(const Tensor& grid, int64_t axis) const {
    return grid.select(-1, count_ - 1 - axis).flatten(1);
  }

  // The weights (N, K, P), derived by the axes `first` and `second`; undefined for zero. No axis
  // is -1.
  Tensor weight(int64_t first, int64_t second) const {
    Tensor product;
    for (int64_t axis = 0; axis < count_; ++axis) {
      const size_t order = static_cast<size_t>(axis == first) + static_cast<size_t>(axis == second);
      const Tensor& factor = axes_[axis].weight[order];
      if (!factor.defined()) {
        return Tensor();
      }
      product = product.defined() ? product * spread(factor, axis) : spread(factor, axis);
    }
    return product.flatten(1, count_);
  }

  // What the input has at the nodes: (N, C, K, P).
  Tensor values() const {
    const c10::SymInt samples = input_.sym_size(0);
    const c10::SymInt channels = input_.sym_size(1);
    const Tensor places = places_.flatten(1).unsqueeze(1).expand_symint({samples, channels, -1});
    return input_.flatten(2).gather(2, places).reshape_symint(
        {samples, channels, places_.sym_size(1), places_.sym_size(2)});
  }

  // The adjoint of that: the sums of `values` (N, C, K, P) at the places of the nodes.
  Tensor scatter(const Tensor& values) const {
    const Tensor flat = values.flatten(2);
    const Tensor places = places_.flatten(1).unsqueeze(1).expand_symint(flat.sym_sizes());
    const Tensor sums = at::zeros_like(input_.flatten(2)).scatter_add(2, places, flat);
    return sums.reshape_symint(input_.sym_sizes());
  }

 private:
  // (N, k, P) with the nodes of `axis` in a dimension of their own.
  Tensor spread(const Tensor& of_axis, int64_t axis) const {
    Tensor result = of_axis;
    for (int64_t other = 0; other < count_; ++other) {
      result = other == axis ? result : result.unsqueeze(other + 1);
    }
    return result;
  }

  Tensor input_;
  int64_t count_;
  std::vector<Axis> axes_;
  Tensor places_; // where in the flattened axes each node is: (N, K, P)
};

using Gradients = std::tuple<Tensor, Tensor, Tensor>;

// The weights derived in the direction of `direction`, of the grid's shape; if `axis` is not -1,
// derived by that axis, too.
Tensor derived_weight(const Sampler& sampler, const Tensor& direction, int64_t axis) {
  Tensor sum;
  for (int64_t along = 0; along < sampler.axis_count(); ++along) {
    const Tensor weight = sampler.weight(along, axis);
    if (weight.defined()) {
      const Tensor term = sampler.coordinate(direction, along).unsqueeze(1) * weight;
      sum = sum.defined() ? sum + term : term;
    }
  }
  return sum;
}

// The gradients that come from ggGrid.
Gradients of_grid_gradient(
    const Sampler& sampler,
    const Tensor& ggGrid,
    const Tensor& grad_output,
    const Tensor& grid,
    std::array<bool, 3> output_mask) {
  Gradients gradients;
  const Tensor values = sampler.values();
  const Tensor slope = derived_weight(sampler, ggGrid, -1).unsqueeze(1);
  const Tensor grad = grad_output.flatten(2).unsqueeze(2); // (N, C, 1, P)
  if (output_mask[0]) {
    std::get<0>(gradients) = (slope * values).sum(2).reshape_symint(grad_output.sym_sizes());
  }
  if (output_mask[1]) {
    std::get<1>(gradients) = sampler.scatter(slope * grad);
  }
  if (output_mask[2]) {
    const Tensor seen = (grad * values).sum(1);
    std::vector<Tensor> coordinates;
    for (int64_t axis = sampler.axis_count() - 1; axis >= 0; --axis) {
      const Tensor curvature = derived_weight(sampler, ggGrid, axis);
      coordinates.push_back(
          curvature.defined() ? (curvature * seen).sum(1) : at::zeros_like(seen.select(1, 0)));
    }
    std::get<2>(gradients) = at::stack(coordinates, -1).reshape_symint(grid.sym_sizes());
  }
  return gradients;
}

struct Arguments {
  Interpolation interpolation;
  Padding padding;
  bool align_corners;
};

// The gradients that come from ggI, in which the operator is linear.
Gradients of_input_gradient(
    const Tensor& ggI,
    const Tensor& grad_output,
    const Tensor& grid,
    const Arguments& arguments,
    std::array<bool, 3> output_mask) {
  const bool is_2d = ggI.dim() == 4;
  const auto mode = static_cast<int64_t>(arguments.interpolation);
  const auto padding = static_cast<int64_t>(arguments.padding);
  const bool align = arguments.align_corners;
  Gradients gradients;
  if (output_mask[0]) {
    std::get<0>(gradients) = is_2d ? at::grid_sampler_2d(ggI, grid, mode, padding, align)
                                   : at::grid_sampler_3d(ggI, grid, mode, padding, align);
  }
  if (output_mask[2]) {
    const std::array<bool, 2> grid_only = {false, true};
    std::get<2>(gradients) = std::get<1>(
        is_2d
            ? at::grid_sampler_2d_backward(grad_output, ggI, grid, mode, padding, align, grid_only)
            : at::grid_sampler_3d_backward(
                  grad_output, ggI, grid, mode, padding, align, grid_only));
  }
  return gradients;
}

Gradients grid_sampler_double_backward(
    const Tensor& ggI,
    const Tensor& ggGrid,
    const Tensor& grad_output,
    const Tensor& input,
    const Tensor& grid,
    const Arguments& arguments,
    std::array<bool, 3> output_mask) {
  Gradients of_input;
  Gradients of_grid;
  if (ggI.defined()) {
    of_input = of_input_gradient(ggI, grad_output, grid, arguments, output_mask);
  }
  // The nearest node does not move with the grid.
  if (ggGrid.defined() && arguments.interpolation != Interpolation::Nearest) {
    const bool is_cubic = arguments.interpolation == Interpolation::Bicubic;
    TORCH_CHECK(
        !is_cubic || input.dim() == 4,
        "grid_sampler: cubic interpolation takes an input of 4 dimensions, got ",
        input.dim());
    const Sampler sampler(input, grid, is_cubic, arguments.padding, arguments.align_corners);
    of_grid = of_grid_gradient(sampler, ggGrid, grad_output, grid, output_mask);
  }
  return {
      sum_of_defined(std::get<0>(of_input), std::get<0>(of_grid)),
      std::get<1>(of_grid),
      sum_of_defined(std::get<2>(of_input), std::get<2>(of_grid))};
}

Arguments arguments_of(int64_t interpolation_mode, int64_t padding_mode, bool align_corners) {
  return {
      static_cast<Interpolation>(interpolation_mode),
      static_cast<Padding>(padding_mode),
      align_corners};
}

} // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> grid_sampler_2d_double_backward(
    const at::Tensor& ggI,
    const at::Tensor& ggGrid,
    const at::Tensor& grad_output,
    const at::Tensor& input,
    const at::Tensor& grid,
    int64_t interpolation_mode,
    int64_t padding_mode,
    bool align_corners,
    std::array<bool, 3> output_mask) {
  const Arguments arguments = arguments_of(interpolation_mode, padding_mode, align_corners);
  return grid_sampler_double_backward(
      ggI, ggGrid, grad_output, input, grid, arguments, output_mask);
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> grid_sampler_3d_double_backward(
    const at::Tensor& ggI,
    const at::Tensor& ggGrid,
    const at::Tensor& grad_output,
    const at::Tensor& input,
    const at::Tensor& grid,
    int64_t interpolation_mode,
    int64_t padding_mode,
    bool align_corners,
    std::array<bool, 3> output_mask) {
  const Arguments arguments = arguments_of(interpolation_mode, padding_mode, align_corners);
  return grid_sampler_double_backward(
      ggI, ggGrid, grad_output, input, grid, arguments, output_mask);
}

} // namespace derivatives
} // namespace v1
} // namespace torchext
