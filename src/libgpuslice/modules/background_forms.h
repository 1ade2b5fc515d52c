// Background forms: forms of kernels that are not ready when a program loads their image. The image is loaded
// unchanged, at once. The compile helper makes the forms in the background (compile_queue.h) and keeps them for the
// program's next start. If a second copy of the image does no harm, the forms are also loaded beside the image in this
// start.
//
// Loading code blocks in the driver until the device is idle (quiesce.h), and here the program did not choose the time.
// So the program's own thread loads the code, at a launch, when no work of the program is known to be on the GPU or to
// wait in a stream (may_load.h). This holds for the image and for the functions of its kernels, which the driver loads
// one by one. If a program always has work on the GPU, now and then a launch is held up until its work is done, outside
// of the driver and for at most kLongestHold. Until the forms are loaded, and in all of this start if they cannot be,
// kernels are launched in original form.
//
// A launch sees a form completely or not at all: KernelInfo::persistent is written last. Functions that the program
// holds stay those of the image that it loaded.
#pragma once

#include <cuda.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "libgpuslice/image/compile_queue.h"
#include "libgpuslice/image/kernels.h"

namespace gpuslice {

struct LoadedImage;

class ImageBackgroundForms final : public BackgroundForms, public std::enable_shared_from_this<ImageBackgroundForms> {
 public:
  static constexpr std::chrono::milliseconds kLongestHold{50};
  static constexpr std::chrono::seconds kFirstHoldAfter{1}, kHoldEvery{10};

  /// Begins to compile the PTX of an image that was just loaded unchanged.
  static std::shared_ptr<ImageBackgroundForms> begin(const std::shared_ptr<LoadedImage>& image, CompileRequest request);

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
  bool kept_ = false;         ///< for the program's next start
  std::string not_compiled_;  ///< the phrase in state kNotCompiled
  std::string code_;          ///< machine code, in state kCompiled
  std::mutex loading_;        ///< guards what follows
  std::chrono::steady_clock::time_point next_hold_{};
};

}  // namespace gpuslice
