#include "softgpu/driver/checkpoint.h"

#include <chrono>
#include <optional>
#include <thread>

#include "softgpu/driver/driver.h"
#include "softgpu/host/thread.h"

namespace gpuctl::softgpu {
namespace {

constexpr std::chrono::seconds kLookForOrders{1};

/// The thread that obeys, and what it knows from one order to the next.
class Obedient {
 public:
  explicit Obedient(Driver& driver) : driver_(driver) {}

  CUresult carry_out(const Table::Ordered& ordered) {
    switch (ordered.order) {
      case Order::kLock:
        return state == CU_PROCESS_STATE_RUNNING ? lock(ordered.within_ms) : CUDA_ERROR_ILLEGAL_STATE;
      case Order::kCheckpoint:
        return state == CU_PROCESS_STATE_LOCKED ? checkpoint() : CUDA_ERROR_ILLEGAL_STATE;
      case Order::kRestore:
        return state == CU_PROCESS_STATE_CHECKPOINTED ? restore() : CUDA_ERROR_ILLEGAL_STATE;
      case Order::kUnlock:
        if (state != CU_PROCESS_STATE_LOCKED) return CUDA_ERROR_ILLEGAL_STATE;
        state = CU_PROCESS_STATE_RUNNING;
        driver_.gate.open();
        return CUDA_SUCCESS;
      case Order::kNone:
        break;
    }
    return CUDA_ERROR_INVALID_VALUE;
  }

  CUprocessState state = CU_PROCESS_STATE_RUNNING;

 private:
  CUresult lock(std::uint32_t within_ms) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(within_ms);
    driver_.gate.close();
    while (!driver_.gate.empty() || !driver_.idle()) {
      if (Driver::get() == nullptr || (within_ms != 0 && std::chrono::steady_clock::now() >= until)) {
        driver_.gate.open();
        return CUDA_ERROR_NOT_READY;
      }
      std::this_thread::sleep_for(Gate::kLook);
    }
    state = CU_PROCESS_STATE_LOCKED;
    return CUDA_SUCCESS;
  }

  /// As cuda-checkpoint's documentation says: managed memory is not supported, and the process is not kept in a good
  /// state.
  CUresult checkpoint() {
    if (driver_.memory.any(MemoryKind::kManaged)) {
      state = CU_PROCESS_STATE_FAILED;
      return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (!driver_.gate.empty()) end_by_access();
    driver_.memory_away = true;
    driver_.memory.move_out();
    state = CU_PROCESS_STATE_CHECKPOINTED;
    return CUDA_SUCCESS;
  }

  CUresult restore() {
    if (!driver_.memory.bring_back()) return CUDA_ERROR_OUT_OF_MEMORY;
    driver_.memory_away = false;
    state = CU_PROCESS_STATE_LOCKED;
    return CUDA_SUCCESS;
  }

  Driver& driver_;
};

/// Calls `ask(table)` for the device's tables until one knows the process.
template <class Ask>
CUresult ask_process(int pid, Ask ask) {
  const Driver* const driver = Driver::get();
  if (driver == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  if (!driver->config.checkpoints) return CUDA_ERROR_NOT_SUPPORTED;
  if (pid <= 0) return CUDA_ERROR_INVALID_VALUE;
  for (const auto& device : driver->devices)
    if (const std::optional<std::uint32_t> answer = ask(*device->table)) return static_cast<CUresult>(*answer);
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

void obey_orders(Driver& driver) {
  Table& table = *driver.devices.front()->table;
  const bool started = start_thread("softgpu-orders", [&driver, &table] {
    for (Obedient obedient(driver); Driver::get() != nullptr;) {
      const Table::Ordered ordered = table.next_order(kLookForOrders);
      if (ordered.order == Order::kNone) continue;
      const CUresult result = obedient.carry_out(ordered);
      table.answer(result, obedient.state);
    }
  });
  if (started) table.obey();
}

CUresult order_process(int pid, Order order, std::uint32_t within_ms) {
  return ask_process(pid,
                     [&](Table& table) { return table.give_order(static_cast<std::uint32_t>(pid), order, within_ms); });
}

CUresult state_of_process(int pid, CUprocessState& state) {
  return ask_process(pid, [&](const Table& table) -> std::optional<std::uint32_t> {
    const auto found = table.state_of(static_cast<std::uint32_t>(pid));
    if (!found) return std::nullopt;
    state = static_cast<CUprocessState>(*found);
    return CUDA_SUCCESS;
  });
}

}  // namespace gpuctl::softgpu
