#include "libgpuslice/image/linked_ptx.h"

#include <new>

#include "libgpuslice/image/jit_options.h"

namespace gpuslice {

LinkedPtx& LinkedPtx::get() {
  static LinkedPtx* linked = new LinkedPtx;
  return *linked;
}

void LinkedPtx::created(CUlinkState state, unsigned count, const CUjit_option* options, void* const* values) {
  const std::optional<int> limit = register_limit_of(count, options, values);
  std::lock_guard lock(mutex_);
  inputs_[state] = {.ptx = std::nullopt, .max_registers = limit.value_or(0), .known = limit.has_value()};
}

void LinkedPtx::added(CUlinkState state, std::string_view text, unsigned count, const CUjit_option* options,
                      void* const* values) {
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

void LinkedPtx::forget_after_fork() {
  new (this) LinkedPtx;
}

}  // namespace gpuslice
