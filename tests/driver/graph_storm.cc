// CUDA graphs with long kernels, launched again and again: graph_storm ROUNDS, or graph_storm 0 for until SIGTERM. Two
// threads, each with a stream and all kinds of graphs below; every word that a graph leaves is checked. A line for each
// kind, "KIND: R results, W wrong"; exit status 0, or 3 when one was wrong.
//
// graph_storm long BLOCKS: one launch of one graph, of two kernels of so many blocks; "started" on stderr once it is
// issued.
#include <atomic>
#include <csignal>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "graph_kinds.h"

namespace {

std::atomic<bool> over{false};

struct Named {
  const char* name;
  std::function<std::unique_ptr<Kind>(CUstream)> make;
  std::atomic<unsigned> results{0}, wrong{0};
};

template <class T>
std::unique_ptr<Kind> make(CUstream stream) {
  return std::make_unique<T>(stream);
}

Named kinds[] = {{"chain", make<Chain>},  {"branches", make<Branches>}, {"updated_branches", make<UpdatedBranches>},
                 {"nodes", make<Nodes>},  {"updated", make<Updated>},   {"mixed", make<Mixed>},
                 {"nested", make<Nested>}};

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
