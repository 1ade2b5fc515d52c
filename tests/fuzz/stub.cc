// The page that a client shares with the daemon: whatever a client writes there, the daemon grants no more SMs than
// there are, and another client gets its reserve.
//
// An input is a row of steps: a byte for the policy, then again and again
// a place in the page (two bytes, little endian), a length and so many bytes. After each step the daemon looks at the
// page.
#include <algorithm>
#include <array>
#include <cstring>

#include "fuzz.h"
#include "gpuctld/jobs/job_queue.h"
#include "gpuctld/scheduler/scheduler.h"
#include "ipc/stub_map.h"

using gpuctl::fuzz::require;
using namespace gpuctl;
using namespace gpuctl::daemon;

namespace {

constexpr std::uint32_t kSms = 132, kReserve = 8;
constexpr std::uint64_t kMs = 1'000'000, kBegin = 1000 * kMs;
constexpr std::size_t kMostSteps = 200;
constexpr std::array kPolicies{"share", "fcfs", "hpf", "ffs", "rr", "srt", "frs", "sim"};
constexpr sched::Caller kRoot{0, {}};

sched::SliceTree tree(std::string policy) {
  sched::SliceTree tree(sched::CapSM{kSms}, 0);
  require(tree.create("ls", {.reserve = kReserve, .reserve_mode = "strict"}, kRoot).has_value(), "ls is created");
  require(tree.create("jobs", {.weight = 101, .policy = std::move(policy)}, kRoot).has_value(), "jobs is created");
  return tree;
}

struct Program {
  Program(Scheduler& scheduler, const std::string& slice)
      : client(scheduler.add(std::move(Client::create({4711, 1000, "program"}, slice, {0, 1}).value()), 1)),
        page(std::move(ipc::StubMap::map(client.memfd()).value())) {}
  Client& client;
  ipc::StubMap page;
};

/// Everything that anybody may ask of a client.
void describe(const Client& client) {
  const ipc::Client shown = client.describe(job_state(client));
  for (const ipc::ClientUsage& usage : shown.usage) {
    require(usage.granted >= 0 && usage.granted <= kSms && usage.demand <= kSms && usage.holding <= kSms,
            "no more SMs are shown than there are");
    require(usage.launches >= 0 && usage.block_tasks >= 0 && usage.evictions >= 0 && usage.busy_us >= 0 &&
                usage.memory >= 0,
            "no counter is shown below zero");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  Scheduler scheduler({{0, "GPU", "GPU-0", true, kSms, 1u << 30}, {1, "GPU", "GPU-1", true, kSms, 1u << 30}},
                      tree(kPolicies[data[0] % kPolicies.size()]));
  Program hostile(scheduler, "jobs"), other(scheduler, "jobs"), ls(scheduler, "ls");
  for (Program* program : {&other, &ls}) ipc::store(program->page->usage[0].demand, kSms);
  std::uint64_t now = kBegin;
  const auto look = [&](std::uint64_t later_ns) {
    now += later_ns;
    scheduler.update(now);
    scheduler.check_deadlines(now);
    std::uint32_t granted = 0;
    for (const Program* program : {&hostile, &other, &ls}) {
      require(program->client.slots()[0].decided <= kSms, "no client is granted more SMs than there are");
      granted += program->client.slots()[0].decided;
    }
    require(granted <= kSms, "no more SMs are granted than there are");
  };
  auto* page = reinterpret_cast<char*>(hostile.page.get());
  std::size_t at = 1;
  for (std::size_t step = 0; step < kMostSteps && at + 3 <= size; ++step) {
    const std::size_t place = (data[at] | data[at + 1] << 8) % ipc::kStubBytes;
    const std::size_t length =
        std::min({static_cast<std::size_t>(data[at + 2]), size - at - 3, ipc::kStubBytes - place});
    std::memcpy(page + place, data + at + 3, length);
    at += 3 + length;
    look(step % 4 * kMs);
    scheduler.read_records(&scheduler, now);
    (void)scheduler.time_slices_work();
    (void)scheduler.hold_memory(hostile.client, step % 2, place, now);
    describe(hostile.client);
  }
  // Whatever it holds, it has until its deadline.
  for (int i = 0; i < 3; ++i) look(2000 * kMs);
  require(ipc::load(ls.page->grant[0].polled.capsm) >= kReserve, "another client has its reserve");
  scheduler.remove(hostile.client, now);
  scheduler.update(now + kMs);
  return 0;
}
