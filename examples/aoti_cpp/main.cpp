// SPDX-License-Identifier: BSD-3-Clause
//
// Runs the model that export.py packaged, without Python, and compares with what it gave there.

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <dlfcn.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

/// The path of a file that must be there.
std::string file_in(const std::filesystem::path& folder, const char* name) {
  const std::filesystem::path path = folder / name;
  if (!std::filesystem::is_regular_file(path)) {
    throw std::runtime_error("there is no file " + path.string() + "; export.py writes it");
  }
  return path.string();
}

/// Opens a library of torchext, whose operators the dispatcher has from then on. It stays open: the
/// model calls them by name.
void load_operators(const std::string& path, const std::string& operator_namespace) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw std::runtime_error(dlerror());
  }
  // What the library could not register, it says here and nowhere else.
  using ErrorOf = const char* (*)();
  const std::string name = "torchext_library_error_" + operator_namespace;
  const auto error_of = reinterpret_cast<ErrorOf>(dlsym(library, name.c_str()));
  if (error_of == nullptr) {
    throw std::runtime_error(path + " is not the torchext library of " + operator_namespace);
  }
  if (const char* error = error_of()) {
    throw std::runtime_error(error);
  }
}

c10::IValue load_pickle(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  return torch::jit::pickle_load(bytes);
}

/// Runs one call of calls.pt and returns whether the result is that of Python.
bool agrees(
    torch::inductor::AOTIModelPackageLoader& model,
    const c10::Dict<c10::IValue, c10::IValue>& call) {
  const at::Tensor tokens = call.at("tokens").toTensor();
  const at::Tensor expected = call.at("probabilities").toTensor();
  const at::Tensor actual = model.run({tokens}).at(0);
  if (actual.sizes() != expected.sizes()) {
    std::cerr << "the result has shape " << actual.sizes() << ", not " << expected.sizes() << '\n';
    return false;
  }
  const auto difference = (actual - expected).abs().max().item<float>();
  std::cout << "batch of " << tokens.size(0) << ": largest difference " << difference << '\n';
  return at::allclose(actual, expected, /*rtol=*/1e-4, /*atol=*/1e-6);
}

bool run(const std::filesystem::path& folder) {
  const c10::InferenceMode no_gradients;
  load_operators(file_in(folder, "operators.so"), "myns");
  torch::inductor::AOTIModelPackageLoader model(file_in(folder, "model.pt2"));
  const c10::IValue calls = load_pickle(file_in(folder, "calls.pt"));
  bool all_agree = true;
  for (const c10::IValue& call : calls.toListRef()) {
    all_agree = agrees(model, call.toGenericDict()) && all_agree;
  }
  return all_agree;
}

} // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: " << arguments[0] << " FOLDER\n";
    return 2;
  }
  try {
    if (!run(arguments[1])) {
      std::cerr << "error: the results differ from those of Python\n";
      return 1;
    }
  } catch (const c10::Error& error) {
    std::cerr << "error: " << error.what_without_backtrace() << '\n';
    return 1;
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
  std::cout << "the results are those of Python\n";
  return 0;
}
