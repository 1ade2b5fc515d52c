// Loaded code: modules, libraries, and the functions and kernels in them.
#pragma once

#include <cuda.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "softgpu/engine/engine.h"
#include "softgpu/table/device_limits.h"

namespace gpuctl::softgpu {

class Context;
class Device;
struct Module;
struct Library;

/// A kernel of a loaded module, and the attributes that the program has set for it.
struct Function {
  Module* module = nullptr;  ///< valid as long as the handle is
  std::shared_ptr<const engine::Program> program;
  const engine::Kernel* kernel = nullptr;
  std::atomic<int> max_dynamic_shared{0};  ///< bytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
  std::atomic<bool> loaded{false};         ///< with lazy loading: the first use has loaded it
  std::atomic<int> carveout{-1};           ///< percent, -1: the driver's choice

  CUresult get_attribute(CUfunction_attribute attribute, int* value) const;
  CUresult set_attribute(CUfunction_attribute attribute, int value);

  /// The position of a parameter in the parameter buffer. Either pointer may be nullptr.
  CUresult param_info(std::size_t index, std::size_t* offset, std::size_t* bytes) const;
};

/// The object behind a CUkernel: an entry of a library, independent of contexts.
struct Kernel {
  Library* library = nullptr;
  std::vector<std::shared_ptr<Function>> functions;  ///< by device

  const std::shared_ptr<Function>& on(const Device& device) const;
};

/// The object behind a CUmodule; a CUlibrary has one for each device.
struct Module {
  std::shared_ptr<const engine::Program> program;
  Context* context = nullptr;  ///< nullptr for the module of a library
  Device* device = nullptr;    ///< where its variables are
  /// All entries that the engine can run, by name.
  std::map<std::string, std::shared_ptr<Function>, std::less<>> functions;

  Module(std::shared_ptr<const engine::Program> code, Device& where, Context* of = nullptr);
};

struct Library {
  std::vector<std::shared_ptr<Module>> modules;  ///< by device: each has its own variables
  std::map<std::string, std::shared_ptr<Kernel>, std::less<>> kernels;
};

/// How many blocks of a kernel fit one SM, with that many threads and that much dynamic shared memory. 0: none.
int blocks_per_sm(const engine::Kernel& kernel, int threads, std::size_t dynamic_shared);

}  // namespace gpuctl::softgpu
