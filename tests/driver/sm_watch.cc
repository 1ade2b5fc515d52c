// Watches who has blocks on which SM of the software GPU, until its input ends:
//
//   sm_watch TABLE   says `ready`, and at the end for each process its pid and the SMs it was seen on (hexadecimal,
//                    bit = SM), then how many times two were seen at work, and how many times on one SM.
//
// A kernel counts once it has blocks; so does each look at the table.
#include <poll.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <map>

#include "softgpu/table.h"

using namespace gpuctl::softgpu;

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto reader = TableReader::open(argv[1]);
  if (reader.has_error()) {
    std::fprintf(stderr, "%s\n", reader.error().message.c_str());
    return 1;
  }
  std::puts("ready");
  std::fflush(stdout);
  std::map<std::uint32_t, std::uint64_t> seen;
  unsigned together = 0, shared = 0;
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  while (poll(&input, 1, 1) == 0) {
    std::map<std::uint32_t, std::uint64_t> now;
    for (const KernelView& kernel : (*reader)->snapshot().kernels) {
      for (std::size_t sm = 0; sm < kernel.resident.size(); ++sm) {
        if (kernel.resident[sm] != 0) now[kernel.pid] |= std::uint64_t{1} << sm;
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
