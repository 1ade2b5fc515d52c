#include "libgpuslice/linked_ptx.h"

#include <cstdint>
#include <new>

#include "libgpuslice/jit_options.h"

namespace gpuslice {

namespace {

/// The register limit among the options, 0 for none; nothing if one of them shapes the code otherwise.
std::optional<int> register_limit_of(unsigned count, const CUjit_option* options, void* const* values) {
  int limit = 0;
  for (unsigned i = 0; options && values && i < count; ++i) {
    if (options[i] == CU_JIT_MAX_REGISTERS) {
      limit = static_cast<int>(reinterpret_cast<std::uintptr_t>(values[i]));
    } else if (options[i] != CU_JIT_TARGET && !leaves_code_alone(options[i])) {
      return std::nullopt;
    }
  }
  return limit;
}

}  // namespace

LinkedPtx& LinkedPtx::get() {
  static LinkedPtx* linked = new LinkedPtx;
  return *linked;
}

void LinkedPtx::created(CUlinkState state, unsigned count, const CUjit_option* options, void* const* values) {
  const std::optional<int> limit = register_limit_of(count, options, values);
  std::lock_guard lock(mutex_);
  inputs_[state] = {.ptx = std::nullopt, .max_registers = limit.value_or(0), .known = limit.has_value()};
}

void LinkedPtx::added(CUlinkState state, std::string_view text, unsigned count, const CUjit_option* options, void* const* values) {
  const std::optional<int> limit = register_limit_of(count, options, values);
  text = text.substr(0, text.find('\0'));
  std::lock_guard lock(mutex_);
  const auto found = inputs_.find(state);
  if (found == inputs_.end()) return;
  Input& input = found->second;
  if (input.ptx || !limit) input.known = false;
  if (input.known) input.ptx = KnownPtx{std::string(text), *limit != 0 ? *limit : input.max_registers};
}

void LinkedPtx::added_other(CUlinkState state) {
  std::lock_guard lock(mutex_);
  if (const auto found = inputs_.find(state); found != inputs_.end()) found->second.known = false;
}

std::optional<KnownPtx> LinkedPtx::made_of(CUlinkState state) const {
  std::lock_guard lock(mutex_);
  const auto found = inputs_.find(state);
  return found != inputs_.end() && found->second.known ? found->second.ptx : std::nullopt;
}

void LinkedPtx::destroyed(CUlinkState state) {
  std::lock_guard lock(mutex_);
  inputs_.erase(state);
}

void LinkedPtx::forget_after_fork() { new (this) LinkedPtx; }

}  // namespace gpuslice
