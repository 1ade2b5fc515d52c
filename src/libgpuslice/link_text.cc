#include "libgpuslice/link_text.h"

#include <cstdint>

#include "libgpuslice/compiler_log.h"
#include "libgpuslice/debug.h"
#include "libgpuslice/driver.h"
#include "libgpuslice/register_limit.h"

namespace gpuslice {

namespace {

/// Of the compiler's log, for what it says of all modules that have not thousands of kernels; behind it there are no
/// limits.
constexpr std::size_t kLogBytes = std::size_t{1} << 20;

void* as_value(std::uintptr_t number) {
  return reinterpret_cast<void*>(number);
}

struct Linked {
  CUresult result = CUDA_ERROR_NOT_SUPPORTED;
  std::string image;
  std::map<std::string, CompiledKernel> kernels;
};

/// What PTX for one architecture alone (`.target sm_90a`) is to be compiled for, as CUjit_target; 0: left to the
/// driver. Headers before CUDA 12 lack the names.
unsigned own_target(const std::string& text) {
  constexpr std::string_view kTarget = ".target sm_";
  const std::size_t at = text.find(kTarget);
  if (at == text.npos) return 0;
  std::size_t end = at + kTarget.size();
  unsigned sm = 0;
  for (; end < text.size() && text[end] >= '0' && text[end] <= '9'; ++end)
    sm = sm * 10 + static_cast<unsigned>(text[end] - '0');
  const char suffix = end < text.size() ? text[end] : '\0';
  return suffix == 'a' ? sm + 0x10000 : suffix == 'f' ? sm + 0x20000 : 0;
}

/// `target`: as own_target() gives it.
Linked link(const std::string& text, int max_registers, unsigned target) {
  Linked linked;
  const Driver& d = driver();
  if (!d.cuLinkCreate_v2 || !d.cuLinkAddData_v2 || !d.cuLinkComplete || !d.cuLinkDestroy) return linked;
  std::string log(kLogBytes, '\0');
  std::vector<CUjit_option> options = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_LOG_VERBOSE};
  std::vector<void*> values = {log.data(), as_value(log.size()), as_value(1)};
  if (max_registers > 0) {
    options.push_back(CU_JIT_MAX_REGISTERS);
    values.push_back(as_value(static_cast<std::uintptr_t>(max_registers)));
  }
  if (target != 0) {
    options.push_back(CU_JIT_TARGET);
    values.push_back(as_value(target));
  }
  CUlinkState state = nullptr;
  linked.result = d.cuLinkCreate_v2(static_cast<unsigned>(options.size()), options.data(), values.data(), &state);
  if (linked.result != CUDA_SUCCESS) return linked;
  void* image = nullptr;
  std::size_t size = 0;
  linked.result = d.cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, const_cast<char*>(text.c_str()), text.size() + 1,
                                     "rewritten", 0, nullptr, nullptr);
  if (linked.result == CUDA_SUCCESS) linked.result = d.cuLinkComplete(state, &image, &size);
  if (linked.result == CUDA_SUCCESS) linked.image.assign(static_cast<const char*>(image), size);
  d.cuLinkDestroy(state);
  linked.kernels = read_compiler_log(log.c_str());
  return linked;
}

CompiledKernel compiled(const Linked& linked, const std::string& name) {
  const auto found = linked.kernels.find(name);
  return found == linked.kernels.end() ? CompiledKernel{} : found->second;
}

long long local_bytes(const Linked& linked, const std::vector<ImageKernel>& kernels) {
  return gpuslice::local_bytes(kernels, [&](const std::string& name) { return compiled(linked, name).local_bytes; });
}

}  // namespace

gpuctl::Result<std::string> link_text(const std::string& text, const std::vector<ImageKernel>& kernels,
                                      int max_registers) {
  unsigned target = 0;
  Linked linked = link(text, max_registers, target);
  if (linked.result != CUDA_SUCCESS && (target = own_target(text)) != 0) linked = link(text, max_registers, target);
  if (linked.result != CUDA_SUCCESS) return gpuctl::fail("CUDA error " + std::to_string(linked.result));
  const std::vector<RegisterLimit> limits =
      wanted_limits(kernels, [&](const std::string& name) { return compiled(linked, name).registers; });
  if (!limits.empty()) {
    Linked limited = link(limit_registers(text, limits), max_registers, target);
    const bool kept = limited.result == CUDA_SUCCESS && local_bytes(limited, kernels) <= local_bytes(linked, kernels);
    debug("%s with at most %d registers, and %zu more: %s", limits.front().entry.c_str(), limits.front().registers,
          limits.size() - 1, kept ? "kept" : "they spill");
    if (kept) linked.image = std::move(limited.image);
  }
  return {boost::system::in_place_value, std::move(linked.image)};
}

}  // namespace gpuslice
