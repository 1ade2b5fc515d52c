#include "libgpuslice/client/grant_view.h"

#include <algorithm>

#include "libgpuslice/client/client.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;
using gpuctl::Polled;

const ipc::Grant* GrantView::grant() const {
  return Client::get().grant(device_index_);
}

ipc::Usage* GrantView::usage() const {
  ipc::Stub* stub = Client::get().stub();
  return stub && device_index_ < static_cast<int>(ipc::kMaxDevices) ? &stub->usage[device_index_] : nullptr;
}

std::uint32_t* GrantView::original() const {
  ipc::Stub* stub = Client::get().stub();
  return &ipc::latency_at(*stub, static_cast<std::size_t>(device_index_)).original;
}

std::uint32_t GrantView::granted() const {
  const Polled* polled = polled_.load(std::memory_order_acquire);
  return std::min(polled ? ipc::load(polled->capsm) : ipc::kUnlimited, sms_);
}

std::uint32_t GrantView::idle_sms() const {
  return grant() ? std::min(ipc::load(grant()->idle), sms_) : 0;
}

std::uint32_t GrantView::reserve() const {
  return grant() ? std::min(ipc::load(grant()->reserve), sms_) : 0;
}

std::uint32_t GrantView::jobs() const {
  return grant() ? ipc::load(grant()->jobs) : ipc::kNoJobs;
}

bool GrantView::alone() const {
  return grant() && (ipc::load(grant()->flags) & ipc::kAlone) != 0;
}

bool GrantView::tells_work() const {
  return grant() && (ipc::load(grant()->flags) & ipc::kReportWork) != 0;
}

ipc::Mode GrantView::mode() const {
  return grant() ? ipc::mode_of(ipc::load(grant()->flags)) : ipc::Mode::workers;
}

std::chrono::milliseconds GrantView::ahead_when_settled() const {
  const ipc::Stub* stub = Client::get().stub();
  if (!stub || !grant() || (ipc::load(grant()->flags) & ipc::kSettled) == 0) return {};
  return std::chrono::milliseconds(std::min(ipc::load(stub->settled_ahead_ms), ipc::kMostSettledAheadMs));
}

GrantView::Version GrantView::version() const {
  const ipc::Stub* page = Client::get().stub();
  if (!page || device_index_ >= static_cast<int>(ipc::kMaxDevices)) return {};
  return {page, ipc::load(page->grant[device_index_].epoch), granted(), ipc::load(page->guaranteed_sms[device_index_])};
}

GrantView::Part GrantView::part() const {
  const ipc::Stub* stub = Client::get().stub();
  const ipc::Grant* its = grant();
  if (!stub || !its) return {.count = granted()};
  const ipc::Mode mode = ipc::mode_of(ipc::load(its->flags));
  const std::uint32_t first = std::min(ipc::load(its->first), gpuctl::kMaxSms);
  if (mode == ipc::Mode::lent) return {.count = sms_};
  if (mode != ipc::Mode::common) return {.first = first, .count = granted()};
  const std::uint32_t sure = ipc::load(stub->guaranteed_sms[device_index_]);
  return sure == 0 || sure >= sms_ ? Part{.count = sms_} : Part{.first = first, .count = sure, .common = true};
}

}  // namespace gpuslice
