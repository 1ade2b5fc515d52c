// NVIDIA's management library (NVML), where there is one. nvml.h is no part of the driver, and what is needed of it is
// little.
#pragma once

#include <dlfcn.h>

#include <string>

namespace gpuctl {

/// Loads and starts the library for one of its functions; a library that lacks it is not started.
class NvmlLibrary {
 public:
  static constexpr int kSuccess = 0;
  using Device = void*;

  NvmlLibrary(const std::string& library, const char* function)
      : handle_(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    void* const needed = find(function);
    if (auto* const start = reinterpret_cast<int (*)()>(needed == nullptr ? nullptr : find("nvmlInit_v2"));
        start != nullptr && start() == kSuccess)
      function_ = needed;
  }
  ~NvmlLibrary() {
    if (auto* const stop = reinterpret_cast<int (*)()>(function_ == nullptr ? nullptr : find("nvmlShutdown"))) stop();
    if (handle_ != nullptr) ::dlclose(handle_);
  }
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;

  /// The function; null: it cannot be called.
  template <class Function>
  Function* function() const {
    return reinterpret_cast<Function*>(function_);
  }
  /// The GPU with this UUID; null: it is not NVML's, or the function cannot be called.
  Device device(const std::string& uuid) const {
    auto* const by_uuid = reinterpret_cast<int (*)(const char*, Device*)>(
        function_ == nullptr ? nullptr : find("nvmlDeviceGetHandleByUUID"));
    Device device = nullptr;
    return by_uuid != nullptr && by_uuid(uuid.c_str(), &device) == kSuccess ? device : nullptr;
  }

 private:
  void* find(const char* name) const { return handle_ == nullptr ? nullptr : ::dlsym(handle_, name); }

  void* handle_;
  void* function_ = nullptr;  ///< once the library is started
};

}  // namespace gpuctl
