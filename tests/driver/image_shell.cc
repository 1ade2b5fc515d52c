// A program that loads images and runs their kernels (../cuda/long_image.cu) as it is told, a command a line, and
// answers each with one line.
//
// clang-format off
//   module FILE | library FILE   -> "ok": loaded, as that; what was loaded before stays loaded, but is not used any
//                                more
//   run BLOCKS                   -> "right" or "wrong": scale, compared with what it should give
//   more                         -> "ok": more_1 has run
//   shared BYTES                 -> "ok": so much dynamic shared memory has scale from now on
//   add BLOCKS | total           -> "ok" | the variable's value (a module)
//   hold | release               -> "ok": wait_for is on the GPU from the one to the other
//   wait | go                    -> "ok": a host function, in a stream of its own, waits from the one to the other
//   unload                       -> "ok"
//   fork                         -> exit status of a child that ends at once, by exit()
// clang-format on
// It ends, in good order, with its input.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "driver.h"

namespace {

constexpr unsigned kThreads = 256;

CUmodule module_ = nullptr;
CUlibrary library_ = nullptr;
CUfunction scale = nullptr;
unsigned shared_bytes = 0;
CUstream beside = nullptr;
CUstream waiting = nullptr;
unsigned* flag = nullptr;  // in host memory that wait_for reads

using Arguments = std::istringstream;

template <class Value>
Value next(Arguments& arguments) {
  Value value{};
  if (!(arguments >> value)) {
    std::cerr << "an argument is missing or wrong\n";
    std::exit(2);
  }
  return value;
}

std::vector<char> read_image(Arguments& arguments) {
  std::ifstream file(next<std::string>(arguments), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// By its name in what is loaded.
CUfunction function(const char* name) {
  if (module_) {
    CUfunction found = nullptr;
    DRIVER_CHECK(cuModuleGetFunction(&found, module_, name));
    return found;
  }
  CUkernel found = nullptr;
  DRIVER_CHECK(cuLibraryGetKernel(&found, library_, name));
  return reinterpret_cast<CUfunction>(found);
}

std::string load_module(Arguments& arguments) {
  const std::vector<char> image = read_image(arguments);
  library_ = nullptr;
  DRIVER_CHECK(cuModuleLoadData(&module_, image.data()));
  scale = function("scale");
  return "ok";
}

std::string load_library(Arguments& arguments) {
  const std::vector<char> image = read_image(arguments);
  module_ = nullptr;
  DRIVER_CHECK(cuLibraryLoadData(&library_, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  scale = function("scale");
  return "ok";
}

std::string unload(Arguments&) {
  if (module_) DRIVER_CHECK(cuModuleUnload(module_));
  if (library_) DRIVER_CHECK(cuLibraryUnload(library_));
  module_ = nullptr;
  library_ = nullptr;
  return "ok";
}

std::string run(Arguments& arguments) {
  const auto blocks = next<unsigned>(arguments);
  std::vector<int> in(blocks * kThreads), out(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int>(i * 7 + 1);
  const std::size_t bytes = in.size() * sizeof(int);
  CUdeviceptr from = 0, to = 0;
  DRIVER_CHECK(cuMemAlloc(&from, bytes));
  DRIVER_CHECK(cuMemAlloc(&to, bytes));
  DRIVER_CHECK(cuMemcpyHtoD(from, in.data(), bytes));
  CUstream stream = nullptr;
  DRIVER_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  void* parameters[] = {&from, &to};
  DRIVER_CHECK(cuLaunchKernel(scale, blocks, 1, 1, kThreads, 1, 1, shared_bytes, stream, parameters, nullptr));
  DRIVER_CHECK(cuStreamSynchronize(stream));
  DRIVER_CHECK(cuMemcpyDtoH(out.data(), to, bytes));
  DRIVER_CHECK(cuStreamDestroy(stream));
  bool right = true;
  for (std::size_t i = 0; i < in.size(); ++i) right &= out[i] == in[i] * 3 + static_cast<int>(i / kThreads);
  return right ? "right" : "wrong";  // the memory stays: freeing it waits for what hold put on the GPU
}

std::string more(Arguments&) {
  constexpr unsigned kBlocks = 20;
  CUdeviceptr values = 0;
  CUstream stream = nullptr;
  DRIVER_CHECK(cuMemAlloc(&values, kBlocks * kThreads * sizeof(float)));
  DRIVER_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  void* parameters[] = {&values};
  DRIVER_CHECK(cuLaunchKernel(function("more_1"), kBlocks, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr));
  DRIVER_CHECK(cuStreamSynchronize(stream));
  DRIVER_CHECK(cuStreamDestroy(stream));
  return "ok";
}

std::string shared(Arguments& arguments) {
  shared_bytes = next<unsigned>(arguments);
  DRIVER_CHECK(
      cuFuncSetAttribute(scale, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(shared_bytes)));
  return "ok";
}

std::string add(Arguments& arguments) {
  unsigned amount = 1;
  void* parameters[] = {&amount};
  DRIVER_CHECK(cuLaunchKernel(function("add"), next<unsigned>(arguments), 1, 1, kThreads, 1, 1, 0, nullptr, parameters,
                              nullptr));
  DRIVER_CHECK(cuCtxSynchronize());
  return "ok";
}

std::string total(Arguments&) {
  CUdeviceptr where = 0;
  std::size_t bytes = 0;
  unsigned value = 0;
  DRIVER_CHECK(cuModuleGetGlobal(&where, &bytes, module_, "total"));
  DRIVER_CHECK(cuMemcpyDtoH(&value, where, sizeof value));
  return std::to_string(value);
}

std::string hold(Arguments&) {
  if (!beside) {
    DRIVER_CHECK(cuStreamCreate(&beside, CU_STREAM_NON_BLOCKING));
    DRIVER_CHECK(cuMemHostAlloc(reinterpret_cast<void**>(&flag), sizeof *flag, CU_MEMHOSTALLOC_DEVICEMAP));
  }
  std::atomic_ref(*flag).store(0);
  CUdeviceptr word = 0;
  DRIVER_CHECK(cuMemHostGetDevicePointer(&word, flag, 0));
  void* parameters[] = {&word};
  DRIVER_CHECK(cuLaunchKernel(function("wait_for"), 1, 1, 1, 32, 1, 1, 0, beside, parameters, nullptr));
  return "ok";
}

std::string release(Arguments&) {
  std::atomic_ref(*flag).store(1);
  DRIVER_CHECK(cuStreamSynchronize(beside));
  return "ok";
}

std::atomic<bool> gone_on{false};

std::string wait_for_host(Arguments&) {
  if (!waiting) DRIVER_CHECK(cuStreamCreate(&waiting, CU_STREAM_NON_BLOCKING));
  gone_on = false;
  DRIVER_CHECK(cuLaunchHostFunc(
      waiting,
      [](void*) {
        while (!gone_on) usleep(100);
      },
      nullptr));
  return "ok";
}

std::string go(Arguments&) {
  gone_on = true;
  DRIVER_CHECK(cuStreamSynchronize(waiting));
  return "ok";
}

std::string fork_child(Arguments&) {
  const pid_t child = fork();
  if (child == 0) std::exit(0);
  int status = -1;
  waitpid(child, &status, 0);
  return std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

const std::map<std::string, std::string (*)(Arguments&)> kCommands = {
    {"module", load_module}, {"library", load_library},
    {"unload", unload},      {"run", run},
    {"shared", shared},      {"add", add},
    {"total", total},        {"hold", hold},
    {"release", release},    {"fork", fork_child},
    {"wait", wait_for_host}, {"go", go},
    {"more", more},
};

}  // namespace

int main() {
  DRIVER_CHECK(cuInit(0));
  use_first_gpu();
  for (std::string line; std::getline(std::cin, line);) {
    Arguments words(line);
    const auto command = kCommands.find(next<std::string>(words));
    if (command == kCommands.end()) {
      std::cerr << "unknown command: " << line << '\n';
      return 2;
    }
    std::cout << command->second(words) << std::endl;
  }
  return 0;
}
