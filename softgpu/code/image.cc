#include "softgpu/code/image.h"

#include <cstring>
#include <optional>

#include "ptx/container/image.h"
#include "ptx/syntax/parser.h"
#include "softgpu/code/linker.h"
#include "softgpu/device/exit.h"
#include "softgpu/table/device_limits.h"

namespace gpuctl::softgpu {
namespace {

LoadedImage refuse(CUresult result, const Error& error) {
  return {result, error.message, nullptr};
}

/// One line on each kernel the engine cannot run; empty if it runs all.
std::string list_spoilt_kernels(const engine::Program& program) {
  std::string text;
  for (const std::string& name : program.kernel_names()) {
    const Result<const engine::Kernel*> kernel = program.kernel(name);
    if (!kernel.has_error()) continue;
    if (!text.empty()) text += '\n';
    text += name + ": " + kernel.error().message;
  }
  return text;
}

}  // namespace

LoadedImage load_image(const void* image) {
  const Result<ptx::Bytes> bytes = ptx::image_in_memory(image);
  if (bytes.has_error()) return refuse(CUDA_ERROR_INVALID_IMAGE, bytes.error());
  const Result<std::vector<ptx::FatbinEntry>> entries = ptx::read_image(*bytes);
  if (entries.has_error()) return refuse(CUDA_ERROR_INVALID_IMAGE, entries.error());
  std::optional<CompilerUse> use;
  if (!ptx::has_machine_code(*entries, kComputeMajor * 10 + kComputeMinor)) {
    use.emplace();
    take_time_to_compile();
  }
  const Result<std::size_t> chosen = ptx::choose_ptx(*entries, kComputeMajor * 10 + kComputeMinor);
  if (chosen.has_error()) return refuse(CUDA_ERROR_NO_BINARY_FOR_GPU, chosen.error());
  const Result<std::string> text = ptx::ptx_text((*entries)[*chosen]);
  if (text.has_error()) return refuse(CUDA_ERROR_INVALID_IMAGE, text.error());
  const Result<ptx::Module> module = ptx::parse(*text);
  if (module.has_error()) return refuse(CUDA_ERROR_INVALID_PTX, module.error());
  Result<std::shared_ptr<const engine::Program>> program = engine::Program::compile(*module);
  if (program.has_error()) return refuse(CUDA_ERROR_INVALID_PTX, program.error());
  return {CUDA_SUCCESS, list_spoilt_kernels(**program), *program};
}

}  // namespace gpuctl::softgpu
