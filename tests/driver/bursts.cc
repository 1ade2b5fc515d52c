// Bursts of a known number and length, for tests/system/programs/bursts_test.py: bursts KIND ROUNDS MS.
//
// Each round launches something, sleeps for MS milliseconds and waits in the way that KIND says, so a burst is not
// shorter. When all rounds are over it prints how many ms the longest took, from before its first launch to after its
// wait, and ends with its standard input. It has never heard of the library, but for the requests that it names.
#include <cuda.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "driver.h"
#include "kernels.h"

#define GPUSLICE_OPTIONAL
#include "gpuslice/gpuslice.h"

namespace {

using Clock = std::chrono::steady_clock;

struct Program {
  int rounds = 0;
  std::chrono::milliseconds pause{};
  CUfunction kernel = nullptr;
  CUstream first = nullptr, second = nullptr;
  CUevent event = nullptr;
  CUdeviceptr memory = 0;
  CUgraphExec graph = nullptr;
  void* host = nullptr;
  double longest_ms = 0;

  void sleep() const { std::this_thread::sleep_for(pause); }

  void launch(CUstream stream, unsigned iterations = 10) {
    unsigned seed = 1;
    void* parameters[] = {&memory, &seed, &iterations};
    DRIVER_CHECK(cuLaunchKernel(kernel, 4, 1, 1, 64, 1, 1, 0, stream, parameters, nullptr));
  }

  /// Rounds with a pause behind each, in which nothing is outstanding.
  void measure(const std::function<void()>& round) {
    for (int i = 0; i < rounds; ++i) {
      const auto begin = Clock::now();
      round();
      const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
      longest_ms = std::max(longest_ms, ms);
      sleep();
    }
  }

  void prepare() {
    use_first_gpu();
    kernel = load_kernel(kScramblePtx, "scramble");
    DRIVER_CHECK(cuMemAlloc(&memory, 1 << 16));
    DRIVER_CHECK(cuMemHostAlloc(&host, 1 << 16, 0));
    DRIVER_CHECK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    DRIVER_CHECK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    DRIVER_CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CUgraph captured = nullptr;
    DRIVER_CHECK(cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    DRIVER_CHECK(cuMemsetD8Async(memory, 0, 64, first));
    launch(first);
    DRIVER_CHECK(cuStreamEndCapture(first, &captured));
    DRIVER_CHECK(cuGraphInstantiate(&graph, captured, 0));
  }
};

Program g;

void until_done(const std::function<CUresult()>& query) {
  for (CUresult result; (result = query()) != CUDA_SUCCESS;) {
    DRIVER_CHECK(result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result);
    std::this_thread::yield();
  }
}

/// Two threads with a stream each, which launch before either waits.
void two_threads() {
  std::barrier together(2);
  const auto work = [&](CUstream stream, bool measures) {
    use_first_gpu();
    const auto round = [&] {
      together.arrive_and_wait();
      g.launch(stream);
      g.sleep();
      together.arrive_and_wait();
      DRIVER_CHECK(cuStreamSynchronize(stream));
      together.arrive_and_wait();
    };
    if (measures) return g.measure(round);
    for (int i = 0; i < g.rounds; ++i) {
      round();
      g.sleep();
    }
  };
  std::thread other(work, g.second, false);
  work(g.first, true);
  other.join();
}

/// As many requests as bursts, and two of them at once.
void requests() {
  g.measure([] {
    const gpuslice_request outer = gpuslice_request_begin ? gpuslice_request_begin() : 0;
    g.launch(g.first);
    DRIVER_CHECK(cuStreamSynchronize(g.first));
    g.sleep();
    const gpuslice_request inner = gpuslice_request_begin ? gpuslice_request_begin() : 0;
    g.sleep();
    for (const gpuslice_request request : {outer, inner})
      if (gpuslice_request_end && gpuslice_request_end(request) != GPUSLICE_OK) exit_once(1);
  });
  if (gpuslice_request_end && gpuslice_request_end(0) != GPUSLICE_ERROR_INVALID) exit_once(1);
  if (gpuslice_request_end && gpuslice_request_end(UINT64_MAX) != GPUSLICE_ERROR_INVALID) exit_once(1);
}

/// Launches, sleeps and waits.
template <class Wait>
std::function<void()> launch_and(Wait wait) {
  return [wait] {
    g.measure([&] {
      for (int i = 0; i < 5; ++i) g.launch(g.first);
      g.sleep();
      wait();
    });
  };
}

const std::map<std::string, std::function<void()>> kKinds{
    {"stream", launch_and([] { DRIVER_CHECK(cuStreamSynchronize(g.first)); })},
    {"context", launch_and([] { DRIVER_CHECK(cuCtxSynchronize()); })},
    {"stream-query", launch_and([] { until_done([] { return cuStreamQuery(g.first); }); })},
    {"event", launch_and([] {
       DRIVER_CHECK(cuEventRecord(g.event, g.first));
       DRIVER_CHECK(cuEventSynchronize(g.event));
     })},
    {"event-query", launch_and([] {
       DRIVER_CHECK(cuEventRecord(g.event, g.first));
       until_done([] { return cuEventQuery(g.event); });
     })},
    {"copy-back",
     [] {
       g.measure([] {
         g.launch(nullptr);
         g.sleep();
         DRIVER_CHECK(cuMemcpyDtoH(g.host, g.memory, 1024));
       });
     }},
    {"free",  // which waits
     [] {
       g.measure([] {
         CUdeviceptr other = 0;
         DRIVER_CHECK(cuMemAlloc(&other, 1024));
         g.launch(g.first);
         DRIVER_CHECK(cuStreamSynchronize(g.first));
         g.launch(g.first);
         g.sleep();
         DRIVER_CHECK(cuMemFree(other));
       });
     }},
    {"copies",
     [] {
       g.measure([] {
         DRIVER_CHECK(cuMemcpyHtoDAsync(g.memory, g.host, 4096, g.first));
         DRIVER_CHECK(cuMemsetD8Async(g.memory, 1, 1024, g.first));
         g.sleep();
         DRIVER_CHECK(cuStreamSynchronize(g.first));
       });
     }},
    {"graph",
     [] {
       g.measure([] {
         DRIVER_CHECK(cuGraphLaunch(g.graph, g.second));
         g.sleep();
         DRIVER_CHECK(cuStreamSynchronize(g.second));
       });
     }},
    {"joined",  // one stream, after the other, and one wait
     [] {
       g.measure([] {
         g.launch(g.first);
         DRIVER_CHECK(cuEventRecord(g.event, g.first));
         DRIVER_CHECK(cuStreamWaitEvent(g.second, g.event, 0));
         g.launch(g.second);
         g.sleep();
         DRIVER_CHECK(cuStreamSynchronize(g.second));
       });
     }},
    {"two-streams",  // the first wait does not see all: the other stream waits for a word
     [] {
       auto* word = static_cast<volatile unsigned*>(g.host);
       g.measure([&] {
         *word = 0;
         DRIVER_CHECK(cuStreamWaitValue32(g.second, reinterpret_cast<CUdeviceptr>(g.host), 1, CU_STREAM_WAIT_VALUE_EQ));
         g.launch(g.second);
         g.launch(g.first);
         DRIVER_CHECK(cuStreamSynchronize(g.first));
         g.sleep();
         *word = 1;
         DRIVER_CHECK(cuStreamSynchronize(g.second));
       });
     }},
    {"behind",  // work behind the wait, for which nobody waits before the next round
     [] {
       g.measure([] {
         g.launch(g.first);
         g.launch(g.first);
         g.sleep();
         DRIVER_CHECK(cuStreamSynchronize(g.first));
         DRIVER_CHECK(cuMemsetD8Async(g.memory, 1, 1024, g.first));
       });
     }},
    {"two-threads", two_threads},
    {"no-waits", [] { g.measure([] { g.launch(g.first); }); }},
    {"requests", requests},
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 4 || !kKinds.contains(arguments[1])) return 2;
  g.rounds = std::atoi(arguments[2]);
  g.pause = std::chrono::milliseconds(std::atoi(arguments[3]));
  DRIVER_CHECK(cuInit(0));
  g.prepare();
  kKinds.at(arguments[1])();
  std::printf("%.3f\n", g.longest_ms);
  std::fflush(stdout);
  char end = 0;
  while (read(0, &end, 1) > 0) {
  }
  return 0;
}
