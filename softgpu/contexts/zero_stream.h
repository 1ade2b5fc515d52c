// The meaning of stream 0 in the calling thread.
#pragma once

namespace gpuctl::softgpu {

/// While an object of this class exists, stream 0 is the per-thread default stream in this thread; otherwise it is the
/// legacy one. Driver::stream resolves every handle, so the variants of the API for per-thread streams need no code of
/// their own.
class PerThreadScope {
 public:
  PerThreadScope() { active_ = true; }
  ~PerThreadScope() { active_ = false; }
  PerThreadScope(const PerThreadScope&) = delete;
  PerThreadScope& operator=(const PerThreadScope&) = delete;

  static bool active() { return active_; }

 private:
  static inline thread_local bool active_ = false;
};

}  // namespace gpuctl::softgpu
