// Looks at who has blocks on which SM of the software GPU:
//
//   sm_watch TABLE now   says for each process its pid and how many blocks it has now on each SM
//   sm_watch TABLE   watches until its input ends: says `ready`, and at the end for each process its pid and the SMs it
//   was seen on (hexadecimal,
//                    bit = SM), then how many times two were seen at work, and how many times on one SM.
//
// A kernel counts once it has blocks; so does each look at the table.
#include <poll.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <vector>

#include "softgpu/table/table.h"

using namespace gpuctl::softgpu;

namespace {
/// Blocks of each process on each SM.
std::map<std::uint32_t, std::vector<std::uint32_t>> blocks_by_process(const Snapshot& snapshot) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> blocks;
  for (const KernelView& kernel : snapshot.kernels) {
    auto& of_process = blocks[kernel.pid];
    of_process.resize(snapshot.sms);
    for (std::size_t sm = 0; sm < kernel.resident.size(); ++sm) of_process[sm] += kernel.resident[sm];
  }
  return blocks;
}

void say_now(const Snapshot& snapshot) {
  for (const auto& [pid, blocks] : blocks_by_process(snapshot)) {
    std::printf("%u", pid);
    for (const std::uint32_t count : blocks) std::printf(" %u", count);
    std::puts("");
  }
}
}  // namespace

int main(int argc, char** argv) {
  const bool now_alone = argc == 3 && std::strcmp(argv[2], "now") == 0;
  if (argc != 2 && !now_alone) return 2;
  const auto reader = TableReader::open(argv[1]);
  if (reader.has_error()) {
    std::fprintf(stderr, "%s\n", reader.error().message.c_str());
    return 1;
  }
  if (now_alone) {
    say_now((*reader)->snapshot());
    return 0;
  }
  std::puts("ready");
  std::fflush(stdout);
  std::map<std::uint32_t, std::uint64_t> seen;
  unsigned together = 0, shared = 0;
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  while (poll(&input, 1, 1) == 0) {
    std::map<std::uint32_t, std::uint64_t> now;
    for (const auto& [pid, blocks] : blocks_by_process((*reader)->snapshot())) {
      for (std::size_t sm = 0; sm < blocks.size(); ++sm) {
        if (blocks[sm] != 0) now[pid] |= std::uint64_t{1} << sm;
      }
    }
    std::uint64_t all = 0, twice = 0;
    for (const auto& [pid, sms] : now) {
      seen[pid] |= sms;
      twice |= all & sms;
      all |= sms;
    }
    together += now.size() > 1;
    shared += twice != 0;
  }
  for (const auto& [pid, sms] : seen) std::printf("%u:%llx ", pid, static_cast<unsigned long long>(sms));
  std::printf("%u %u\n", together, shared);
}
