#include "libgpuslice/agent/awaited_end.h"

#include <algorithm>

#include "ipc/stub_map.h"
#include "libgpuslice/agent/worker_counts.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;

namespace {

double left_ns(const Launch& launch, const gpuctl::ptx::HostSlot& host, std::uint32_t sms) {
  const std::uint32_t left = launch.args.total - std::min(ipc::load(host.progress), launch.args.total);
  const double task_ns = launch.instance->task_ns > 0 ? launch.instance->task_ns : ipc::load(host.task_ns);
  return left * task_ns / (static_cast<double>(sms) * launch.per_sm);
}

bool lacks_workers(const Launch& launch, std::uint32_t sms) {
  const std::uint64_t chunks = (std::uint64_t{launch.args.total} + launch.chunk - 1) / launch.chunk;
  const std::uint64_t fit = std::min(std::uint64_t{sms} * launch.per_sm, chunks);
  return many_missing(fit, launch.launched);
}

}  // namespace

AwaitedEnd awaited_end(const Stream& stream, const Slots& slots, std::uint32_t sms, std::uint32_t jobs) {
  if (sms == 0) return {};
  AwaitedEnd first;
  std::size_t heads = 0;
  stream.visit_heads([&](const Launch& head) {
    ++heads;
    const gpuctl::ptx::HostSlot& host = slots.host(head.slot);
    if (!runs(host)) return;
    const auto left = static_cast<std::uint64_t>(left_ns(head, host, sms));
    if (first.launch == 0 || left < first.left_ns) first = {head.number, left};
  });
  if (first.launch == 0) return {};
  const bool last = heads == stream.outstanding.size();
  if (jobs == ipc::kReportEachJob || (!last && lacks_workers(*stream.outstanding[heads], sms))) return first;
  if (jobs == ipc::kNoJobs) return {};
  if (last) return first;
  double all_ns = static_cast<double>(first.left_ns);
  for (std::size_t i = heads; i < stream.outstanding.size(); ++i) {
    if (all_ns >= static_cast<double>(kFarNs)) return {};
    all_ns += left_ns(*stream.outstanding[i], slots.host(stream.outstanding[i]->slot), sms);
  }
  return {stream.outstanding.back()->number, static_cast<std::uint64_t>(all_ns)};
}

}  // namespace gpuslice
