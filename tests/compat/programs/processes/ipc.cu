// compat: memory and events shared between two processes
// needs: two-processes ipc
#include "process.h"

namespace {

constexpr int kCount = 1 << 18, kDepth = 300, kRounds = 50;

template <typename T>
std::string hex_of(const T& value) {
  std::string text;
  char two[3];
  for (std::size_t i = 0; i < sizeof value; ++i) {
    std::snprintf(two, sizeof two, "%02x", reinterpret_cast<const unsigned char*>(&value)[i]);
    text += two;
  }
  return text;
}

template <typename T>
T from_hex(const char* text) {
  T value;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    const char two[3] = {text[2 * i], text[2 * i + 1], 0};
    reinterpret_cast<unsigned char*>(&value)[i] = static_cast<unsigned char>(std::strtoul(two, nullptr, 16));
  }
  return value;
}

/// Goes on with the parent's numbers behind the parent's event, and records its own.
int child(char** words) {
  unsigned* data = nullptr;
  cudaEvent_t ready, done;
  cudaStream_t stream;
  void* opened = nullptr;
  CHECK(cudaIpcOpenMemHandle(&opened, from_hex<cudaIpcMemHandle_t>(words[0]), cudaIpcMemLazyEnablePeerAccess));
  CHECK(cudaIpcOpenEventHandle(&ready, from_hex<cudaIpcEventHandle_t>(words[1])));
  CHECK(cudaIpcOpenEventHandle(&done, from_hex<cudaIpcEventHandle_t>(words[2])));
  data = static_cast<unsigned*>(opened);
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamWaitEvent(stream, ready, 0));
  for (unsigned round = kRounds; round < 2 * kRounds; ++round) launch_mix(data, kCount, round, kDepth, stream);
  CHECK(cudaEventRecord(done, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaIpcCloseMemHandle(opened));
  CHECK(cudaEventDestroy(ready));
  CHECK(cudaEventDestroy(done));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 5) return child(argv + 2);
  unsigned* data = nullptr;
  cudaEvent_t ready, done;
  cudaStream_t stream;
  cudaIpcMemHandle_t memory;
  cudaIpcEventHandle_t ready_handle, done_handle;
  CHECK(cudaMalloc(&data, kCount * sizeof(unsigned)));
  CHECK(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming | cudaEventInterprocess));
  CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming | cudaEventInterprocess));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaIpcGetMemHandle(&memory, data));
  CHECK(cudaIpcGetEventHandle(&ready_handle, ready));
  CHECK(cudaIpcGetEventHandle(&done_handle, done));
  number_kernel<<<blocks_for(kCount), 256, 0, stream>>>(data, kCount);
  for (unsigned round = 0; round < kRounds; ++round) launch_mix(data, kCount, round, kDepth, stream);
  CHECK(cudaEventRecord(ready, stream));
  const std::vector<std::string> words = {"child", hex_of(memory), hex_of(ready_handle), hex_of(done_handle)};
  const pid_t pid = fork();
  if (pid == 0) exec_self(words);
  print_end("child", pid);
  CHECK(cudaStreamWaitEvent(stream, done, 0));
  CHECK(cudaStreamSynchronize(stream));
  checked_results("shared", data, kCount, 2 * kRounds, kDepth);
  CHECK(cudaFree(data));
  return 0;
}
