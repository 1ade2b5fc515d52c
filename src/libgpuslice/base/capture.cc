#include "libgpuslice/base/capture.h"

#include <new>

#include "libgpuslice/base/current_context.h"
#include "libgpuslice/base/driver.h"

namespace gpuslice {

bool capturing(CUstream stream) {
  if (!capturing_anything()) return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  // An error means that this is the legacy stream while another stream captures. That launch is left to the driver too.
  return driver().cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/// The thread's own stream, and what it captures, is gone with the thread.
struct Captures::ThreadEnd {
  bool captured = false;
  ~ThreadEnd() {
    if (!captured) return;
    const StreamKey own = stream_key(CU_STREAM_PER_THREAD);
    Captures::get().erase([&](const One& one) { return one.key == own; });
  }
};

Captures& Captures::get() {
  static auto* const instance = new Captures;  // programs capture in destructors too
  return *instance;
}

template <class Which>
void Captures::erase(Which which) {
  std::lock_guard lock(mutex_);
  std::erase_if(captures_, which);
  g_launch_words.captures.store(static_cast<int>(captures_.size()));
}

std::uint64_t Captures::begins(CUstream stream) {
  thread_local ThreadEnd at_end;
  if (stream == CU_STREAM_PER_THREAD) at_end.captured = true;
  const CUcontext context = context_of(stream);
  std::lock_guard beginning(beginning_);
  std::lock_guard lock(mutex_);
  captures_.push_back({++numbers_, context, stream_key(stream)});
  g_launch_words.captures.store(static_cast<int>(captures_.size()));
  return numbers_;
}

void Captures::refused(std::uint64_t capture) {
  erase([&](const One& one) { return one.number == capture; });
}

void Captures::ended(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  const bool goes_on =
      driver().cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
  if (!goes_on) erase([key = stream_key(stream)](const One& one) { return one.key == key; });
}

void Captures::destroyed(CUstream stream) {
  if (any()) erase([key = StreamKey(stream, 0)](const One& one) { return one.key == key; });
}

void Captures::forget(CUcontext context) {
  if (any()) erase([context](const One& one) { return one.context == context; });
}

void Captures::forget_after_fork() {
  new (this) Captures;
  g_launch_words.captures = 0;
}

NoCapture::NoCapture() {
  Captures::get().beginning_.lock_shared();
  none_ = !capturing_anything();
}

NoCapture::~NoCapture() {
  Captures::get().beginning_.unlock_shared();
}

}  // namespace gpuslice
