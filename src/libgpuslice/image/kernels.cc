#include "libgpuslice/image/kernels.h"

#include <algorithm>
#include <new>
#include <unordered_set>
#include <utility>

#include "ipc/stub.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/image/whole_grid.h"
#include "ptx/persistent_abi.h"

namespace gpuslice {

namespace {

/// Owns t_recent_kernels. Programs launch in destructors of their threads too.
struct RecentOwner {
  RecentKernels* kernels = new (std::nothrow) RecentKernels;
  ~RecentOwner() {
    t_recent_kernels = nullptr;
    delete std::exchange(kernels, nullptr);
  }
};

RecentKernels* recent_kernels() {
  static thread_local RecentOwner owner;
  return t_recent_kernels = owner.kernels;
}

}  // namespace

thread_local constinit RecentKernels* t_recent_kernels = nullptr;

std::uint64_t hash_of(KernelInfo& kernel) {
  std::uint64_t hash = kernel.hash.load(std::memory_order_relaxed);
  if (hash == 0)
    kernel.hash.store(hash = gpuctl::ipc::kernel_hash(kernel.module, kernel.name), std::memory_order_relaxed);
  return hash;
}

std::uint32_t dynamic_shared(const KernelInfo& kernel, std::uint32_t bytes) {
  return kernel.words_behind ? gpuctl::ptx::with_shared_words(bytes) : bytes;
}

void apply_attribute(Instance& instance, CUfunction_attribute attribute, int value) {
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    value = std::min(static_cast<int>(dynamic_shared(*instance.kernel, static_cast<std::uint32_t>(value))),
                     instance.most_dynamic_shared);
  }
  if (driver().cuFuncSetAttribute(instance.persistent, attribute, value) != CUDA_SUCCESS) {
    instance.persistent = nullptr;
    instance.kernel->reason = "its persistent form cannot have function attribute " + std::to_string(attribute) +
                              " = " + std::to_string(value);
    instance.kernel->changed.store(true);
  }
  instance.occupancy.fill({});
}

Kernels& Kernels::get() {
  static Kernels* kernels = new Kernels;
  return *kernels;
}

void Kernels::add(const void* handle, std::shared_ptr<KernelInfo> kernel) {
  std::unique_lock lock(mutex_);
  by_handle_[handle] = std::move(kernel);
  ++g_launch_words.kernels;
}

KernelInfo* Kernels::find_locked(const void* handle) {
  RecentKernels* recent = recent_kernels();
  std::shared_lock lock(mutex_);
  const std::uint32_t generation = g_launch_words.kernels.load(std::memory_order_relaxed);
  auto found = by_handle_.find(handle);
  KernelInfo* kernel = found == by_handle_.end() ? nullptr : found->second.get();
  if (recent) recent->add({handle, kernel, generation});
  return kernel;
}

std::shared_ptr<KernelInfo> Kernels::find_shared(const void* handle) {
  std::shared_lock lock(mutex_);
  auto found = by_handle_.find(handle);
  return found == by_handle_.end() ? nullptr : found->second;
}

std::vector<std::pair<const void*, std::shared_ptr<KernelInfo>>> Kernels::library_kernels(const std::string& name) {
  std::shared_lock lock(mutex_);
  std::vector<std::pair<const void*, std::shared_ptr<KernelInfo>>> found;
  for (const auto& entry : by_handle_) {
    if (entry.second->is_library_kernel && entry.second->name == name) found.push_back(entry);
  }
  return found;
}

void Kernels::remove(const std::vector<std::shared_ptr<KernelInfo>>& kernels) {
  std::unique_lock lock(mutex_);
  std::erase_if(by_handle_, [&](const auto& entry) {
    return std::find(kernels.begin(), kernels.end(), entry.second) != kernels.end();
  });
  ++g_launch_words.kernels;
}

bool Kernels::any_may_wait() {
  std::shared_lock lock(mutex_);
  return std::ranges::any_of(by_handle_, [](const auto& entry) {
    const KernelInfo& kernel = *entry.second;
    return kernel.launches > 0 && kernel.blocks_wait != gpuctl::ptx::BlocksWait::kNo;
  });
}

std::string Kernels::note_stuck(std::uint64_t hash) {
  std::shared_lock lock(mutex_);
  for (const auto& [handle, kernel] : by_handle_) {
    if (kernel->hash.load() != hash || kernel->stuck.exchange(true)) continue;
    kernel->changed = true;
    ++g_launch_words.kernels;  // launches that repeat one are decided anew
    return kernel->name;
  }
  return {};
}

void Kernels::note_ended(std::uint64_t hash) {
  std::shared_lock lock(mutex_);
  for (const auto& [handle, kernel] : by_handle_)
    if (kernel->hash.load() == hash && kernel->stuck.exchange(false)) kernel->changed = true;
}

namespace {

/// What a slice limits for a kernel that cannot be evicted, and how finely.
std::string limits_of_opaque(const KernelInfo& kernel) {
  if (const char* why = kernel.unlimited.load()) return std::string("nothing limits it: ") + why;
  const std::string gate = "starts when its slice has SMs";
  if (const std::uint32_t sms = kernel.confined_sms)
    return gate + ", on " + std::to_string(sms) + " (a green context) until it ends";
  if (const char* why = kernel.stuck ? kStuck : kernel.anywhere.load()) return gate + ", on any until it ends: " + why;
  return gate;
}

std::string reason_of(const KernelInfo& kernel) {
  const char* waits =
      kernel.background && kernel.may_get_form && !kernel.persistent ? kernel.background->phrase() : nullptr;
  std::string reason = waits ? waits : kernel.reason;
  const auto add = [&reason](const std::string& more) { reason += (reason.empty() ? "" : "; ") + more; };
  const char* how = kernel.original_launch.load();
  if (how) {
    const char* form = kernel.persistent ? " in its original form" : "";
    add("launched " + std::string(how) + form + (how == kNothingInForce ? "" : ": " + limits_of_opaque(kernel)));
  } else if (!kernel.persistent) {
    add(limits_of_opaque(kernel));
  }
  if (const char* in_graph = kernel.original_in_graph.load(); in_graph && kernel.persistent)
    add("in its original form in a graph: " + std::string(in_graph));
  return reason;
}

}  // namespace

std::vector<gpuctl::ipc::Kernel> Kernels::report(bool all) {
  std::vector<gpuctl::ipc::Kernel> list;
  std::unordered_set<const KernelInfo*> seen;
  std::shared_lock lock(mutex_);
  for (const auto& [handle, kernel] : by_handle_) {
    if (kernel->launches == 0 || !seen.insert(kernel.get()).second) continue;
    if (!kernel->changed.exchange(false) && !all) continue;
    std::lock_guard detail(kernel->mutex);
    list.push_back({.name = kernel->name,
                    .module = kernel->module,
                    .form = kernel->persistent ? "persistent" : "opaque",
                    .reason = reason_of(*kernel),
                    .launches = static_cast<std::int64_t>(kernel->launches.load()),
                    .registers = kernel->registers,
                    .registers_original = kernel->registers_original,
                    .per_sm = kernel->per_sm,
                    .block_task_ns = kernel->task_ns});
  }
  return list;
}

void Kernels::forget_after_fork() {
  new (this) Kernels;
}

}  // namespace gpuslice
