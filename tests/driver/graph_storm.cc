// CUDA graphs with long kernels, launched again and again: graph_storm ROUNDS, or graph_storm 0 for until SIGTERM. Two
// threads, each with a stream and all kinds of graphs below; every word that a graph leaves is checked. A line for each
// kind, "KIND: R results, W wrong"; exit status 0, or 3 when one was wrong.
//
// graph_storm long BLOCKS: one launch of one graph, of two kernels of so many blocks; "started" on stderr once it is
// issued.
#include <atomic>
#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "driver.h"
#include "graph_kernels.h"

namespace {

constexpr unsigned kThreads = 128;
constexpr unsigned kBlocks = 250;
constexpr unsigned kIterations = 12;

std::atomic<bool> over{false};
CUfunction step_kernel, combine_kernel, waiting_kernel;
CUdeviceptr flag;  // is 1

using Words = std::vector<unsigned>;

/// Done when it returns, whatever other threads capture meanwhile.
void set(CUdeviceptr device, unsigned value, unsigned words) {
  DRIVER_CHECK(cuMemsetD32Async(device, value, words, CU_STREAM_PER_THREAD));
  DRIVER_CHECK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

/// Memory of the GPU and a page-locked copy of it, of as many words as threads.
struct Buffer {
  explicit Buffer(unsigned blocks = kBlocks) : words(blocks * kThreads) {
    DRIVER_CHECK(cuMemAlloc(&device, words * sizeof(unsigned)));
    void* memory = nullptr;
    DRIVER_CHECK(cuMemAllocHost(&memory, words * sizeof(unsigned)));
    host = static_cast<unsigned*>(memory);
    set(device, 0, words);
  }
  void fill(unsigned value) {
    for (unsigned i = 0; i < words; ++i) host[i] = value + i;
  }
  bool holds(const Words& expected) const { return std::equal(expected.begin(), expected.end(), host); }

  unsigned words;
  CUdeviceptr device = 0;
  unsigned* host = nullptr;
};

void upload(Buffer& buffer, CUstream stream) {
  DRIVER_CHECK(cuMemcpyHtoDAsync(buffer.device, buffer.host, buffer.words * sizeof(unsigned), stream));
}
void download(Buffer& buffer, CUstream stream) {
  DRIVER_CHECK(cuMemcpyDtoHAsync(buffer.host, buffer.device, buffer.words * sizeof(unsigned), stream));
}
void step(Buffer& buffer, unsigned add, CUstream stream, unsigned iterations = kIterations) {
  void* parameters[] = {&buffer.device, &add, &iterations};
  DRIVER_CHECK(
      cuLaunchKernel(step_kernel, buffer.words / kThreads, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr));
}
void wait_and_step(Buffer& buffer, unsigned add, CUstream stream) {
  unsigned iterations = kIterations;
  void* parameters[] = {&buffer.device, &add, &iterations, &flag};
  DRIVER_CHECK(
      cuLaunchKernel(waiting_kernel, buffer.words / kThreads, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr));
}
void combine(Buffer& buffer, Buffer& other, CUstream stream) {
  void* parameters[] = {&buffer.device, &other.device};
  DRIVER_CHECK(
      cuLaunchKernel(combine_kernel, buffer.words / kThreads, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr));
}
void step(Words& words, unsigned add) {
  for (unsigned& word : words) word = scrambled(word + add, kIterations);
}
Words counted_from(unsigned value) {
  Words words(kBlocks * kThreads);
  for (unsigned i = 0; i < words.size(); ++i) words[i] = value + i;
  return words;
}

CUgraph capture(CUstream stream, const std::function<void()>& work) {
  CUgraph graph = nullptr;
  DRIVER_CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  work();
  DRIVER_CHECK(cuStreamEndCapture(stream, &graph));
  return graph;
}
/// The graph is destroyed at once: a program need not keep it.
CUgraphExec instantiate_and_destroy(CUgraph graph) {
  CUgraphExec executable = nullptr;
  DRIVER_CHECK(cuGraphInstantiate(&executable, graph, 0));
  DRIVER_CHECK(cuGraphDestroy(graph));
  return executable;
}

/// One kind of graph; a round launches it and says whether the result is right.
class Kind {
 public:
  explicit Kind(CUstream on) : stream(on) {}
  virtual ~Kind() = default;
  virtual bool round(unsigned seed) = 0;

 protected:
  void launch(CUgraphExec executable) const { DRIVER_CHECK(cuGraphLaunch(executable, stream)); }
  void wait() const { DRIVER_CHECK(cuStreamSynchronize(stream)); }
  CUstream stream;
};

/// Launched three times without a wait, each time on what the one before left, with an ordinary launch in between.
class Chain : public Kind {
 public:
  explicit Chain(CUstream on) : Kind(on), expected_(kBlocks * kThreads) {
    executable_ = instantiate_and_destroy(capture(stream, [&] {
      step(state_, 1, stream);
      step(state_, 20, stream);
      step(state_, 300, stream);
    }));
  }
  bool round(unsigned seed) override {
    for (unsigned i = 0; i < 3; ++i) {
      launch(executable_);
      if (i == 1) step(state_, seed, stream);
      for (const unsigned add : {1u, 20u, 300u}) step(expected_, add);
      if (i == 1) step(expected_, seed);
    }
    download(state_, stream);
    wait();
    return state_.holds(expected_);
  }

 private:
  Buffer state_;
  Words expected_;
  CUgraphExec executable_;
};

/// Two branches of kernels that may run at the same time, and what needs both.
class Branches : public Kind {
 public:
  explicit Branches(CUstream on) : Kind(on) {
    CUstream side = nullptr;
    CUevent fork = nullptr, join = nullptr;
    DRIVER_CHECK(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
    DRIVER_CHECK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    DRIVER_CHECK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    executable_ = instantiate_and_destroy(capture(stream, [&] {
      upload(a_, stream);
      upload(b_, stream);
      DRIVER_CHECK(cuEventRecord(fork, stream));
      DRIVER_CHECK(cuStreamWaitEvent(side, fork, 0));
      step(a_, 4, stream);
      step(b_, 50, side);
      step(b_, 600, side);
      DRIVER_CHECK(cuEventRecord(join, side));
      DRIVER_CHECK(cuStreamWaitEvent(stream, join, 0));
      combine(a_, b_, stream);
      download(a_, stream);
    }));
  }
  bool round(unsigned seed) override {
    a_.fill(seed);
    b_.fill(~seed);
    Words a = counted_from(seed), b = counted_from(~seed);
    launch(executable_);
    step(a, 4);
    step(b, 50);
    step(b, 600);
    for (unsigned i = 0; i < a.size(); ++i) a[i] = a[i] * 31 + b[i];
    wait();
    return a_.holds(a);
  }

 private:
  Buffer a_, b_;
  CUgraphExec executable_;
};

/// Nodes made one by one, a child graph among them; each round changes a kernel's parameters and disables a node or
/// not.
class Nodes : public Kind {
 public:
  explicit Nodes(CUstream on) : Kind(on) {
    DRIVER_CHECK(cuGraphCreate(&graph_, 0));
    CUcontext context = nullptr;
    DRIVER_CHECK(cuCtxGetCurrent(&context));
    CUDA_MEMSET_NODE_PARAMS zero{.dst = data_.device, .value = 5, .elementSize = 4, .width = data_.words, .height = 1};
    CUgraphNode before = nullptr, child_node = nullptr;
    DRIVER_CHECK(cuGraphAddMemsetNode(&before, graph_, nullptr, 0, &zero, context));
    with_params(7, [&](auto& params) { DRIVER_CHECK(cuGraphAddKernelNode(&changed_, graph_, &before, 1, &params)); });
    CUgraph child = capture(stream, [&] {
      step(data_, 80, stream);
      step(data_, 900, stream);
    });
    DRIVER_CHECK(cuGraphAddChildGraphNode(&child_node, graph_, &changed_, 1, child));
    DRIVER_CHECK(cuGraphDestroy(child));
    with_params(11,
                [&](auto& params) { DRIVER_CHECK(cuGraphAddKernelNode(&toggled_, graph_, &child_node, 1, &params)); });
    DRIVER_CHECK(cuGraphInstantiate(&executable_, graph_, 0));
  }
  bool round(unsigned seed) override {
    with_params(seed,
                [&](auto& params) { DRIVER_CHECK(cuGraphExecKernelNodeSetParams(executable_, changed_, &params)); });
    DRIVER_CHECK(cuGraphNodeSetEnabled(executable_, toggled_, seed % 2));
    launch(executable_);
    Words expected(data_.words, 5);
    for (const unsigned add : {seed, 80u, 900u}) step(expected, add);
    if (seed % 2) step(expected, 11);
    download(data_, stream);
    wait();
    return data_.holds(expected) && graph_is_the_programs();
  }

 private:
  template <class Use>
  void with_params(unsigned add, Use use) {
    unsigned iterations = kIterations;
    void* values[] = {&data_.device, &add, &iterations};
    CUDA_KERNEL_NODE_PARAMS params{.func = step_kernel,
                                   .gridDimX = kBlocks,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = kThreads,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .kernelParams = values};
    use(params);
  }
  /// Whatever became of the executable graph.
  bool graph_is_the_programs() const {
    CUDA_KERNEL_NODE_PARAMS params{};
    DRIVER_CHECK(cuGraphKernelNodeGetParams(toggled_, &params));
    return params.func == step_kernel && params.gridDimX == kBlocks &&
           *static_cast<unsigned*>(params.kernelParams[1]) == 11;
  }

  Buffer data_;
  CUgraph graph_ = nullptr;
  CUgraphNode changed_ = nullptr, toggled_ = nullptr;
  CUgraphExec executable_ = nullptr;
};

/// Captured anew each round, with other values, into the executable graph that is there.
class Updated : public Kind {
 public:
  using Kind::Kind;
  bool round(unsigned seed) override {
    const CUgraph graph = capture(stream, [&] {
      upload(data_, stream);
      step(data_, seed, stream);
      step(data_, seed + 1, stream);
      download(data_, stream);
    });
    data_.fill(seed);
    if (!executable_) {
      executable_ = instantiate_and_destroy(graph);
    } else {
      CUgraphExecUpdateResultInfo info{};
      DRIVER_CHECK(cuGraphExecUpdate(executable_, graph, &info));
      DRIVER_CHECK(cuGraphDestroy(graph));
    }
    launch(executable_);
    Words expected = counted_from(seed);
    step(expected, seed);
    step(expected, seed + 1);
    wait();
    return data_.holds(expected);
  }

 private:
  Buffer data_;
  CUgraphExec executable_ = nullptr;
};

/// A kernel without another form between two that have one. Made executable for each round.
class Mixed : public Kind {
 public:
  using Kind::Kind;
  bool round(unsigned seed) override {
    const CUgraphExec executable = instantiate_and_destroy(capture(stream, [&] {
      upload(data_, stream);
      step(data_, 13, stream);
      wait_and_step(data_, seed, stream);
      step(data_, 17, stream);
      download(data_, stream);
    }));
    data_.fill(seed);
    launch(executable);
    DRIVER_CHECK(cuGraphExecDestroy(executable));  // under way: the driver waits with that
    Words expected = counted_from(seed);
    for (const unsigned add : {13u, seed, 17u}) step(expected, add);
    wait();
    return data_.holds(expected);
  }

 private:
  Buffer data_;
};

struct Named {
  const char* name;
  std::function<std::unique_ptr<Kind>(CUstream)> make;
  std::atomic<unsigned> results{0}, wrong{0};
};

template <class T>
std::unique_ptr<Kind> make(CUstream stream) {
  return std::make_unique<T>(stream);
}

Named kinds[] = {{"chain", make<Chain>},
                 {"branches", make<Branches>},
                 {"nodes", make<Nodes>},
                 {"updated", make<Updated>},
                 {"mixed", make<Mixed>}};

void work(unsigned number, unsigned rounds) {
  use_first_gpu();
  CUstream stream = nullptr;
  DRIVER_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  std::vector<std::unique_ptr<Kind>> mine;
  for (Named& kind : kinds) mine.push_back(kind.make(stream));
  for (unsigned i = 0; rounds == 0 ? !over : i < rounds; ++i) {
    for (std::size_t k = 0; k < mine.size(); ++k) {
      const bool right = mine[k]->round(number * 0x10000000u + i);
      ++kinds[k].results;
      if (!right) ++kinds[k].wrong;
    }
  }
}

int run_long(unsigned blocks) {
  CUstream stream = nullptr;
  DRIVER_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  Buffer data(blocks);
  const CUgraphExec executable = instantiate_and_destroy(capture(stream, [&] {
    step(data, 1, stream);
    step(data, 2, stream);
    download(data, stream);
  }));
  DRIVER_CHECK(cuGraphLaunch(executable, stream));
  std::fprintf(stderr, "started\n");
  const unsigned expected = scrambled(scrambled(1, kIterations) + 2, kIterations);
  DRIVER_CHECK(cuStreamSynchronize(stream));
  unsigned wrong = 0;
  for (unsigned i = 0; i < data.words; ++i) wrong += data.host[i] != expected;
  std::printf("long: %u words, %u wrong\n", data.words, wrong);
  return wrong == 0 ? 0 : 3;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return 2;
  std::signal(SIGTERM, [](int) { over = true; });
  DRIVER_CHECK(cuInit(0));
  use_first_gpu();
  step_kernel = load_kernel(kGraphPtx, "step");
  combine_kernel = load_kernel(kGraphPtx, "combine");
  waiting_kernel = load_kernel(kGraphPtx, "wait_and_step");
  DRIVER_CHECK(cuMemAlloc(&flag, sizeof(unsigned)));
  set(flag, 1, 1);
  if (argc == 3) return run_long(static_cast<unsigned>(std::atoi(argv[2])));

  const auto rounds = static_cast<unsigned>(std::atoi(argv[1]));
  std::thread other(work, 1, rounds);
  work(0, rounds);
  other.join();
  bool right = true;
  for (const Named& kind : kinds) {
    std::printf("%s: %u results, %u wrong\n", kind.name, kind.results.load(), kind.wrong.load());
    right &= kind.wrong == 0;
  }
  return right ? 0 : 3;
}
