// For tests: a driver that loads what it is told to, and says in which order it was asked.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "libgpuslice/modules/container.h"

namespace gpuslice {

/// Handles are numbers from 1 on, entries are numbers from 100 on. One at a time.
struct FakeContainer {
  std::vector<std::string> calls;    ///< "load code", "unload 1", "find one$persistent"
  std::set<std::string> refused;     ///< code that is refused
  std::vector<std::string> entries;  ///< of every container
  const Container container;

  explicit FakeContainer(std::vector<std::string> names, bool is_library = true)
      : entries(std::move(names)), container{is_library, load, unload, get_entry, count_entries, enumerate_entries} {
    here() = this;
  }

  static void* number(std::size_t value) { return reinterpret_cast<void*>(value); }

 private:
  static FakeContainer*& here() {
    static FakeContainer* fake = nullptr;
    return fake;
  }
  static CUresult load(void** handle, const void* code, const LoadOptions&) {
    const std::string text = static_cast<const char*>(code);
    here()->calls.push_back("load " + text);
    if (here()->refused.count(text) != 0) return CUDA_ERROR_INVALID_IMAGE;
    *handle = number(++here()->loaded_);
    return CUDA_SUCCESS;
  }
  static CUresult unload(void* handle) {
    here()->calls.push_back("unload " + std::to_string(reinterpret_cast<std::size_t>(handle)));
    return CUDA_SUCCESS;
  }
  static CUresult get_entry(void** entry, void*, const char* name) {
    const std::vector<std::string>& all = here()->entries;
    const auto found = std::find(all.begin(), all.end(), name);
    if (found == all.end()) return CUDA_ERROR_NOT_FOUND;
    *entry = number(100 + static_cast<std::size_t>(found - all.begin()));
    return CUDA_SUCCESS;
  }
  static CUresult count_entries(unsigned* count, void*) {
    *count = static_cast<unsigned>(here()->entries.size());
    return CUDA_SUCCESS;
  }
  static CUresult enumerate_entries(void** out, unsigned count, void*) {
    for (unsigned i = 0; i < count && i < here()->entries.size(); ++i) out[i] = number(100 + i);
    return CUDA_SUCCESS;
  }

  std::size_t loaded_ = 0;
};

}  // namespace gpuslice
