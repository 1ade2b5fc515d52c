#include "runner.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kernels/run/driver.h"
#include "polling.h"
#include "rng.h"

namespace gpuctl::random_kernels {
namespace {

constexpr std::size_t kMostWords = std::size_t{1} << 20;  // more than a module uses
constexpr std::size_t kCellsAt = kSumsWords + kInputWords;

/// FNV-1a over words.
void add_to_hash(std::uint64_t& hash, const std::uint32_t* words, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) hash = (hash ^ words[i]) * 0x100000001b3u;
}

}  // namespace

Runner::Runner(Calls calls) : calls_(calls), words_(kMostWords), fill_(kMostWords), read_(kMostWords) {
  CUcontext context = nullptr;
  CUDA_CALL(cuInit, 0);
  CUDA_CALL(cuDevicePrimaryCtxRetain, &context, 0);
  CUDA_CALL(cuCtxSetCurrent, context);
  CUDA_CALL(cuStreamCreate, &stream_, CU_STREAM_NON_BLOCKING);
  CUDA_CALL(cuMemAlloc_v2, &memory_, words_ * sizeof(std::uint32_t));
  Rng rng(1);
  for (std::uint32_t& word : fill_) word = static_cast<std::uint32_t>(rng.bits());
}

Runner::Loaded Runner::load(const RandomModule& module) const {
  Loaded loaded;
  std::size_t bytes = 0;
  CUDA_CALL(cuModuleLoadData, &loaded.module, module.ptx.c_str());
  CUDA_CALL(cuModuleGetGlobal_v2, &loaded.tally, &bytes, loaded.module, kTallyName);
  for (const KernelShape& shape : module.kernels) {
    loaded.functions.emplace_back();
    CUDA_CALL(cuModuleGetFunction, &loaded.functions.back(), loaded.module, shape.name.c_str());
  }
  return loaded;
}

// In the kernels' stream: a copy of a few words in the default stream may return before they are there.
void Runner::fill(const Loaded& loaded) {
  CUDA_CALL(cuMemcpyHtoDAsync_v2, memory_, fill_.data(), used_ * sizeof(std::uint32_t), stream_);
  CUDA_CALL(cuMemcpyHtoDAsync_v2, loaded.tally, fill_.data(), kTallyWords * sizeof(std::uint32_t), stream_);
}

// Parameters go to the driver as pointers or, packed, as a buffer: programs do either.
void Runner::launch(CUfunction function, const KernelShape& shape, bool packed) const {
  constexpr std::size_t kWord = sizeof(std::uint32_t);
  std::vector<Argument> arguments = {{8, memory_ + kCellsAt * kWord}, {8, memory_}, {8, memory_ + kSumsWords * kWord}};
  arguments.insert(arguments.end(), shape.arguments.begin(), shape.arguments.end());
  std::vector<void*> pointers;
  std::vector<std::byte> buffer;
  for (Argument& argument : arguments) {
    pointers.push_back(&argument.value);
    const std::size_t at = (buffer.size() + argument.bytes - 1) / argument.bytes * argument.bytes;
    buffer.resize(at + argument.bytes);
    std::memcpy(buffer.data() + at, &argument.value, argument.bytes);
  }
  std::size_t size = buffer.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  CUDA_CALL(cuLaunchKernel, function, shape.grid[0], shape.grid[1], shape.grid[2], shape.block[0], shape.block[1],
            shape.block[2], shape.dynamic_shared_bytes, stream_, packed ? nullptr : pointers.data(),
            packed ? extra : nullptr);
}

std::uint64_t Runner::hash(const Loaded& loaded) {
  CUDA_CALL(cuStreamSynchronize, stream_);
  std::uint64_t result = 0xcbf29ce484222325u;
  CUDA_CALL(cuMemcpyDtoH_v2, read_.data(), memory_, used_ * sizeof(std::uint32_t));
  add_to_hash(result, read_.data(), used_);
  CUDA_CALL(cuMemcpyDtoH_v2, read_.data(), loaded.tally, kTallyWords * sizeof(std::uint32_t));
  add_to_hash(result, read_.data(), kTallyWords);
  return result;
}

void Runner::run(std::uint64_t seed, const Found& found) {
  const RandomModule module = generate(seed, calls_);
  const Loaded loaded = load(module);
  std::size_t threads = 0;
  for (const KernelShape& shape : module.kernels) threads = std::max<std::size_t>(threads, shape.threads());
  used_ = kCellsAt + threads * kCellsPerThread;
  if (used_ > words_) throw bench::Failure("a kernel has more threads than there are cells");
  const bool packed = seed % 2 == 1;
  for (std::size_t i = 0; i < module.kernels.size(); ++i) {
    fill(loaded);
    launch(loaded.functions[i], module.kernels[i], packed);
    found(module.kernels[i].name, hash(loaded));
  }
  fill(loaded);
  for (std::size_t i = 0; i < 2 * module.kernels.size(); ++i) {
    launch(loaded.functions[i % module.kernels.size()], module.kernels[i % module.kernels.size()], packed);
  }
  found("together", hash(loaded));
  if (seed % 2 == 1) CUDA_CALL(cuModuleUnload, loaded.module);
}

void Runner::run_polling(std::uint64_t seed, const Found& found) {
  for (const bool waits : {true, false}) {
    const PollingKernel kernel = make_polling(seed, waits);
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    CUDA_CALL(cuModuleLoadData, &module, kernel.ptx.c_str());
    CUDA_CALL(cuModuleGetFunction, &function, module, kPollingName);
    int device = 0, sms = 0, per_sm = 0;
    CUDA_CALL(cuDeviceGet, &device, 0);
    CUDA_CALL(cuDeviceGetAttribute, &sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    CUDA_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, &per_sm, function, 32, 0);
    std::vector<std::uint32_t> words(1 + 2 * kPollingWords, 0);
    words[kPollingWords] = 1;
    CUDA_CALL(cuMemcpyHtoDAsync_v2, memory_, words.data(), words.size() * sizeof words[0], stream_);
    CUdeviceptr arrived = memory_, from = memory_ + sizeof words[0];
    void* parameters[] = {&arrived, &from};
    // A twin has more blocks, so that it is evicted too.
    const auto blocks = static_cast<unsigned>(sms * per_sm) * (waits ? 1 : 4);
    CUDA_CALL(cuLaunchKernel, function, blocks, 1, 1, 32, 1, 1, 0, stream_, parameters, nullptr);
    CUDA_CALL(cuStreamSynchronize, stream_);
    CUDA_CALL(cuMemcpyDtoH_v2, words.data(), memory_, words.size() * sizeof words[0]);
    std::uint64_t result = 0xcbf29ce484222325u;
    add_to_hash(result, words.data(), words.size());
    found(waits ? "waits" : "twin", result);
    CUDA_CALL(cuModuleUnload, module);
  }
}

}  // namespace gpuctl::random_kernels
