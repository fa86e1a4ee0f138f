// SPDX-License-Identifier: BSD-3-Clause
//
// Places in sources, for what is said of a kernel that is wrong.
#include "machine.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include <dlfcn.h>

namespace torchext::cuda_on_host {
namespace {

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return result + "'";
}

// Below the current folder a path is said from there.
std::string shortened(const std::string& path) {
  std::error_code error;
  const auto relative = std::filesystem::relative(path, error);
  const std::string text = error ? path : relative.string();
  return text.empty() || text.rfind("..", 0) == 0 ? path : text;
}

// Of a translated copy, in whose names a compiler may speak of a function, the file that it is of.
std::string of_the_original(const std::string& path, int line) {
  constexpr const char kFolder[] = "cuda_on_host/";
  constexpr const char kSources[] = "/src/";
  constexpr const char kSuffix[] = ".cpp";
  const size_t folder = path.find(kFolder);
  const size_t sources = folder == std::string::npos ? folder : path.find(kSources, folder);
  const bool is_copy =
      sources != std::string::npos && path.size() > std::strlen(kSuffix) &&
      path.compare(path.size() - std::strlen(kSuffix), std::string::npos, kSuffix) == 0;
  if (!is_copy) {
    return path + ":" + std::to_string(line);
  }
  const size_t begin = sources + std::strlen(kSources);
  return path.substr(begin, path.size() - std::strlen(kSuffix) - begin) + ":" +
         std::to_string(line);
}

bool is_of_torch(const std::string& path) {
  for (const char* part :
       {"/include/ATen/",
        "/include/c10/",
        "/include/torch/",
        "/include/c++/",
        "/cuda_on_host/include/",
        "/lib/gcc/"}) {
    if (path.find(part) != std::string::npos) {
      return true;
    }
  }
  return false;
}

} // namespace

bool is_of_torch(const Place& place) {
  return place.file != nullptr && is_of_torch(std::string(place.file));
}

std::string text_of(const Place& place) {
  if (place.file == nullptr) {
    return "a place that is not known";
  }
  return shortened(place.file) + ":" + std::to_string(place.line);
}

std::string place_of_code(const void* code) {
  Dl_info info;
  if (dladdr(code, &info) == 0 || info.dli_fname == nullptr) {
    return "a place that is not known";
  }
  // The call before the address that it returns to.
  const auto offset = static_cast<const char*>(code) - static_cast<const char*>(info.dli_fbase) - 1;
  std::ostringstream command;
  command << "addr2line -i -e " << quoted(info.dli_fname) << " 0x" << std::hex << offset
          << " 2>/dev/null";
  const std::unique_ptr<FILE, int (*)(FILE*)> answer(popen(command.str().c_str(), "r"), &pclose);
  std::vector<std::string> places; // from the innermost outward
  char line[4096];
  while (answer != nullptr && std::fgets(line, sizeof(line), answer.get()) != nullptr) {
    std::string text = line;
    text = text.substr(0, text.find_first_of("\n"));
    text = text.substr(0, text.find(" (discriminator"));
    if (text.empty() || text[0] == '?') {
      continue;
    }
    const size_t colon = text.rfind(':');
    const int number = std::atoi(text.c_str() + colon + 1);
    places.push_back(of_the_original(shortened(text.substr(0, colon)), number));
  }
  for (const std::string& place : places) {
    if (!is_of_torch(place)) {
      return place;
    }
  }
  return places.empty() ? std::string(info.dli_fname) : places.front();
}

} // namespace torchext::cuda_on_host
