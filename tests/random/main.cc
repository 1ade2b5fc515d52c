// random-kernels: runs the random kernels of some seeds and prints one line for each, "SEED KERNEL HASH". It knows
// nothing of slices: whoever runs it twice, in different ways, compares. docs/testing.md says how.
#include <charconv>
#include <csignal>
#include <cstdio>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "generate.h"
#include "kernels/run/driver.h"
#include "polling.h"
#include "runner.h"

namespace {

using namespace gpuctl::random_kernels;

constexpr char kUsage[] =
    "usage: random-kernels FIRST:END [--linger] [--calls-together]   run the modules of these seeds, END not included\n"
    "       random-kernels --ptx SEED [--calls-together]             print a module\n"
    "--polling: those whose blocks wait for each other, and their twins (polling.h)\n"
    "--linger: when done, say so on stderr and stay until SIGTERM\n"
    "--calls-together: functions are called only where all threads of a block come\n";

volatile std::sig_atomic_t over = 0;

bool parse_number(std::string_view text, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

int usage() {
  std::fputs(kUsage, stderr);
  return 2;
}

void print_module(std::uint64_t seed, Calls calls) {
  const RandomModule module = generate(seed, calls);
  for (const auto& kernel : module.kernels) {
    std::printf("// %s: grid %u %u %u, block %u %u %u, dynamic shared memory %u\n", kernel.name.c_str(), kernel.grid[0],
                kernel.grid[1], kernel.grid[2], kernel.block[0], kernel.block[1], kernel.block[2],
                kernel.dynamic_shared_bytes);
  }
  std::fputs(module.ptx.c_str(), stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  std::vector<std::string_view> named;
  bool linger = false, print = false, polling = false;
  Calls calls = Calls::kAnywhere;
  for (const std::string_view argument : arguments) {
    if (argument == "--linger")
      linger = true;
    else if (argument == "--polling")
      polling = true;
    else if (argument == "--ptx")
      print = true;
    else if (argument == "--calls-together")
      calls = Calls::kTogether;
    else
      named.push_back(argument);
  }
  if (named.size() != 1 || (print && linger)) return usage();
  std::uint64_t first = 0, end = 0;
  if (print) {
    if (!parse_number(named[0], first)) return usage();
    if (polling)
      std::fputs(make_polling(first, true).ptx.c_str(), stdout);
    else
      print_module(first, calls);
    return 0;
  }
  const std::size_t colon = named[0].find(':');
  if (colon == named[0].npos || !parse_number(named[0].substr(0, colon), first) ||
      !parse_number(named[0].substr(colon + 1), end)) {
    return usage();
  }
  std::signal(SIGTERM, [](int) { over = 1; });
  try {
    Runner runner(calls);
    for (std::uint64_t seed = first; seed < end && !over; ++seed) {
      const Runner::Found found = [&](const std::string& kernel, std::uint64_t hash) {
        std::printf("%llu %s %016llx\n", static_cast<unsigned long long>(seed), kernel.c_str(),
                    static_cast<unsigned long long>(hash));
        std::fflush(stdout);
      };
      if (polling)
        runner.run_polling(seed, found);
      else
        runner.run(seed, found);
    }
    if (linger) {
      std::fputs("done\n", stderr);
      while (!over) usleep(10'000);
    }
  } catch (const gpuctl::bench::Failure& failure) {
    std::fprintf(stderr, "random-kernels: %s\n", failure.what());
    return 1;
  }
  return 0;
}
