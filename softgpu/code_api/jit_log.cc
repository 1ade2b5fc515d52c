#include "softgpu/code_api/jit_log.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace gpuctl::softgpu {

JitLog::JitLog(unsigned count, const CUjit_option* options, void** values) {
  if (options == nullptr || values == nullptr) return;
  for (unsigned i = 0; i < count; ++i) {
    const auto number = static_cast<std::size_t>(static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(values[i])));
    switch (options[i]) {
      case CU_JIT_ERROR_LOG_BUFFER:
        error_.text = static_cast<char*>(values[i]);
        break;
      case CU_JIT_INFO_LOG_BUFFER:
        info_.text = static_cast<char*>(values[i]);
        break;
      case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        error_.bytes = number;
        error_.used = &values[i];
        break;
      case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        info_.bytes = number;
        info_.used = &values[i];
        break;
      default:
        break;
    }
  }
}

void JitLog::Buffer::fill(std::string_view message) const {
  std::size_t length = 0;
  if (text != nullptr && bytes > 0) {
    length = std::min(message.size(), bytes - 1);
    std::memcpy(text, message.data(), length);
    text[length] = '\0';
  }
  if (used != nullptr) *used = reinterpret_cast<void*>(length);
}

void JitLog::write(const LoadedImage& image) const {
  const bool loaded = image.program != nullptr;
  error_.fill(loaded ? std::string_view() : image.message);
  info_.fill(loaded ? image.message : std::string_view());
}

CUresult missing_function(const Module& module, std::string_view name) {
  const auto& names = module.program->kernel_names();
  const bool exists = std::find(names.begin(), names.end(), name) != names.end();
  return exists ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_NOT_FOUND;
}

}  // namespace gpuctl::softgpu
