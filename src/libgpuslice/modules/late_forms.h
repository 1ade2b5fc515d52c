// Forms of kernels that are not there yet when a program loads their image. The image is loaded as it is, at once; the
// compile helper makes the forms beside the program (compile_queue.h) and keeps them for its next start. Where a second
// copy of the image does no harm, they are also loaded in addition to it, in this start.
//
// Loading code blocks in the driver until the device is idle (quiet.h), and here the program did not choose the moment.
// So the program's own thread does it, at a launch, when nothing of the program is known to be on the GPU or to wait in
// a stream (may_load.h). That goes for the image and for the functions of its kernels, which the driver loads one by
// one. A program that always has work on the GPU is held up for it now and then, outside of the driver and for no
// longer than kLongestHold. Until then, and with kernels that are longer for all of this start, its launches are those
// of the original.
//
// A launch sees a form or it does not: KernelInfo::persistent is written last. Functions that the program has stay
// those of the image it loaded.
#pragma once

#include <cuda.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "libgpuslice/compile/compile_queue.h"
#include "libgpuslice/kernels/kernels.h"

namespace gpuslice {

struct LoadedImage;

class LateForms final : public ComingForms, public std::enable_shared_from_this<LateForms> {
 public:
  static constexpr std::chrono::milliseconds kLongestHold{50};
  static constexpr std::chrono::seconds kFirstHoldAfter{1}, kHoldEvery{10};

  /// Begins to compile the PTX of an image that was just loaded as it is. `kept`: what is compiled is kept for the next
  /// start.
  static std::shared_ptr<LateForms> begin(const std::shared_ptr<LoadedImage>& image, CompileJob job, bool kept);

  void load_if_idle() override {
    if (state_.load(std::memory_order_acquire) == State::kCompiled) load_now_or_never_mind();
  }

  const char* phrase() const override;

 private:
  enum class State { kCompiling, kCompiled, kLoaded, kForNextStart, kNotKept, kRefused, kNone, kNotCompiled };

  void compiled(CompileResult result);
  void load_now_or_never_mind();
  bool this_is_the_moment();
  void become(State state);

  std::atomic<State> state_{State::kCompiling};
  std::weak_ptr<LoadedImage> image_;
  CUcontext context_ = nullptr;
  bool kept_ = false;
  std::string not_compiled_;  ///< the phrase of kNotCompiled
  std::string code_;          ///< in kCompiled
  std::mutex loading_;        ///< guards what follows
  std::chrono::steady_clock::time_point next_hold_{};
};

}  // namespace gpuslice
