// The order of streams, while all goes on that may upset it: stream_order SECONDS SEED [apart], or stream_order 0 SEED
// for until SIGTERM. Four threads have streams of all kinds and launch kernels that do x = 3x + n, of which some can be
// rewritten, and graphs, copies, memsets, events. Streams wait for values and host functions that come later; captures
// begin, end, and are given up with their streams; streams and threads end with work under way; from time to time all
// of it ends with its context, and begins anew. What each chain of kernels leaves is checked.
//
// The driver of a GPU holds locks in calls that make or destroy something, and may wait in them for what streams have
// to do. While a stream waits for a value that the program is to give, nobody may make such a call there: with "apart"
// all threads keep to that.
//
// The last line is "stream_order: R results, W wrong"; exit status 0, 3 when one was wrong, or 4 when no thread got on
// for kStandstill. Then a line for each thread says on stderr what it was doing.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "driver.h"

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr unsigned kThreads = 4;
constexpr unsigned kBlocks = 24;
constexpr unsigned kRounds = 24;  // of each thread, until the context is reset
constexpr std::chrono::seconds kStandstill{120};

/// NAME(values, number, iterations): each block makes 3 v + number of its value v, and takes its time.
std::string step_ptx() {
  const std::string head = ".version 6.4\n.target sm_75\n.address_size 64\n";
  const auto entry = [](const std::string& name, const std::string& special) {
    return ".visible .entry " + name + R"((.param .u64 values, .param .u32 number, .param .u32 iterations)
{
  .reg .pred %p<3>;
  .reg .u32 %r<8>;
  .reg .u64 %rd<6>;
  )" + special +
           R"(
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 ret;
  ld.param.u64 %rd1, [values];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r2, %ctaid.x;
  mul.wide.u32 %rd2, %r2, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.u32 %r3, [%rd3];
  ld.param.u32 %r4, [number];
  ld.param.u32 %r5, [iterations];
STEP:
  setp.eq.u32 %p2, %r5, 0;
  @%p2 bra END;
  sub.u32 %r5, %r5, 1;
  bra STEP;
END:
  mad.lo.u32 %r3, %r3, 3, %r4;
  st.global.u32 [%rd3], %r3;
  ret;
}
)";
  };
  return head + entry("step", "") + entry("as_it_is", "mov.u64 %rd5, %gridid;");
}

std::atomic<bool> over{false};
std::atomic<unsigned> results{0}, wrong{0}, phases{0};
std::array<std::atomic<const char*>, kThreads> doing{}, calling{};
bool apart = false;
std::shared_mutex awaited;  ///< with `apart`: shared while a stream waits for what the program is to give

/// For a call that makes or destroys something.
std::unique_lock<std::shared_mutex> nothing_awaited() {
  return apart ? std::unique_lock(awaited) : std::unique_lock<std::shared_mutex>();
}
std::shared_lock<std::shared_mutex> one_awaited() {
  return apart ? std::shared_lock(awaited) : std::shared_lock<std::shared_mutex>();
}
CUcontext context = nullptr;
CUfunction step_kernel = nullptr, as_it_is = nullptr;

/// Memory of the host that the GPU reaches: a word that a stream can wait for, or a value of each block.
struct Word {
  volatile unsigned* host = nullptr;
  CUdeviceptr device = 0;

  Word() {
    void* memory = nullptr;
    DRIVER_CHECK(cuMemHostAlloc(&memory, kBlocks * sizeof(unsigned), CU_MEMHOSTALLOC_DEVICEMAP));
    host = static_cast<unsigned*>(memory);
    *host = 0;
    DRIVER_CHECK(cuMemHostGetDevicePointer(&device, memory, 0));
  }
};

/// One thread, from one reset of the context to the next.
class Chain {
 public:
  Chain(unsigned number, std::mt19937& random) : doing_(doing[number]), random_(random) {
    DRIVER_CHECK(cuMemAlloc(&values_, kBlocks * sizeof(unsigned)));
    DRIVER_CHECK(cuMemAlloc(&aside_, kBlocks * sizeof(unsigned)));
    streams_ = {new_stream(CU_STREAM_NON_BLOCKING), new_stream(CU_STREAM_NON_BLOCKING), new_stream(CU_STREAM_DEFAULT),
                CU_STREAM_PER_THREAD, CU_STREAM_LEGACY};
    stream_ = streams_[0];
    DRIVER_CHECK(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING));
    DRIVER_CHECK(cuEventCreate(&branch_, CU_EVENT_DISABLE_TIMING));
    set(1);
  }

  void round() {
    using Action = void (Chain::*)();
    struct Named {
      const char* name;
      Action action;
    };
    static constexpr Named kActions[] = {{"launches", &Chain::launches},
                                         {"launches", &Chain::launches},
                                         {"copies", &Chain::copies},
                                         {"goes to another stream", &Chain::moves},
                                         {"goes to another stream", &Chain::moves},
                                         {"waits for a value", &Chain::waits_for_value},
                                         {"waits for a host function", &Chain::waits_for_host},
                                         {"launches a graph", &Chain::graph},
                                         {"gives a capture up", &Chain::gives_up_capture},
                                         {"captures beside", &Chain::captures_beside},
                                         {"replaces a stream", &Chain::replaces_stream},
                                         {"has a thread for a moment", &Chain::short_thread}};
    for (unsigned i = 0, most = 1 + below(6); i < most; ++i) {
      const Named& one = kActions[below(std::size(kActions))];
      doing_ = one.name;
      done_ += std::string(one.name) + " in " + named(stream_) + "; ";
      (this->*one.action)();
    }
    doing_ = "looks";
    check();
  }

 private:
  const char* named(CUstream stream) const {
    static constexpr const char* kNames[] = {"the first", "the second", "the blocking one", "its own",
                                             "the legacy one"};
    const auto found = std::find(streams_.begin(), streams_.end(), stream);
    return found == streams_.end() ? "?" : kNames[found - streams_.begin()];
  }
  unsigned below(unsigned most) { return static_cast<unsigned>(random_() % most); }

  static CUstream new_stream(unsigned flags) {
    CUstream stream = nullptr;
    DRIVER_CHECK(cuStreamCreate(&stream, flags));
    return stream;
  }

  void set(unsigned value) {
    DRIVER_CHECK(cuMemsetD32Async(values_, value, kBlocks, stream_));
    expected_ = value;
  }

  unsigned launch(CUstream stream) {
    unsigned number = 1 + below(1000), iterations = below(40);
    void* parameters[] = {&values_, &number, &iterations};
    DRIVER_CHECK(cuLaunchKernel(below(2) == 0 ? step_kernel : as_it_is, kBlocks, 1, 1, 64, 1, 1, 0, stream, parameters,
                                nullptr));
    return number;
  }
  void step() { expected_ = 3 * expected_ + launch(stream_); }

  void launches() {
    for (unsigned i = 0, most = 1 + below(30); i < most; ++i) step();
  }

  void copies() {
    step();
    DRIVER_CHECK(cuMemcpyDtoDAsync(aside_, values_, kBlocks * sizeof(unsigned), stream_));
    DRIVER_CHECK(cuMemsetD32Async(values_, 99, kBlocks, stream_));
    DRIVER_CHECK(cuMemcpyDtoDAsync(values_, aside_, kBlocks * sizeof(unsigned), stream_));
    step();
  }

  void move_to(CUstream next) {
    DRIVER_CHECK(cuEventRecord(event_, stream_));
    DRIVER_CHECK(cuStreamWaitEvent(next, event_, 0));
    stream_ = next;
  }
  void moves() {
    step();
    move_to(streams_[below(static_cast<unsigned>(streams_.size()))]);
    step();
  }

  /// What a thread may do before it gives what its stream waits for: nothing that itself waits for that.
  void meanwhile() {
    step();
    switch (below(apart ? 2 : 5)) {
      case 0:
        return launches();
      case 1:
        return moves();
      case 2:
        return graph();
      case 3:
        return captures_beside();
      default:
        return;
    }
  }

  void waits_for_value() {
    const auto lock = one_awaited();
    const unsigned value = ++value_;
    DRIVER_CHECK(cuStreamWaitValue32(stream_, word_.device, value, CU_STREAM_WAIT_VALUE_GEQ));
    meanwhile();
    *word_.host = value;
  }

  void waits_for_host() {
    const auto wait = [](void* chain) {
      auto* self = static_cast<Chain*>(chain);
      const unsigned mine = ++self->host_begun_;
      while (self->host_given_ < mine) usleep(100);
    };
    const auto lock = one_awaited();
    DRIVER_CHECK(cuLaunchHostFunc(stream_, wait, this));
    meanwhile();
    ++host_given_;
  }

  CUgraph captured(CUstream on) {
    DRIVER_CHECK(
        cuStreamBeginCapture(on, below(2) == 0 ? CU_STREAM_CAPTURE_MODE_THREAD_LOCAL : CU_STREAM_CAPTURE_MODE_RELAXED));
    for (unsigned i = 0, most = 1 + below(4); i < most; ++i) expected_ = 3 * expected_ + launch(on);
    CUgraph graph = nullptr;
    if (below(3) == 0) {
      DRIVER_CHECK(cuEventRecord(branch_, on));
      CUstream other = new_stream(CU_STREAM_NON_BLOCKING);
      DRIVER_CHECK(cuStreamWaitEvent(other, branch_, 0));
      expected_ = 3 * expected_ + launch(other);
      DRIVER_CHECK(cuEventRecord(branch_, other));
      DRIVER_CHECK(cuStreamWaitEvent(on, branch_, 0));
      DRIVER_CHECK(cuStreamEndCapture(on, &graph));
      DRIVER_CHECK(cuStreamDestroy(other));
    } else {
      DRIVER_CHECK(cuStreamEndCapture(on, &graph));
    }
    return graph;
  }

  void graph() {
    const auto lock = nothing_awaited();
    CUstream on = new_stream(CU_STREAM_NON_BLOCKING);
    CUgraph graph = captured(on);
    CUgraphExec executable = nullptr;
    DRIVER_CHECK(cuGraphInstantiate(&executable, graph, 0));
    DRIVER_CHECK(cuGraphDestroy(graph));
    DRIVER_CHECK(cuGraphLaunch(executable, stream_));
    step();
    DRIVER_CHECK(cuStreamDestroy(on));
    executables_.push_back(executable);
  }

  void gives_up_capture() {
    const auto lock = nothing_awaited();
    CUstream on = new_stream(CU_STREAM_NON_BLOCKING);
    DRIVER_CHECK(cuStreamBeginCapture(on, CU_STREAM_CAPTURE_MODE_RELAXED));
    launch(on);  // into a graph that nobody gets
    step();
    DRIVER_CHECK(cuStreamDestroy(on));
    step();
  }

  void captures_beside() {
    const auto lock = nothing_awaited();
    CUstream on = new_stream(CU_STREAM_NON_BLOCKING);
    for (unsigned i = 0; i < 4; ++i) {
      CUgraph graph = nullptr;
      DRIVER_CHECK(cuStreamBeginCapture(on, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
      step();
      DRIVER_CHECK(cuStreamEndCapture(on, &graph));
      DRIVER_CHECK(cuGraphDestroy(graph));
      step();
    }
    DRIVER_CHECK(cuStreamDestroy(on));
  }

  void replaces_stream() {
    CUstream& gone = streams_[below(3)];
    move_to(gone);
    step();
    if (below(2) == 0)
      DRIVER_CHECK(cuLaunchHostFunc(
          stream_, [](void*) { usleep(2000); }, nullptr));
    step();
    const auto lock = nothing_awaited();
    CUstream next = new_stream(gone == streams_[2] ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING);
    move_to(next);
    DRIVER_CHECK(cuStreamDestroy(gone));
    gone = next;
    step();
  }

  void short_thread() {
    const auto lock = nothing_awaited();
    DRIVER_CHECK(cuEventRecord(event_, stream_));
    std::thread([this] {
      DRIVER_CHECK(cuCtxSetCurrent(context));
      DRIVER_CHECK(cuStreamWaitEvent(CU_STREAM_PER_THREAD, event_, 0));
      expected_ = 3 * expected_ + launch(CU_STREAM_PER_THREAD);
      DRIVER_CHECK(cuLaunchHostFunc(
          CU_STREAM_PER_THREAD, [](void*) { usleep(1000); }, nullptr));
      DRIVER_CHECK(cuEventRecord(event_, CU_STREAM_PER_THREAD));
    }).join();
    DRIVER_CHECK(cuStreamWaitEvent(stream_, event_, 0));
    step();
  }

  void check() {
    // In pinned memory, and asked for: what waits in the driver may keep others out of it.
    DRIVER_CHECK(cuMemcpyDtoHAsync(const_cast<unsigned*>(found_.host), values_, kBlocks * sizeof(unsigned), stream_));
    if (apart)
      while (cuStreamQuery(stream_) == CUDA_ERROR_NOT_READY) std::this_thread::sleep_for(50us);
    DRIVER_CHECK(cuStreamSynchronize(stream_));
    const std::vector<unsigned> found(found_.host, found_.host + kBlocks);
    ++results;
    if (std::ranges::any_of(found, [this](unsigned value) { return value != expected_; })) {
      ++wrong;
      std::fprintf(stderr, "%u instead of %u after: %s\n", found[0], expected_, done_.c_str());
      set(1);
    }
    done_.clear();
    const auto lock = nothing_awaited();
    for (CUgraphExec one : executables_) DRIVER_CHECK(cuGraphExecDestroy(one));
    executables_.clear();
  }

  std::atomic<const char*>& doing_;
  std::mt19937& random_;
  CUdeviceptr values_ = 0, aside_ = 0;
  Word word_, found_;
  unsigned value_ = 0;
  std::atomic<unsigned> host_begun_{0}, host_given_{0};
  std::array<CUstream, 5> streams_{};
  CUstream stream_ = nullptr;
  CUevent event_ = nullptr, branch_ = nullptr;
  std::vector<CUgraphExec> executables_;
  unsigned expected_ = 0;
  std::string done_;  ///< since the last look
};

void begin_context() {
  static const std::string ptx = step_ptx();
  DRIVER_CHECK(cuCtxSetCurrent(context));
  CUmodule module = nullptr;
  DRIVER_CHECK(cuModuleLoadData(&module, ptx.c_str()));
  DRIVER_CHECK(cuModuleGetFunction(&step_kernel, module, "step"));
  DRIVER_CHECK(cuModuleGetFunction(&as_it_is, module, "as_it_is"));
}

/// Ends the process if nothing gets on any more.
void watch() {
  unsigned seen = 0;
  Clock::time_point since = Clock::now();
  for (;; std::this_thread::sleep_for(100ms)) {
    if (const unsigned now = results + phases; now != seen) seen = now, since = Clock::now();
    if (Clock::now() - since < kStandstill) continue;
    for (unsigned i = 0; i < kThreads; ++i)
      std::fprintf(stderr, "thread %u: %s, at %s\n", i, doing[i].load(), calling[i].load());
    std::fflush(stderr);
    _exit(4);
  }
}

}  // namespace

int main(int argc, char** argv) {
  apart = argc == 4 && std::string_view(argv[3]) == "apart";
  if (argc != (apart ? 4 : 3)) return 2;
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);  // a first launch would load, and wait
  const int seconds = std::atoi(argv[1]);
  const auto seed = static_cast<unsigned>(std::atoi(argv[2]));
  std::signal(SIGTERM, [](int) { over = true; });
  DRIVER_CHECK(cuInit(0));
  DRIVER_CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  begin_context();
  const Clock::time_point end = Clock::now() + std::chrono::seconds(seconds);
  bool ends = false;
  // All threads are done with the context; one of them begins the next.
  const auto next_phase = [&]() noexcept {
    ++phases;
    ends = over || (seconds > 0 && Clock::now() >= end);
    if (ends) return;
    DRIVER_CHECK(cuDevicePrimaryCtxReset(0));
    DRIVER_CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    begin_context();
  };
  std::barrier barrier(kThreads, next_phase);
  std::barrier all_made(kThreads);
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < kThreads; ++number) {
    threads.emplace_back([&, number] {
      std::mt19937 random(seed * kThreads + number);
      t_latest_call = &calling[number];
      while (!ends) {
        DRIVER_CHECK(cuCtxSetCurrent(context));
        {
          Chain chain(number, random);
          all_made.arrive_and_wait();
          for (unsigned i = 0; i < kRounds; ++i) chain.round();
        }
        doing[number] = "waits for the others";
        barrier.arrive_and_wait();
      }
    });
  }
  std::thread(watch).detach();
  for (std::thread& thread : threads) thread.join();
  std::printf("stream_order: %u results, %u wrong\n", results.load(), wrong.load());
  std::fprintf(stderr, "%u contexts\n", phases.load());
  return wrong == 0 ? 0 : 3;
}
