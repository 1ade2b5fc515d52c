// The two futex calls on words shared between processes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace gpuctl::softgpu {

/// Sleeps while `word` holds `seen`, at most `timeout`. May return early.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t seen, std::chrono::nanoseconds timeout);

/// Wakes all threads that sleep on `word`, in any process.
void futex_wake(std::atomic<std::uint32_t>& word);

}  // namespace gpuctl::softgpu
