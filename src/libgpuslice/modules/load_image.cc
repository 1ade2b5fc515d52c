#include "libgpuslice/modules/load_image.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

#include "libgpuslice/client/client.h"
#include "libgpuslice/compile/compile_queue.h"
#include "libgpuslice/driver/debug.h"
#include "libgpuslice/driver/dlsym.h"
#include "libgpuslice/driver/driver.h"
#include "libgpuslice/driver/nothrow.h"
#include "libgpuslice/driver/stage.h"
#include "libgpuslice/front_ends/jit_options.h"
#include "libgpuslice/kernels/guard.h"
#include "libgpuslice/modules/background_forms.h"
#include "libgpuslice/streams/quiesce.h"

namespace gpuslice {

using gpuctl::fail;
using gpuctl::Result;

namespace {

unsigned sm_of(CUdevice device) {
  int major = 0, minor = 0;
  driver().cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  driver().cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  return static_cast<unsigned>(major * 10 + minor);
}

/// Whether all devices have the same architecture. Libraries are loaded for all devices, so code compiled for one must
/// run on all.
bool devices_are_alike() {
  int count = 0;
  if (driver().cuDeviceGetCount(&count) != CUDA_SUCCESS) return false;
  for (CUdevice device = 1; device < count; ++device) {
    if (sm_of(device) != sm_of(0)) return false;
  }
  return true;
}

CUdevice current_device() {
  CUdevice device = 0;
  if (driver().cuCtxGetDevice(&device) != CUDA_SUCCESS) driver().cuDeviceGet(&device, 0);
  return device;
}

/// GPUSLICE_BACKGROUND=0: the program waits until its kernels are compiled, so that its first launches can be evicted
/// too.
bool waits_for_compiling() {
  static const bool waits = [] {
    const char* wanted = std::getenv("GPUSLICE_BACKGROUND");
    return wanted && std::strcmp(wanted, "0") == 0;
  }();
  return waits;
}

/// The software GPU has a function whose name no driver has.
bool is_software_gpu() {
  static const bool software = libcuda_function("cuSoftwareGpu") != nullptr;
  return software;
}

/// Path of the loaded library that the helper is to compile with: the software GPU's driver, or an nvJitLink, such as
/// PyTorch's wheels contain. Empty: there is none.
std::string loaded_linker() {
  struct Search {
    std::string_view part;
    std::string found;
  } search{is_software_gpu() ? "/libcuda.so" : "/libnvJitLink.so", {}};
  dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void* result) {
        auto& wanted = *static_cast<Search*>(result);
        if (std::string_view(library->dlpi_name).find(wanted.part) == std::string_view::npos) return 0;
        wanted.found = library->dlpi_name;
        return 1;
      },
      &search);
  return search.found;
}

/// What the compile helper must make of the image, or an error that says why its kernels have no other form.
Result<CompileRequest> request_for(const ImageToLoad& image, std::string& label) {
  ImagePtx ptx = ptx_of_image(image.data, image.size, device_sm());
  label = ptx.label;
  if (ptx.text.empty()) return fail(ptx.reason);
  const std::optional<int> limit = register_limit_of(image.count, image.options, image.values);
  if (!limit) return fail("loaded with options of the program that shape the code");
  if (!devices_are_alike()) return fail("the GPUs here are of several architectures");
  int version = 0;
  driver().cuDriverGetVersion(&version);
  CompileRequest request{.ptx = std::move(ptx.text),
                         .key = {},
                         .sm = device_sm(),
                         .max_registers = *limit != 0 ? *limit : ptx.max_registers,
                         .guards = guard() != Guard::kNever,
                         .software_gpu = is_software_gpu(),
                         .linker = {}};
  request.key = cache_key({.ptx = request.ptx,
                           .sm = request.sm,
                           .max_registers = request.max_registers,
                           .driver_version = version,
                           .guards = request.guards});
  return {boost::system::in_place_value, std::move(request)};
}

/// Makes a job for the helper. The linker is looked for here, and not at each load, because only jobs need it.
Result<CompileJob> job_for(CompileRequest request) {
  request.linker = loaded_linker();
  return CompileJob::create(request);
}

/// The forms, if they were compiled before or the program waits for them.
std::optional<Forms> forms_now(const CompileRequest& request, const CacheDirectory& cache) {
  if (std::optional<Forms> kept = find_forms(request.key, cache)) return kept;
  if (!waits_for_compiling()) return std::nullopt;
  const Stage stage("waiting for the compile helper");
  Result<CompileJob> job = job_for(request);
  if (!job) return std::nullopt;
  CompileResult made = CompileQueue::compile_and_wait(std::move(*job));
  if (made) return std::move(*made);
  return Forms{.code = {}, .kernels = {}, .reason = "not compiled: " + made.error().message};
}

void set_handle(LoadedImage& image, void* handle, bool is_library) {
  if (is_library)
    image.library = static_cast<CUlibrary>(handle);
  else
    image.module = static_cast<CUmodule>(handle);
}

/// Loads the code with all forms in place of the image. Null if the driver refuses it.
void* load_forms(LoadedImage& image, const Forms& forms, bool is_library, const ImageCalls& calls) {
  const Stage stage("the driver's loading of what was compiled before");
  void* handle = nullptr;
  if (calls.load(&handle, forms.code.data()) != CUDA_SUCCESS) return nullptr;
  set_handle(image, handle, is_library);
  if (persistent_forms_load(forms.kernels, image.library, image.module)) return handle;
  calls.unload(handle);
  set_handle(image, nullptr, is_library);
  return nullptr;
}

/// Loads the code with all forms beside the image, which is loaded unchanged and still answers everything that the
/// program asks of it. The caller holds QuiesceLaunches, which covers this load too.
bool load_forms_beside(LoadedImage& image, const Forms& forms, bool is_library) {
  const Stage stage("the driver's loading of what was compiled before, beside the image");
  return image.load_forms(forms.code, forms.kernels, is_library);
}

/// Starts the compile helper on the forms of an image that was loaded unchanged.
void compile_later(const std::shared_ptr<LoadedImage>& image, const CompileRequest& request, bool kept) {
  Result<CompileJob> job = job_for(request);
  if (job)
    image->background = ImageBackgroundForms::begin(image, std::move(*job), kept);
  else
    image->reason = job.error().message;
}

}  // namespace

CUresult load_image(void** out, const ImageToLoad& asked, const ImageCalls& calls) {
  if (!Client::get().wanted() || !out || !asked.data) return calls.plain();
  return nothrow([&] {
    const Stage stage("loading an image");
    const QuiesceLaunches quiesced;
    const Stopwatch watch;
    const CacheDirectory& cache = CacheDirectory::of_user();
    auto image = std::make_shared<LoadedImage>();
    const Result<CompileRequest> request = request_for(asked, image->label);
    std::optional<Forms> forms = request ? forms_now(*request, cache) : std::nullopt;
    const long long looked_us = watch.us();
    const bool wanted = forms && !forms->code.empty();
    const bool beside = wanted && forms->stands_alone;
    void* handle = wanted && !beside ? load_forms(*image, *forms, asked.is_library, calls) : nullptr;
    image->has_forms = handle != nullptr;
    if (!handle) {
      const CUresult result = calls.plain();
      if (result == CUDA_SUCCESS) {
        set_handle(*image, handle = *out, asked.is_library);
      } else if (beside && is_software_gpu()) {  // it cannot run GPU code, so the forms replace it
        handle = load_forms(*image, *forms, asked.is_library, calls);
        image->has_forms = handle != nullptr;
      }
      if (!handle) return result;
    }
    if (forms) {
      const bool loaded = image->has_forms || (beside && load_forms_beside(*image, *forms, asked.is_library));
      if (wanted && !loaded) forms->reason = "the driver refused the machine code of its other forms";
      image->set_kernels(std::move(forms->kernels), std::move(forms->reason));
    } else if (request) {
      compile_later(image, *request, cache.keeps());
    } else {
      image->reason = request.error().message;
    }
    debug("%s: looked at for %lld us, loaded %s in %lld us%s%s", image->label.c_str(), looked_us,
          image->has_forms ? "with its other forms" : "as it is", watch.us() - looked_us,
          image->reason.empty() ? "" : ": ", image->reason.c_str());
    *out = handle;
    Modules::get().add(handle, image);
    return CUDA_SUCCESS;
  });
}

unsigned device_sm() {
  return sm_of(current_device());
}

std::optional<std::vector<char>> read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  bytes.push_back('\0');
  return bytes;
}

}  // namespace gpuslice
