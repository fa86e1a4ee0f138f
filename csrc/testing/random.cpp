// SPDX-License-Identifier: BSD-3-Clause
//
// Random numbers of the test device: each device has a generator, that of the CPU in kind, and the
// CPU's kernels draw from its state: the same seed gives the same numbers.
#include "device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones_like.h>
#include <torch/library.h>
#include <torchext/cpu_fallback.h>

#include <array>
#include <cstring>
#include <mutex>
#include <optional>
#include <tuple>

namespace torchext::testing {
namespace {

struct DeviceGenerator final : at::CPUGeneratorImpl {
  explicit DeviceGenerator(c10::DeviceIndex index) {
    device_ = c10::Device(c10::kPrivateUse1, index);
    key_set_ = c10::DispatchKeySet(c10::DispatchKey::PrivateUse1);
  }

  // Pickling asks for it, of every generator that is not the CPU's; all there is is in the state.
  uint64_t get_offset() const override {
    return 0;
  }
  void set_offset(uint64_t offset) override {
    TORCH_CHECK(offset == 0, "torchext: a generator of the test device has no offset");
  }

 private:
  DeviceGenerator* clone_impl() const override {
    auto* clone = new DeviceGenerator(device_.index());
    clone->set_state(*get_state());
    return clone;
  }
};

c10::intrusive_ptr<c10::TensorImpl> state_of(at::Generator generator) {
  const std::lock_guard lock(generator.mutex());
  return generator.unsafeGetGeneratorImpl()->get_state();
}

void set_state_of(at::Generator generator, const c10::TensorImpl& state) {
  const std::lock_guard lock(generator.mutex());
  generator.unsafeGetGeneratorImpl()->set_state(state);
}

// One draw at a time. Its handlers of forks are the last to be registered, and so the first to run:
// who draws takes the other mutexes of this library.
std::mutex& drawing_mutex() {
  static auto* mutex = new std::mutex;
  static const bool forks_safely =
      hold_while_forking([] { drawing_mutex().lock(); }, [] { drawing_mutex().unlock(); });
  static_cast<void>(forks_safely);
  return *mutex;
}

// While it lives, a generator of the CPU continues that of the device. A thread has one at a time.
class DrawFrom {
 public:
  DrawFrom(const at::Generator& device, const at::Generator& cpu)
      : device_(device), cpu_(cpu), lock_(mutex_of_no_other_draw()) {
    set_state_of(cpu_, *state_of(device_));
    is_drawing = true;
  }
  DrawFrom(const DrawFrom&) = delete;
  DrawFrom& operator=(const DrawFrom&) = delete;
  ~DrawFrom() {
    is_drawing = false;
    set_state_of(device_, *state_of(cpu_));
  }

 private:
  static inline thread_local bool is_drawing = false;

  static std::mutex& mutex_of_no_other_draw() {
    TORCH_CHECK(
        !is_drawing,
        "torchext: a kernel of the CPU that draws random numbers for the test device draws some of "
        "the device itself");
    return drawing_mutex();
  }

  at::Generator device_;
  at::Generator cpu_;
  std::lock_guard<std::mutex> lock_;
};

c10::DeviceIndex device_of(const c10::IValue& value) {
  c10::DeviceIndex index = -1;
  const auto look = [&index](const at::Tensor& tensor) {
    index = tensor.device().type() == c10::kPrivateUse1 ? tensor.device().index() : index;
  };
  torchext::detail::for_each_boxed_tensor(look, value);
  return index;
}

// The operator on the CPU, with a generator in place of the device's: a kernel of the device, no
// fallback, which would be reported and counted.
void draw(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  c10::DeviceIndex index = -1;
  c10::IValue* generator = nullptr;
  const auto arguments = stack->end() - static_cast<int64_t>(op.schema().arguments().size());
  for (size_t i = 0; i < op.schema().arguments().size(); ++i) {
    c10::IValue& value = *(arguments + static_cast<int64_t>(i));
    index = index >= 0 ? index : device_of(value);
    if (op.schema().arguments()[i].type()->str().find("Generator") != std::string::npos) {
      generator = &value;
    }
  }
  TORCH_INTERNAL_ASSERT(generator != nullptr, op.schema());
  at::Generator device = default_generator(index);
  if (generator->isGenerator()) {
    device = generator->toGenerator();
    TORCH_CHECK(
        device.device().type() == c10::kPrivateUse1,
        "Expected a '",
        c10::DeviceTypeName(c10::kPrivateUse1, true),
        "' device type for generator but found '",
        device.device().type(),
        "'");
    TORCH_CHECK(
        index < 0 || device.device().index() == index,
        "Expected a generator of device ",
        static_cast<int>(index),
        " but found one of ",
        device.device());
  }
  const at::Generator cpu = at::detail::createCPUGenerator();
  *generator = cpu;
  torchext::detail::CpuFallback call(op, stack);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  call.check(RandomNumbers::kFromCpu, DeviceCheck::kExactSame);
  const DrawFrom drawing(device, cpu);
  call.run();
}

// That of the CPU takes no generator; this draws by bernoulli_.
std::tuple<at::Tensor, at::Tensor> native_dropout(
    const at::Tensor& input, double p, std::optional<bool> train) {
  const at::TensorOptions mask_options = input.options().dtype(at::kBool);
  if (!train.value_or(true)) {
    return {input.clone(), at::ones_like(input, mask_options)};
  }
  at::Tensor mask = at::empty_like(input, mask_options);
  mask.bernoulli_(1 - p);
  const double scale = p == 1 ? 0 : 1 / (1 - p);
  return {input.mul(mask).mul_(scale), mask};
}

// Chooses a kernel, and draws nothing.
void choose(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  torchext::detail::CpuFallback call(op, stack);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  call.check(RandomNumbers::kFromCpu, DeviceCheck::kExactSame);
  call.run();
}

// ATen's operators that take a generator and have a kernel for the CPU.
constexpr const char* kRandomOperators[] = {
    "_sample_dirichlet",
    "_standard_gamma",
    "bernoulli.out",
    "bernoulli_.Tensor",
    "bernoulli_.float",
    "binomial",
    "cauchy_",
    "exponential_",
    "geometric_",
    "log_normal_",
    "multinomial",
    "multinomial.out",
    "normal.Tensor_Tensor",
    "normal.Tensor_Tensor_out",
    "normal.Tensor_float",
    "normal.Tensor_float_out",
    "normal.float_Tensor",
    "normal.float_Tensor_out",
    "normal_",
    "poisson",
    "random_",
    "random_.from",
    "random_.to",
    "randperm.generator_out",
    "rrelu_with_noise",
    "rrelu_with_noise.out",
    "rrelu_with_noise_",
    "uniform_",
};

} // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  for (const char* name : kRandomOperators) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&draw>());
  }
  m.impl("native_dropout", &native_dropout);
  m.impl("_fused_sdp_choice", torch::CppFunction::makeFromBoxedFunction<&choose>());
}

const at::Generator& default_generator(c10::DeviceIndex index) {
  static auto* generators =
      new std::array<at::Generator, kDeviceCount>{new_generator(0), new_generator(1)};
  return (*generators)[checked_index(index)];
}

at::Generator new_generator(c10::DeviceIndex index) {
  return at::make_generator<DeviceGenerator>(static_cast<c10::DeviceIndex>(checked_index(index)));
}

} // namespace torchext::testing

int torchext_test_device_seed(int index, uint64_t seed) {
  if (index < 0 || index >= torchext::testing::kDeviceCount) {
    return -1;
  }
  auto generator = torchext::testing::default_generator(static_cast<c10::DeviceIndex>(index));
  const std::lock_guard lock(generator.mutex());
  generator.set_current_seed(seed);
  return 0;
}

int64_t torchext_test_device_rng_state_size() {
  const auto state = torchext::testing::state_of(torchext::testing::default_generator(0));
  return state->numel();
}

int torchext_test_device_get_rng_state(int index, void* state) {
  if (index < 0 || index >= torchext::testing::kDeviceCount) {
    return -1;
  }
  const auto found = torchext::testing::state_of(
      torchext::testing::default_generator(static_cast<c10::DeviceIndex>(index)));
  std::memcpy(state, found->data(), static_cast<size_t>(found->numel()));
  return 0;
}

int torchext_test_device_set_rng_state(int index, const void* state) {
  if (index < 0 || index >= torchext::testing::kDeviceCount) {
    return -1;
  }
  const auto& generator =
      torchext::testing::default_generator(static_cast<c10::DeviceIndex>(index));
  const auto copied = torchext::testing::state_of(generator);
  std::memcpy(copied->mutable_data(), state, static_cast<size_t>(copied->numel()));
  try {
    torchext::testing::set_state_of(generator, *copied);
    return 0;
  } catch (...) {
    return -1; // the bytes are no state
  }
}
