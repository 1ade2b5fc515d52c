// Persistent forms that are not there yet when a program loads their image: they are compiled beside it
// (when_to_compile.h), kept for its next start and, where a second copy of the image does no harm, loaded in addition
// to it.
//
// Loading code blocks in the driver until the device is idle (quiet.h), and here the program did not choose the moment.
// So it is done by the program's own thread, at a launch, when none of its launches is known to be on the GPU; the
// compiling thread never loads anything. A program that has always work on the GPU is held up for it now and then,
// outside of the driver and for no longer than kLongestHold. Until then, and with kernels that are longer for all of
// this start, its launches are those of the original.
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
#include <vector>

#include "libgpuslice/image.h"
#include "libgpuslice/when_to_compile.h"

namespace gpuslice {

struct LoadedImage;

class LateForms : public std::enable_shared_from_this<LateForms> {
 public:
  static constexpr std::chrono::milliseconds kLongestHold{50};
  static constexpr std::chrono::seconds kFirstHoldAfter{1}, kHoldEvery{10};

  /// Begins to compile the text of an image that was just loaded as it is (its text is taken), in the current context,
  /// for now or for the next start.
  static std::shared_ptr<LateForms> begin(const std::shared_ptr<LoadedImage>& image, Compile when);

  /// At a launch: loads them if they are compiled and this is the moment. In the context that the image is loaded in.
  void load_if_idle() {
    if (state_.load(std::memory_order_acquire) == State::kCompiled) load_now_or_never_mind();
  }

  /// Why its kernels are in their original form, in a phrase; null once that is no longer so.
  const char* phrase() const;

 private:
  enum class State {
    kCompiling,
    kCompiled,
    kLoaded,
    kForNextStart,
    kKeptForNextStart,
    kNotKept,
    kRefused,
    kNotStarted
  };

  void compile();
  void load_now_or_never_mind();
  bool this_is_the_moment();
  bool load(LoadedImage& image) const;
  void become(State state);

  std::atomic<State> state_{State::kCompiling};
  std::weak_ptr<LoadedImage> image_;
  CUcontext context_ = nullptr;
  unsigned sm_ = 0;
  std::string text_;  ///< this and the next two until it is compiled: the compiling thread's
  std::vector<ImageKernel> kernels_;
  int max_registers_ = 0;
  std::string compiled_;  ///< in kCompiled
  std::mutex loading_;    ///< guards what follows
  std::chrono::steady_clock::time_point next_hold_{};
};

}  // namespace gpuslice
