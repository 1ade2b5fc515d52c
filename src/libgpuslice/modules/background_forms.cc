#include "libgpuslice/modules/background_forms.h"

#include <thread>
#include <vector>

#include "libgpuslice/agent/contexts.h"
#include "libgpuslice/base/capture.h"
#include "libgpuslice/base/debug.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/base/relaxed_capture.h"
#include "libgpuslice/base/stage.h"
#include "libgpuslice/image/cache_directory.h"
#include "libgpuslice/launch/may_load.h"
#include "libgpuslice/modules/loaded_image.h"
#include "libgpuslice/streams/quiesce.h"

namespace gpuslice {

namespace {

using Clock = std::chrono::steady_clock;

/// When background forms are loaded, the functions of kernels that the program has launched before are loaded too, at
/// most this many.
constexpr std::size_t kMostFunctions = 32;

/// Loads the functions of kernels that the program has launched, at a time when loading is allowed.
void load_functions(LoadedImage& image) {
  Context* context = Contexts::current();
  if (!context) return;
  std::vector<std::shared_ptr<KernelInfo>> launched;
  {
    std::lock_guard lock(image.mutex);
    for (const auto& [name, kernel] : image.kernels) {
      if (kernel->persistent && kernel->launches.load() > 0 && launched.size() < kMostFunctions)
        launched.push_back(kernel);
    }
  }
  for (const auto& kernel : launched) context->load_instance(*kernel);
}

}  // namespace

std::shared_ptr<ImageBackgroundForms> ImageBackgroundForms::begin(const std::shared_ptr<LoadedImage>& image,
                                                                  CompileRequest request) {
  auto forms = std::make_shared<ImageBackgroundForms>();
  forms->image_ = image;
  forms->kept_ = CacheDirectory::of_user().keeps();
  driver().cuCtxGetCurrent(&forms->context_);
  CompileQueue::get().add(std::move(request), [forms](CompileResult result) { forms->compiled(std::move(result)); });
  return forms;
}

const char* ImageBackgroundForms::phrase() const {
  switch (state_.load(std::memory_order_acquire)) {
    case State::kCompiling:
      return "original form until its persistent form is compiled";
    case State::kCompiled:
      return "original form until its persistent form is loaded, which waits for a launch with nothing of the program "
             "on the GPU";
    case State::kForNextStart:
      return "original form; persistent from the next start on (its module has variables)";
    case State::kNotKept:
      return "original form: its module has variables, and its persistent form could not be kept for the next start";
    case State::kRefused:
      return "original form: the driver refused the machine code of its persistent form";
    case State::kNotCompiled:
      return not_compiled_.c_str();
    case State::kLoaded:
    case State::kNone:
      return nullptr;
  }
  return nullptr;
}

/// Called on the thread that found the result. If anything is thrown (out of memory), there are no forms.
void ImageBackgroundForms::compiled(CompileResult result) try {
  const std::shared_ptr<LoadedImage> image = image_.lock();
  if (!image) return;
  if (!result) {
    debug("%s: not compiled: %s", image->label.c_str(), result.error().message.c_str());
    not_compiled_ = "original form: its persistent form was not compiled: " + result.error().message;
    return become(State::kNotCompiled);
  }
  debug("%s: %zu bytes of machine code compiled beside the program", image->label.c_str(), result->code.size());
  const bool alone = result->stands_alone;
  code_ = std::move(result->code);
  image->set_kernels(std::move(result->kernels), std::move(result->reason));
  if (code_.empty()) return become(State::kNone);
  if (!alone) return become(kept_ ? State::kForNextStart : State::kNotKept);
  next_hold_ = Clock::now() + kFirstHoldAfter;
  become(State::kCompiled);
} catch (...) {
  become(State::kNone);
}

void ImageBackgroundForms::become(State state) {
  state_.store(state, std::memory_order_release);
  const std::shared_ptr<LoadedImage> image = image_.lock();
  if (!image) return;
  std::lock_guard lock(image->mutex);
  for (const auto& [name, kernel] : image->kernels) kernel->changed.store(true);
}

/// The caller holds loading_.
bool ImageBackgroundForms::this_is_the_moment() {
  if (may_load_now()) return true;
  if (Clock::now() < next_hold_) return false;
  const Stage stage("holding up a launch, to load what was compiled");
  const auto until = Clock::now() + kLongestHold;
  while (!may_load_now()) {
    if (Clock::now() >= until) {
      next_hold_ = Clock::now() + kHoldEvery;
      return false;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

void ImageBackgroundForms::load_now_or_never_mind() {
  if (capturing_anything()) return;
  std::unique_lock turn(loading_, std::try_to_lock);
  if (!turn.owns_lock() || state_.load() != State::kCompiled) return;
  const std::shared_ptr<LoadedImage> image = image_.lock();
  CUcontext current = nullptr;
  if (!image || driver().cuCtxGetCurrent(&current) != CUDA_SUCCESS ||
      (!image->container.is_library && current != context_))
    return;
  const RelaxedCapture relaxed;
  if (!this_is_the_moment()) return;
  const Stage stage("loading what was compiled beside the program");
  const QuiesceLaunches quiesced;
  if (!quiesced.quiet()) return;
  const bool loaded = image->load_beside(code_, image->listed);
  code_ = {};
  if (loaded) load_functions(*image);
  become(loaded ? State::kLoaded : State::kRefused);
  debug("%s: %s", image->label.c_str(),
        loaded ? "its persistent forms are there" : "the driver refused what it compiled");
}

}  // namespace gpuslice
