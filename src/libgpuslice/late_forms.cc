#include "libgpuslice/late_forms.h"

#include <thread>

#include "libgpuslice/background.h"
#include "libgpuslice/cache_directory.h"
#include "libgpuslice/capture.h"
#include "libgpuslice/compiled_image.h"
#include "libgpuslice/context.h"
#include "libgpuslice/debug.h"
#include "libgpuslice/driver.h"
#include "libgpuslice/link_text.h"
#include "libgpuslice/load_image.h"
#include "libgpuslice/modules.h"
#include "libgpuslice/primary_context.h"
#include "libgpuslice/quiet.h"
#include "libgpuslice/relaxed_capture.h"
#include "libgpuslice/stage.h"

namespace gpuslice {

namespace {

using Clock = std::chrono::steady_clock;

/// No launch of the program is known to be on the GPU.
bool idle() {
  for (Context* context : Context::all()) {
    if (!context->idle()) return false;
  }
  return true;
}

}  // namespace

std::shared_ptr<LateForms> LateForms::begin(const std::shared_ptr<LoadedImage>& image, Compile when) {
  auto forms = std::make_shared<LateForms>();
  forms->image_ = image;
  forms->sm_ = device_sm();
  forms->text_ = std::move(image->image.text);
  forms->kernels_ = image->image.kernels;
  forms->max_registers_ = image->image.max_registers;
  forms->state_ = when == Compile::kLater ? State::kCompiling : State::kForNextStart;
  driver().cuCtxGetCurrent(&forms->context_);
  const CUdevice device = current_device();
  auto hold = std::make_shared<PrimaryHold>(forms->context_, device);
  const bool added = Background::get().add({.context = forms->context_,
                                            .device = device,
                                            .run = [forms, hold] { forms->compile(); },
                                            .dropped = [forms] { forms->become(State::kNotStarted); }});
  if (!added) forms->state_ = State::kNotStarted;
  return forms;
}

const char* LateForms::phrase() const {
  switch (state_.load(std::memory_order_acquire)) {
    case State::kCompiling:
      return "original form until its persistent form is compiled";
    case State::kCompiled:
      return "original form until its persistent form is loaded, which waits for a launch with nothing of the program "
             "on the GPU";
    case State::kLoaded:
      return nullptr;
    case State::kForNextStart:
      return "original form; persistent from the next start on (its module has variables), once it is compiled";
    case State::kKeptForNextStart:
      return "original form; persistent from the next start on (its module has variables)";
    case State::kNotKept:
      return "original form: its module has variables, and its persistent form could not be kept for the next start";
    case State::kRefused:
      return "original form: the driver's linker refused the rewritten PTX; loaded as a whole at the next start";
    case State::kNotStarted:
      return "original form: its persistent form was not compiled before its context ended, or no thread could be "
             "started";
  }
  return nullptr;
}

/// The compiling thread's. Whatever is thrown (out of memory) means that there are none.
void LateForms::compile() try {
  const Stage stage("compiling beside the program");
  const Stopwatch watch;
  int version = 0;
  const CacheDirectory& cache = CacheDirectory::of_user();
  if (driver().cuCtxSetCurrent(context_) != CUDA_SUCCESS || driver().cuDriverGetVersion(&version) != CUDA_SUCCESS)
    return become(State::kRefused);
  const RelaxedCapture relaxed;
  const CompileKey key{.text = text_, .driver_version = version, .sm = sm_, .max_registers = max_registers_};
  std::optional<std::string> made = find_compiled(key, cache);  // another copy of the image, or another process
  if (made && made->empty()) made.reset();
  bool kept = made.has_value();
  if (!made) {
    gpuctl::Result<std::string> linked = link_text(text_, kernels_, max_registers_);
    if (!linked) {
      debug("not compiled: %s", linked.error().message.c_str());
      keep_compiled(key, {}, cache);  // the next start need not try, but leaves it to the load
      return become(State::kRefused);
    }
    made = std::move(*linked);
    kept = keep_compiled(key, *made, cache);
  }
  debug("%zu bytes of rewritten text compiled beside the program in %lld us, %s", text_.size(), watch.us(),
        kept ? "kept" : "not kept");
  text_ = {};
  if (state_ == State::kForNextStart) return become(kept ? State::kKeptForNextStart : State::kNotKept);
  compiled_ = std::move(*made);
  next_hold_ = Clock::now() + kFirstHoldAfter;
  become(State::kCompiled);
} catch (...) {
  become(State::kRefused);
}

void LateForms::become(State state) {
  state_.store(state, std::memory_order_release);
  const std::shared_ptr<LoadedImage> image = image_.lock();
  if (!image) return;
  std::lock_guard lock(image->mutex);
  for (const auto& [name, kernel] : image->kernels) kernel->changed.store(true);
}

/// With loading_.
bool LateForms::this_is_the_moment() {
  if (idle()) return true;
  if (Clock::now() < next_hold_) return false;
  const Stage stage("holding up a launch, to load what was compiled");
  const auto until = Clock::now() + kLongestHold;
  while (!idle()) {
    if (Clock::now() >= until) {
      next_hold_ = Clock::now() + kHoldEvery;
      return false;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

void LateForms::load_now_or_never_mind() {
  if (capturing_anything()) return;
  std::unique_lock turn(loading_, std::try_to_lock);
  if (!turn.owns_lock() || state_.load() != State::kCompiled) return;
  const std::shared_ptr<LoadedImage> image = image_.lock();
  CUcontext current = nullptr;
  if (!image || driver().cuCtxGetCurrent(&current) != CUDA_SUCCESS || (image->module && current != context_)) return;
  const RelaxedCapture relaxed;
  if (!this_is_the_moment()) return;
  const Stage stage("loading what was compiled beside the program");
  const Quiet quiet;
  const bool loaded = load(*image);
  compiled_ = {};
  become(loaded ? State::kLoaded : State::kRefused);
  debug("%s: %s", image->image.label.c_str(),
        loaded ? "its persistent forms are there" : "the driver refused what it compiled");
}

/// Nothing of the image is changed where this fails.
bool LateForms::load(LoadedImage& image) const {
  const Driver& d = driver();
  CUlibrary library = nullptr;
  CUmodule module = nullptr;
  const CUresult result =
      image.library ? d.cuLibraryLoadData(&library, compiled_.data(), nullptr, nullptr, 0, nullptr, nullptr, 0)
                    : d.cuModuleLoadDataEx(&module, compiled_.data(), 0, nullptr, nullptr);
  if (result != CUDA_SUCCESS) return false;
  if (!persistent_forms_load(image.image.kernels, library, module)) {
    if (library) d.cuLibraryUnload(library);
    if (module) d.cuModuleUnload(module);
    return false;
  }
  std::lock_guard lock(image.mutex);
  image.forms_library = library;
  image.forms_module = module;
  for (const auto& [name, kernel] : image.kernels) image.find_form(*kernel);
  return true;
}

}  // namespace gpuslice
