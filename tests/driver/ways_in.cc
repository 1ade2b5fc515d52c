// Ways to launch kernels that programs have beside the plain one: ways_in WAY ROUNDS. Each round's results are checked,
// every word.
//
//   contexts     two contexts by turns, each with a module of its own; one is destroyed with work outstanding
//   threads      four threads at once: on the legacy stream, on their own default streams, on streams they made
//   attributes   cuLaunchKernelEx, with attributes and without
//   unload       modules are unloaded while their kernels run
//   free         memory is freed while other kernels run
//   opened       libcuda is opened, and its functions looked up, by hand
//   fork         the process forks before it knows of a GPU, and both use it
//   destructor   the last results are waited for after main(), in a destructor
//
// The last line is "ways_in WAY: R results, W wrong"; exit status 0, or 3 when one was wrong.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "driver.h"
#include "kernels.h"

extern "C" {
CUresult cuLaunchKernel_ptsz(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                             void**, void**);
CUresult cuMemcpyDtoHAsync_v2_ptsz(void*, CUdeviceptr, size_t, CUstream);
CUresult cuStreamSynchronize_ptsz(CUstream);
}

namespace {

constexpr unsigned kThreads = 128;
constexpr unsigned kBlocks = 250;
constexpr unsigned kIterations = 10;
constexpr unsigned kWords = kThreads * kBlocks;

std::atomic<unsigned> results{0}, wrong{0};

CUfunction load(CUmodule* module) {
  CUfunction function = nullptr;
  DRIVER_CHECK(cuModuleLoadData(module, kScramblePtx));
  DRIVER_CHECK(cuModuleGetFunction(&function, *module, "scramble"));
  return function;
}

/// Memory for the results of one launch, in the context that is current, and what they should be.
class Output {
 public:
  Output() { DRIVER_CHECK(cuMemAlloc(&device, sizeof host_)); }

  void** parameters(unsigned seed) {
    seed_ = seed;
    return parameters_;
  }

  void launch(CUfunction kernel, CUstream stream, unsigned seed) {
    DRIVER_CHECK(cuLaunchKernel(kernel, kBlocks, 1, 1, kThreads, 1, 1, 0, stream, parameters(seed), nullptr));
  }

  void* host() { return host_; }
  static constexpr std::size_t kBytes = kWords * sizeof(unsigned);

  void compare() {
    ++results;
    for (unsigned i = 0; i < kWords; ++i) {
      if (host_[i] == scrambled(seed_ + i, kIterations)) continue;
      ++wrong;
      return;
    }
  }

  void fetch_and_compare() {
    DRIVER_CHECK(cuMemcpyDtoH(host_, device, kBytes));
    compare();
  }

  CUdeviceptr device = 0;

 private:
  unsigned seed_ = 0, iterations_ = kIterations;
  void* parameters_[3] = {&device, &seed_, &iterations_};
  unsigned host_[kWords] = {};
};

void contexts(unsigned rounds) {
  for (unsigned round = 0; round < rounds; ++round) {
    CUcontext pair[2] = {};
    CUmodule modules[2] = {};
    CUfunction kernels[2] = {};
    std::vector<Output*> outputs;
    for (unsigned i = 0; i < 2; ++i) {
      DRIVER_CHECK(cuCtxCreate(&pair[i], nullptr, 0, 0));
      kernels[i] = load(&modules[i]);
      outputs.push_back(new Output);
    }
    for (unsigned i : {0u, 1u}) {
      DRIVER_CHECK(cuCtxSetCurrent(pair[i]));
      outputs[i]->launch(kernels[i], nullptr, 2 * round + i);
    }
    for (unsigned i : {0u, 1u}) {
      DRIVER_CHECK(cuCtxSetCurrent(pair[i]));
      outputs[i]->fetch_and_compare();
    }
    outputs[1]->launch(kernels[1], nullptr, round);
    for (unsigned i : {0u, 1u}) DRIVER_CHECK(cuCtxDestroy(pair[i]));
    for (const Output* output : outputs) delete output;
  }
}

void threads(unsigned rounds) {
  use_first_gpu();
  CUmodule module = nullptr;
  const CUfunction kernel = load(&module);
  std::vector<std::thread> all;
  for (unsigned number = 0; number < 4; ++number) {
    all.emplace_back([=] {
      use_first_gpu();
      auto output = std::make_unique<Output>();
      CUstream stream = nullptr;
      if (number >= 2) DRIVER_CHECK(cuStreamCreate(&stream, number == 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
      for (unsigned round = 0; round < rounds; ++round) {
        const unsigned seed = number * 1000 + round;
        if (number == 1) {
          DRIVER_CHECK(cuLaunchKernel_ptsz(kernel, kBlocks, 1, 1, kThreads, 1, 1, 0, nullptr, output->parameters(seed),
                                           nullptr));
          DRIVER_CHECK(cuMemcpyDtoHAsync_v2_ptsz(output->host(), output->device, Output::kBytes, nullptr));
          DRIVER_CHECK(cuStreamSynchronize_ptsz(nullptr));
        } else {
          output->launch(kernel, stream, seed);
          DRIVER_CHECK(cuMemcpyDtoHAsync(output->host(), output->device, Output::kBytes, stream));
          DRIVER_CHECK(cuStreamSynchronize(stream));
        }
        output->compare();
      }
    });
  }
  for (std::thread& thread : all) thread.join();
}

void attributes(unsigned rounds) {
  use_first_gpu();
  CUmodule module = nullptr;
  const CUfunction kernel = load(&module);
  auto output = std::make_unique<Output>();
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  attribute.value.priority = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    CUlaunchConfig config{};
    config.gridDimX = kBlocks;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.blockDimX = kThreads;
    config.attrs = &attribute;
    config.numAttrs = round % 2;
    DRIVER_CHECK(cuLaunchKernelEx(&config, kernel, output->parameters(round), nullptr));
    output->fetch_and_compare();
  }
}

void unload(unsigned rounds) {
  use_first_gpu();
  auto output = std::make_unique<Output>();
  for (unsigned round = 0; round < rounds; ++round) {
    CUmodule module = nullptr;
    const CUfunction kernel = load(&module);
    output->launch(kernel, nullptr, round);
    DRIVER_CHECK(cuModuleUnload(module));
    output->fetch_and_compare();
  }
}

void free_memory(unsigned rounds) {
  use_first_gpu();
  CUmodule module = nullptr;
  const CUfunction kernel = load(&module);
  CUstream stream = nullptr;
  DRIVER_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  auto output = std::make_unique<Output>();
  for (unsigned round = 0; round < rounds; ++round) {
    CUdeviceptr other = 0;
    void* pinned = nullptr;
    DRIVER_CHECK(cuMemAlloc(&other, 1 << 16));
    DRIVER_CHECK(cuMemAllocHost(&pinned, 1 << 12));
    output->launch(kernel, stream, round);
    DRIVER_CHECK(cuMemFree(other));
    DRIVER_CHECK(cuMemFreeHost(pinned));
    DRIVER_CHECK(cuStreamSynchronize(stream));
    output->fetch_and_compare();
  }
}

void opened(unsigned rounds) {
  use_first_gpu();
  CUmodule module = nullptr;
  const CUfunction kernel = load(&module);
  auto output = std::make_unique<Output>();
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  const auto get =
      reinterpret_cast<decltype(&cuGetProcAddress_v2)>(library ? dlsym(library, "cuGetProcAddress_v2") : nullptr);
  const auto by_name =
      reinterpret_cast<decltype(&cuLaunchKernel)>(library ? dlsym(library, "cuLaunchKernel") : nullptr);
  if (!get || !by_name) std::exit(1);
  void* address = nullptr;
  DRIVER_CHECK(get("cuLaunchKernel", &address, CUDA_VERSION, CU_GET_PROC_ADDRESS_DEFAULT, nullptr));
  const decltype(by_name) ways[] = {by_name, reinterpret_cast<decltype(by_name)>(address)};
  for (unsigned round = 0; round < rounds; ++round) {
    DRIVER_CHECK(
        ways[round % 2](kernel, kBlocks, 1, 1, kThreads, 1, 1, 0, nullptr, output->parameters(round), nullptr));
    output->fetch_and_compare();
  }
}

/// Waits in its destructor, which runs when main() is over, but before the driver's own.
struct AtTheEnd {
  ~AtTheEnd() {
    if (!output) return;
    DRIVER_CHECK(cuCtxSynchronize());
    output->fetch_and_compare();
    std::printf("ways_in destructor: %u results, %u wrong\n", results.load(), wrong.load());
    std::fflush(stdout);
    if (wrong != 0) _exit(3);
  }
  std::unique_ptr<Output> output;
};

void destructor(unsigned rounds) {
  use_first_gpu();
  CUmodule module = nullptr;
  const CUfunction kernel = load(&module);
  static AtTheEnd at_the_end;
  at_the_end.output = std::make_unique<Output>();
  for (unsigned round = 0; round < rounds; ++round) at_the_end.output->launch(kernel, nullptr, round);
}

struct Way {
  const char* name;
  void (*run)(unsigned rounds);
};
constexpr Way kWays[] = {{"contexts", contexts},     {"threads", threads},  {"attributes", attributes},
                         {"unload", unload},         {"free", free_memory}, {"opened", opened},
                         {"destructor", destructor}, {"fork", attributes}};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string name = argv[1];
  const auto rounds = static_cast<unsigned>(std::atoi(argv[2]));
  const pid_t child = name == "fork" ? fork() : -1;
  for (const Way& way : kWays) {
    if (name != way.name) continue;
    DRIVER_CHECK(cuInit(0));
    way.run(rounds);
    if (child == 0) _exit(wrong == 0 && results == rounds ? 0 : 3);
    if (name == "destructor") return 0;
    int status = 0;
    if (child > 0 && (waitpid(child, &status, 0) != child || status != 0)) ++wrong;
    std::printf("ways_in %s: %u results, %u wrong\n", name.c_str(), results.load(), wrong.load());
    return wrong == 0 ? 0 : 3;
  }
  return 2;
}
