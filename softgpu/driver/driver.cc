#include "softgpu/driver/driver.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>

#include "softgpu/contexts/zero_stream.h"
#include "softgpu/device/exit.h"
#include "softgpu/device/visible_devices.h"
#include "softgpu/driver/checkpoint.h"

namespace gpuctl::softgpu {
namespace {

std::atomic<Driver*> the_driver{nullptr};
std::atomic<bool> forked{false};
std::atomic<bool> exiting{false};
/// How long an exit waits for blocks and copies, which check their context's state far more often than that.
constexpr std::chrono::seconds kExitPatience{2};
std::mutex start_mutex;

void in_forked_child() {
  if (the_driver.load() != nullptr) forked.store(true);
}

}  // namespace

Driver::Driver(Config settings, std::vector<SeenDevice> seen)
    : Graphs(std::move(settings), std::move(seen)), primaries_(devices.size()) {}

CUresult Driver::start() {
  if (forked.load()) return CUDA_ERROR_NOT_INITIALIZED;
  const std::lock_guard lock(start_mutex);
  if (exiting.load()) return refuse("cuInit");
  if (the_driver.load() != nullptr) return CUDA_SUCCESS;
  Config config = read_config();
  std::vector<SeenDevice> seen;
  for (const std::size_t number : visible_devices(std::getenv("CUDA_VISIBLE_DEVICES"), config.devices.size())) {
    const DeviceConfig& device = config.devices[number];
    Result<std::unique_ptr<Table>> table =
        Table::open(device.table_path, device.sms, config.percentage, {config.apart, config.mps});
    if (table.has_error()) return CUDA_ERROR_OPERATING_SYSTEM;
    if (config.mps_queues != 0) {
      const Table::Lock held(**table);
      if (!(*table)->take_queues(static_cast<std::uint32_t>(config.work_queues), config.mps_queues))
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    }
    seen.push_back({number, std::move(*table)});
  }
  if (seen.empty()) return CUDA_ERROR_NO_DEVICE;
  pthread_atfork(nullptr, nullptr, in_forked_child);
  // Registered now and not when this library is loaded: older handlers and static objects of the program run without a
  // driver.
  std::atexit(stop);
  auto* const driver = new Driver(std::move(config), std::move(seen));
  the_driver.store(driver);
  obey_orders(*driver);  // without a thread for it the process is none that can be locked
  return CUDA_SUCCESS;
}

Driver* Driver::get() {
  const bool usable = !forked.load(std::memory_order_relaxed) && !exiting.load(std::memory_order_relaxed);
  return usable ? the_driver.load() : nullptr;
}

CUresult Driver::refuse(const char* call) {
  if (forked.load() || !exiting.load()) return CUDA_ERROR_NOT_INITIALIZED;
  complain_of_late_use(std::string(call) + " is called after the driver's exit handler has run");
  return CUDA_ERROR_DEINITIALIZED;
}

void Driver::stop() {
  Driver* driver = get();
  if (driver == nullptr || exiting.exchange(true)) return;
  {
    const std::lock_guard lock(driver->mutex_);
    for (const auto& context : driver->all_contexts_) context->end(CUDA_ERROR_DEINITIALIZED);
  }
  driver->activity.wait_until_idle(kExitPatience);
  for (const auto& device : driver->devices) {
    Table& table = *device->table;
    const Table::Lock lock(table);
    if (table.closed()) continue;
    table.close();
    table.kick();
  }
}

/// The mutex is held.
Context* Driver::make_context(unsigned flags, Device& device) {
  all_contexts_.push_back(std::make_shared<Context>(next_context_id_++, flags, device, memory, config.work_queues));
  contexts.add(all_contexts_.back());
  return all_contexts_.back().get();
}

Context* Driver::create_context(unsigned flags, Device& device) {
  const std::lock_guard lock(mutex_);
  return make_context(flags, device);
}

/// The mutex is held.
Driver::Primary& Driver::primary_of(const Device& device) {
  return primaries_[static_cast<std::size_t>(device.ordinal)];
}

Context* Driver::retain_primary(Device& device) {
  const std::lock_guard lock(mutex_);
  Primary& primary = primary_of(device);
  ++primary.uses;
  if (primary.context == nullptr) primary.context = make_context(primary.flags, device);
  return primary.context;
}

CUmemoryPool Driver::default_pool(Device& device) {
  const std::lock_guard lock(mutex_);
  CUmemoryPool& pool = default_pools_[&device];
  if (pool == nullptr) pool = pools.add(std::make_shared<MemoryPool>(MemoryPool{&device}));
  return pool;
}

CUresult Driver::release_primary(const Device& device) {
  Context* gone = nullptr;
  {
    const std::lock_guard lock(mutex_);
    Primary& primary = primary_of(device);
    if (primary.uses == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--primary.uses == 0) gone = std::exchange(primary.context, nullptr);
  }
  if (gone != nullptr) destroy_context(*gone);
  return CUDA_SUCCESS;
}

void Driver::reset_primary(const Device& device) {
  Context* gone = nullptr;
  {
    const std::lock_guard lock(mutex_);
    gone = std::exchange(primary_of(device).context, nullptr);
  }
  if (gone != nullptr) destroy_context(*gone);
}

CUgreenCtx Driver::make_green_context(Device& device, const ResourceDescription& part) {
  const auto green = std::make_shared<GreenContext>();
  green->context = retain_primary(device);
  green->resource = {.sms = part.sms, .apart = part.apart};
  return green_contexts.add(green);
}

Context* Driver::active_primary(const Device& device) {
  const std::lock_guard lock(mutex_);
  return primary_of(device).context;
}

unsigned Driver::primary_flags(const Device& device) {
  const std::lock_guard lock(mutex_);
  return primary_of(device).flags;
}

void Driver::set_primary_flags(const Device& device, unsigned flags) {
  const std::lock_guard lock(mutex_);
  Primary& primary = primary_of(device);
  primary.flags = flags;
  if (primary.context != nullptr) primary.context->flags().store(flags);
}

void Driver::destroy_context(Context& context) {
  contexts.remove(reinterpret_cast<CUcontext>(&context));
  captures.forget(context);
  context.end(CUDA_ERROR_CONTEXT_IS_DESTROYED);
  context.device().executor.drop_queued(context.stopped());
  context.destroy();
  for (const auto& other : every_context()) other->disable_peer(context);
  const auto belongs = [&](const auto& object) { return object.context() == &context; };
  streams.remove_if(belongs);
  events.remove_if(belongs);
  green_contexts.remove_if([&](const GreenContext& green) { return green.context == &context; });
  functions.remove_if([&](const Function& function) { return function.module->context == &context; });
  modules.remove_if([&](const Module& module) {
    if (module.context != &context) return false;
    forget_variables(module);
    return true;
  });
  memory.release_owner(&context);
}

void Driver::synchronize_all(const Device* device) {
  for (const auto& context : every_context()) {
    if (device == nullptr || &context->device() == device) context->drain();
  }
}

bool Driver::idle() {
  return std::ranges::all_of(every_context(), [](const auto& context) { return context->idle(); });
}

std::vector<std::shared_ptr<Context>> Driver::every_context() {
  const std::lock_guard lock(mutex_);
  return all_contexts_;
}

void Driver::loads_image(Context* context) {
  if (config.lazy_loading) return;
  if (context != nullptr) return context->synchronize();
  for (const auto& one : every_context()) one->synchronize();
}

void Driver::uses(Function& function, Context& context) {
  if (!config.lazy_loading || function.loaded) return;
  context.synchronize();
  function.loaded = true;
}

std::shared_ptr<Stream> Driver::stream(Context& current, CUstream handle) const {
  if (handle == CU_STREAM_PER_THREAD || (handle == nullptr && PerThreadScope::active())) {
    return current.per_thread_stream();
  }
  if (handle == nullptr || handle == CU_STREAM_LEGACY) return current.legacy_stream();
  return streams.find(handle);
}

void Driver::add_module(const std::shared_ptr<Module>& module) {
  for (const std::string& name : module->program->symbol_names()) {
    const engine::Symbol* symbol = module->program->symbol(name);
    Allocation variable;
    variable.address = symbol->address;
    variable.bytes = symbol->size;
    variable.kind = MemoryKind::kVariable;
    variable.device = module->device->ordinal;
    memory.add(variable);
  }
  for (const auto& [name, function] : module->functions) functions.add(function);
  modules.add(module);
}

void Driver::forget_variables(const Module& module) {
  for (const std::string& name : module.program->symbol_names()) {
    memory.release(module.program->symbol(name)->address, MemoryKind::kVariable, MemoryKind::kVariable);
  }
}

void Driver::remove_module(const Module& module) {
  forget_variables(module);
  for (const auto& [name, function] : module.functions) functions.remove(reinterpret_cast<CUfunction>(function.get()));
  modules.remove(reinterpret_cast<CUmodule>(const_cast<Module*>(&module)));
}

bool looks_at_work(std::string_view call) {
  static constexpr std::string_view kLooks[] = {"cuCtxSynchronize",   "cuEventElapsedTime", "cuEventQuery",
                                                "cuEventSynchronize", "cuStreamQuery",      "cuStreamSynchronize"};
  return std::ranges::any_of(kLooks, [call](std::string_view name) { return call.starts_with(name); });
}

void end_by_access() {
  ::raise(SIGSEGV);
}

}  // namespace gpuctl::softgpu
