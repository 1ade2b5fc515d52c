#include "softgpu/device/exit.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "softgpu/device/config.h"

namespace gpuctl::softgpu {
namespace {

std::atomic<int> in_compiler{0};
std::atomic<bool> compiler_is_gone{false};

void end_compiler() {
  compiler_is_gone.store(true);
  if (in_compiler.load() != 0)
    complain_of_late_use("a thread is in the compiler when the compiler's exit handler runs");
}

}  // namespace

void complain_of_late_use(const std::string& what) {
  if (!read_config().strict_exit) return;
  std::fprintf(stderr, "gpuctl software GPU: %s (SOFTGPU_STRICT_EXIT)\n", what.c_str());
  std::abort();
}

void complain_of_lost_stream(const char* call) {
  if (!read_config().strict_streams) return;
  std::fprintf(stderr, "gpuctl software GPU: %s for a stream that is not there (SOFTGPU_STRICT_STREAMS)\n", call);
  std::abort();
}

CompilerUse::CompilerUse() {
  static std::once_flag once;
  std::call_once(once, [] { std::atexit(end_compiler); });
  ++in_compiler;
  if (compiler_is_gone.load()) complain_of_late_use("the compiler is used after its exit handler has run");
}

CompilerUse::~CompilerUse() {
  --in_compiler;
}

}  // namespace gpuctl::softgpu
