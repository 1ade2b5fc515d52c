#include "libgpuslice/launch/demand.h"

#include <algorithm>

#include "ipc/stub_map.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;

std::uint32_t demand_of(const Launch& launch, const Slots& slots, std::uint32_t sms) {
  const std::uint32_t claimed = std::min(ipc::load(slots.host(launch.slot).progress), launch.args.total);
  const std::uint32_t chunks = (launch.args.total - claimed + launch.chunk - 1) / launch.chunk;
  return std::clamp((chunks + launch.per_sm - 1) / launch.per_sm, 1u, sms);
}

std::uint32_t demand_of(const Stream& stream, const Slots& slots, std::uint32_t sms) {
  std::uint32_t running = 0;
  std::size_t heads = 0;
  stream.visit_heads([&](const Launch& head) {
    ++heads;
    const gpuctl::ptx::HostSlot& host = slots.host(head.slot);
    if (ipc::load(host.started) && !ipc::load(host.done)) running += demand_of(head, slots, sms);
  });
  const std::size_t next = running > 0 ? heads : 0;
  const std::uint32_t waiting = next < stream.outstanding.size() ? demand_of(*stream.outstanding[next], slots, sms) : 0;
  return std::clamp(running, waiting, sms);
}

}  // namespace gpuslice
