// Submits work to streams.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

#include "softgpu/contexts/context.h"

namespace gpuctl::softgpu {

/// Submits an operation and returns the result for the API function: an error only if no thread is left. `waits`: as
/// for Stream::submit.
inline CUresult submit(const std::shared_ptr<Stream>& stream, std::function<void()> operation, bool waits = false) {
  return stream->context()->submit(stream, std::move(operation), waits) != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/// Submits an operation and waits for it. If the context is stopped before the operation has begun, it never begins.
inline CUresult submit_and_wait(const std::shared_ptr<Stream>& stream, std::function<void()> operation) {
  const auto claimed = std::make_shared<std::atomic<bool>>(false);
  const std::uint64_t number = stream->context()->submit(stream, [claimed, operation = std::move(operation)] {
    if (!claimed->exchange(true)) operation();
  });
  if (number == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  if (!stream->wait_unless_stopped(number) && claimed->exchange(true))
    stream->wait(number);  // the operation uses the caller's memory
  return stream->context()->error();
}

}  // namespace gpuctl::softgpu
