// No exception reaches the program, and none of the program's comes in between.
#pragma once

#include <cuda.h>
#include <pthread.h>

#include <concepts>
#include <type_traits>

namespace gpuslice {

/// While it lives the program cannot cancel this thread (pthread_cancel). The C library would do so where we wait, with
/// locks of ours held, by an exception that nobody may catch. What was asked meanwhile happens at the next place where
/// the program's own code waits.
class NotCancelled {
 public:
  NotCancelled() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NotCancelled() { pthread_setcancelstate(before_, nullptr); }
  NotCancelled(const NotCancelled&) = delete;
  NotCancelled& operator=(const NotCancelled&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

/// Runs `body`. If it throws (out of memory), returns `otherwise`.
template <class Body>
std::invoke_result_t<Body> nothrow(Body body, std::invoke_result_t<Body> otherwise) noexcept {
  const NotCancelled whole;
  try {
    return body();
  } catch (...) {
    return otherwise;
  }
}

/// The same for what answers as the driver does: CUDA_ERROR_OUT_OF_MEMORY.
template <class Body>
requires std::same_as<std::invoke_result_t<Body>, CUresult> CUresult nothrow(Body body)
noexcept {
  return nothrow(body, CUDA_ERROR_OUT_OF_MEMORY);
}

}  // namespace gpuslice
