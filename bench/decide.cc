// How long a decision takes, in the processor's time: what each slice and each client gets of a GPU of 132 SMs. A tree
// that was drawn, no reserves, and at each decision another client that wants something else.
//   ninja -C build bench/decide && build/bench/decide
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

#include "base/percentile.h"
#include "sched/allocator.h"
#include "sched/policy.h"

namespace gpuctl::sched {
namespace {

constexpr std::uint32_t kSms = 132;
constexpr int kDecisions = 1000;
constexpr std::uint32_t kTopmost = 20;  // slices directly below the root

double now_us() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

void measure(std::uint32_t slices, std::uint32_t programs) {
  std::mt19937 random(1);
  const auto draw = [&](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
  std::vector<NodeInput> nodes(slices);
  for (std::uint32_t n = 0; n < slices; ++n) {
    nodes[n].parent = n == 0 ? -1 : n <= kTopmost ? 0 : static_cast<std::int32_t>(1 + draw(n / 2));
    nodes[n].strict = false;
    nodes[n].weight = 1 + draw(100);
    nodes[n].policy = find_policy("share");
  }
  nodes[0].reserve = CapSM{kSms};
  std::vector<ClientInput> clients(programs);
  for (ClientInput& client : clients) client = {.node = draw(slices), .demand = CapSM{draw(kSms + 1)}};
  std::ranges::sort(clients, {}, &ClientInput::node);
  Allocator allocator;
  Decision decision;
  std::vector<double> took_us;
  for (int i = 0; i < kDecisions; ++i) {
    clients[draw(programs)].demand = CapSM{draw(kSms + 1)};
    const double began = now_us();
    allocator.decide(nodes, clients, CapSM{kSms}, decision);
    took_us.push_back(now_us() - began);
  }
  std::ranges::sort(took_us);
  std::printf("%5u slices, %4u programs: median %6.1f us, p99 %6.1f\n", slices, programs, percentile(took_us, 0.5),
              percentile(took_us, 0.99));
}

}  // namespace
}  // namespace gpuctl::sched

int main() {
  for (const std::uint32_t slices : {100u, 1000u, 10000u})
    for (const std::uint32_t programs : {100u, 1000u}) gpuctl::sched::measure(slices, programs);
}
