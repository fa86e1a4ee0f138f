// SPDX-License-Identifier: BSD-3-Clause
#include "expectation.h"

#include "layers.h"

#include <ATen/EmptyTensor.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/core/stack.h>
#include <ATen/record_function.h>
#include <c10/core/DefaultDtype.h>
#include <c10/util/Exception.h>
#include <torchext/generated/boxed.h>
#include <torchext/platform.h>

#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace torchext::runtime {
namespace {

bool has_meta_kernel(const c10::OperatorHandle& op) {
  // What is left is the fallback of all operators, which refuses.
  return op.hasKernelForDispatchKey(c10::DispatchKey::Meta) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

bool are_strided(const std::vector<c10::IValue>& values) {
  bool all = true;
  const auto look = [&all](const at::Tensor& t) {
    all =
        all && t.layout() == at::kStrided && !t.is_nested() && t.has_storage() && !t.is_quantized();
  };
  for (const c10::IValue& value : values) {
    detail::for_each_boxed_tensor(look, value);
  }
  return all;
}

bool is_number(const at::Tensor& t) {
  return t.unsafeGetTensorImpl()->is_wrapped_number();
}

at::Tensor stand_in(const at::Tensor& t) {
  at::Tensor made(at::detail::empty_strided_meta(t.sizes(), t.strides(), t.scalar_type()));
  if (is_number(t)) { // and promotes as one
    made.unsafeGetTensorImpl()->set_wrapped_number(true);
  }
  return made;
}

std::vector<c10::IValue> on_meta(
    const c10::FunctionSchema& schema, const std::vector<c10::IValue>& values) {
  std::vector<c10::IValue> made;
  made.reserve(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    c10::TypePtr type = schema.arguments()[i].real_type();
    if (const auto optional = type->cast<c10::OptionalType>()) {
      type = optional->getElementType();
    }
    const bool is_device = type->kind() == c10::TypeKind::DeviceObjType;
    made.push_back(
        is_device ? c10::IValue(c10::Device(c10::kMeta))
                  : detail::map_boxed_tensors(&stand_in, values[i]));
  }
  return made;
}

std::vector<const c10::StorageImpl*> storages_of(const std::vector<c10::IValue>& values) {
  std::vector<const c10::StorageImpl*> found;
  const auto look = [&found](const at::Tensor& t) {
    found.push_back(t.storage().unsafeGetStorageImpl());
  };
  for (const c10::IValue& value : values) {
    detail::for_each_boxed_tensor(look, value);
  }
  return found;
}

// The caller has no part in what runs while it lives: no profile, warning, mode or override.
class Unseen {
 public:
  Unseen() : unheard_(&silent()) {
    at::impl::PythonTorchFunctionTLS::set_disabled_state(at::impl::ALL_DISABLED);
  }
  Unseen(const Unseen&) = delete;
  Unseen& operator=(const Unseen&) = delete;
  ~Unseen() {
    at::impl::PythonTorchFunctionTLS::set_disabled_state(functions_);
  }

 private:
  struct Silent final : c10::WarningHandler {
    void process(const c10::Warning& /*warning*/) override {}
  };

  static Silent& silent() {
    static Silent handler;
    return handler;
  }

  Suspended suspended_;
  at::DisableRecordFunctionGuard unrecorded_;
  c10::WarningUtils::WarningHandlerGuard unheard_;
  at::impl::TorchFunctionDisabledState functions_ =
      at::impl::PythonTorchFunctionTLS::get_disabled_state();
};

std::shared_ptr<const Expectation> computed(
    const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments) {
  const Unseen unseen;
  try {
    std::vector<c10::IValue> made = on_meta(op.schema(), arguments);
    const auto storages = storages_of(made);
    torch::jit::Stack stack = made;
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::Meta), &stack);
    const bool moves = storages_of(made) != storages;
    return std::make_shared<const Expectation>(
        Expectation{std::move(made), std::move(stack), moves});
  } catch (const std::exception& error) { // it cannot tell
    const auto is_other = is_interrupt.load();
    if (is_other != nullptr && is_other(error)) {
      throw;
    }
  }
  return nullptr;
}

// All of a call but the values of its tensors.
using Signature = std::vector<int64_t>;

int64_t bits_of(double value) {
  int64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

void append(Signature& signature, const at::Tensor& t) {
  signature.insert(signature.end(), {static_cast<int64_t>(t.scalar_type()), is_number(t), t.dim()});
  signature.insert(signature.end(), t.sizes().begin(), t.sizes().end());
  signature.insert(signature.end(), t.strides().begin(), t.strides().end());
}

// Whether it was possible.
bool append(Signature& signature, const c10::IValue& value) {
  const auto push = [&signature](char kind, std::initializer_list<int64_t> numbers) {
    signature.push_back(kind);
    signature.insert(signature.end(), numbers);
    return true;
  };
  if (!detail::is_there(value) || value.isGenerator()) {
    return push('n', {});
  }
  if (value.isTensor()) {
    push('t', {});
    append(signature, value.toTensor());
    return true;
  }
  if (value.isBool()) {
    return push('b', {value.toBool()});
  }
  if (value.isInt()) {
    return push('i', {value.toInt()});
  }
  if (value.isDouble()) {
    return push('d', {bits_of(value.toDouble())});
  }
  if (value.isComplexDouble()) {
    const auto number = value.toComplexDouble();
    return push('c', {bits_of(number.real()), bits_of(number.imag())});
  }
  if (value.isDevice()) { // which is Meta for all
    return push('m', {});
  }
  if (value.isString()) {
    const std::string& text = value.toStringRef();
    push('s', {static_cast<int64_t>(text.size())});
    signature.insert(signature.end(), text.begin(), text.end());
    return true;
  }
  if (!value.isList()) {
    return false;
  }
  push('l', {static_cast<int64_t>(value.toListRef().size())});
  for (const c10::IValue& item : value.toListRef()) {
    if (!append(signature, item)) {
      return false;
    }
  }
  return true;
}

struct Hash {
  size_t operator()(const Signature& signature) const {
    uint64_t hash = 14695981039346656037U; // FNV-1a
    for (const int64_t number : signature) {
      hash = (hash ^ static_cast<uint64_t>(number)) * 1099511628211U;
    }
    return hash;
  }
};

struct Known {
  static constexpr size_t kMost = 1024;

  std::mutex mutex;
  std::unordered_map<Signature, std::shared_ptr<const Expectation>, Hash> by_signature;
};

Known& own_known() {
  static auto* all = new Known; // never destroyed: kernels may run at exit
  return *all;
}

Known& known() {
  // A child must not find the mutex held by a thread that it has not.
  [[maybe_unused]] static const bool forks_safely =
      hold_while_forking([] { own_known().mutex.lock(); }, [] { own_known().mutex.unlock(); });
  return own_known();
}

// All of a call that Meta kernels see; nothing where they see what has no name here.
std::optional<Signature> signature_of(
    const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments) {
  Signature signature{
      reinterpret_cast<int64_t>(&op.schema()),
      static_cast<int64_t>(c10::get_default_dtype_as_scalartype())};
  for (const c10::IValue& argument : arguments) {
    if (!append(signature, argument)) {
      return std::nullopt;
    }
  }
  return signature;
}

void keep(Signature signature, std::shared_ptr<const Expectation> expectation) {
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  if (all.by_signature.size() >= Known::kMost) {
    all.by_signature.clear();
  }
  all.by_signature.insert_or_assign(std::move(signature), std::move(expectation));
}

} // namespace

std::shared_ptr<const Expectation> expectation_of(
    const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments) {
  if (!has_meta_kernel(op) || !are_strided(arguments)) {
    return nullptr;
  }
  std::optional<Signature> signature = signature_of(op, arguments);
  if (!signature.has_value()) {
    return computed(op, arguments);
  }
  {
    Known& all = known();
    const std::lock_guard lock(all.mutex);
    const auto found = all.by_signature.find(*signature);
    if (found != all.by_signature.end()) {
      return found->second;
    }
  }
  std::shared_ptr<const Expectation> made = computed(op, arguments);
  keep(std::move(*signature), made);
  return made;
}

std::shared_ptr<const Expectation> corrected_expectation(
    const c10::OperatorHandle& op,
    const std::vector<c10::IValue>& arguments,
    const Expectation& wrong,
    const std::vector<c10::IValue>& results) {
  auto right = std::make_shared<Expectation>(wrong);
  right->results.clear();
  for (const c10::IValue& result : results) {
    right->results.push_back(detail::map_boxed_tensors(&stand_in, result));
  }
  if (std::optional<Signature> signature = signature_of(op, arguments)) {
    keep(std::move(*signature), right);
  }
  return right;
}

} // namespace torchext::runtime
