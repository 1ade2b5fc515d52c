// Looks at who has blocks on which SM of the software GPU:
//
//   sm_watch TABLE now       says for each process its pid and how many blocks it has now on each SM
//   sm_watch TABLE count     answers each line of its input with one: for each process its pid and on how many SMs it
//                            has blocks now
//   sm_watch TABLE sums      says `ready`, and looks a thousand times a second until its input ends. Then it says for
//                            each process its pid, for how many seconds it had blocks, and the same times the SMs that
//                            it had them on; as pid 0 the same of all processes together.
//   sm_watch TABLE turns     says for each context that takes turns its number, how many turns it has begun, and how
//                            long they last (microseconds; 0: the usual time)
//   sm_watch TABLE stop PID  stops the process (SIGSTOP), at a moment when the table does not wait for it. The software
//                            GPU stops with a process that holds the table's mutex, or that has blocks which wait for
//                            an SM ahead of other blocks. A GPU does not.
//   sm_watch TABLE           watches until its input ends: says `ready`, and at the end for each process its pid and
//                            the SMs it was seen on (hexadecimal, bit = SM), then how many times two were seen at work,
//                            and how many times on one SM.
//
// A kernel counts once it has blocks; so does each look at the table.
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <utility>
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

void say_turns(const Snapshot& snapshot) {
  for (std::size_t context = 0; context < snapshot.turns.size(); ++context)
    if (snapshot.turns[context] != 0 || snapshot.turn_us[context] != 0)
      std::cout << context << ' ' << snapshot.turns[context] << ' ' << snapshot.turn_us[context] << std::endl;
}

void count_when_asked(const TableReader& table) {
  for (std::string line; std::getline(std::cin, line);) {
    for (const auto& [pid, blocks] : blocks_by_process(table.snapshot()))
      std::cout << pid << ' ' << blocks.size() - static_cast<std::size_t>(std::count(blocks.begin(), blocks.end(), 0u))
                << ' ';
    std::cout << std::endl;
  }
}

/// Each look stands for the time since the one before.
void say_sums(const TableReader& table) {
  using Clock = std::chrono::steady_clock;
  struct Sum {
    double s = 0, sm_s = 0;
  };
  std::map<std::uint32_t, Sum> sums;
  std::cout << "ready" << std::endl;
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  for (auto looked = Clock::now(); poll(&input, 1, 1) == 0;) {
    const Snapshot snapshot = table.snapshot();
    const auto now = Clock::now();
    const double passed = std::chrono::duration<double>(now - std::exchange(looked, now)).count();
    const auto add = [&](std::uint32_t pid, const std::vector<std::uint32_t>& blocks) {
      const auto sms = static_cast<double>(blocks.size()) - static_cast<double>(std::ranges::count(blocks, 0u));
      sums[pid].s += sms > 0 ? passed : 0;
      sums[pid].sm_s += sms * passed;
    };
    std::vector<std::uint32_t> all(snapshot.sms);
    for (const auto& [pid, blocks] : blocks_by_process(snapshot)) {
      add(pid, blocks);
      for (std::size_t sm = 0; sm < blocks.size(); ++sm) all[sm] += blocks[sm];
    }
    add(0, all);
  }
  for (const auto& [pid, sum] : sums) std::cout << pid << ' ' << sum.s << ' ' << sum.sm_s << std::endl;
}

bool all_threads_stopped(const std::string& process) {
  for (const auto& thread : std::filesystem::directory_iterator(process + "/task")) {
    std::string stat;
    std::getline(std::ifstream(thread.path() / "stat"), stat);
    if (!stat.substr(stat.rfind(')')).starts_with(") T")) return false;
  }
  return true;
}

/// Whether the table waits for a process that is stopped now.
bool waits_for(const TableReader& table, std::uint32_t pid) {
  const std::string holder = std::to_string(table.holder());
  if (std::filesystem::exists("/proc/" + std::to_string(pid) + "/task/" + holder)) return true;
  const Snapshot snapshot = table.snapshot();
  return std::any_of(snapshot.kernels.begin(), snapshot.kernels.end(),
                     [&](const KernelView& kernel) { return kernel.pid == pid && kernel.placed < kernel.blocks; });
}

int stop(const TableReader& table, std::uint32_t pid) {
  while (kill(static_cast<pid_t>(pid), SIGSTOP) == 0) {
    while (!all_threads_stopped("/proc/" + std::to_string(pid))) sched_yield();
    if (!waits_for(table, pid)) return 0;
    kill(static_cast<pid_t>(pid), SIGCONT);
  }
  std::perror("kill");
  return 1;
}
}  // namespace

int main(int argc, char** argv) {
  const bool now_alone = argc == 3 && std::strcmp(argv[2], "now") == 0;
  const bool turns = argc == 3 && std::strcmp(argv[2], "turns") == 0;
  const bool adds_up = argc == 3 && std::strcmp(argv[2], "sums") == 0;
  const bool counts = argc == 3 && std::strcmp(argv[2], "count") == 0;
  const int pid = argc == 4 && std::strcmp(argv[2], "stop") == 0 ? std::atoi(argv[3]) : 0;
  if (argc != 2 && !now_alone && !turns && !adds_up && !counts && pid <= 0) return 2;
  const auto reader = TableReader::open(argv[1]);
  if (reader.has_error()) {
    std::fprintf(stderr, "%s\n", reader.error().message.c_str());
    return 1;
  }
  if (now_alone) {
    say_now((*reader)->snapshot());
    return 0;
  }
  if (turns) return say_turns((*reader)->snapshot()), 0;
  if (adds_up) return say_sums(**reader), 0;
  if (counts) return count_when_asked(**reader), 0;
  if (pid > 0) return stop(**reader, static_cast<std::uint32_t>(pid));
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
