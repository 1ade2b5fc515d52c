// What a client reports about its launches, for policies for jobs.
#include <algorithm>

#include "gpuctld/clients/client.h"

namespace gpuctl::daemon {

namespace {

constexpr std::uint16_t kMostThreads = 1024, kMostPerSm = 64;
constexpr std::uint32_t kMostShared = 1u << 20;
constexpr std::uint32_t kMostTasks = 0x7fffffff, kLongestTaskNs = 4'000'000'000;

std::uint16_t bounded(std::uint16_t number, std::uint16_t most) {
  return std::clamp<std::uint16_t>(number, 1, most);
}

std::optional<ipc::Head> read_head(const ipc::Head& shared, std::uint64_t now_ns) {
  ipc::Head copy{};
  const bool whole = ipc::read_versioned(shared, [&] {
    copy.launch = ipc::load(shared.launch);
    copy.kernel = ipc::load(shared.kernel);
    copy.issued_ns = std::min(ipc::load(shared.issued_ns), now_ns);
    copy.total = std::clamp(ipc::load(shared.total), 1u, kMostTasks);
    copy.claimed = std::min(ipc::load(shared.claimed), copy.total);
    copy.threads = bounded(ipc::load(shared.threads), kMostThreads);
    copy.shared = std::min(ipc::load(shared.shared), kMostShared);
    copy.per_sm = bounded(ipc::load(shared.per_sm), kMostPerSm);
    copy.input_kib = ipc::load(shared.input_kib);
    copy.task_ns = std::min(ipc::load(shared.task_ns), kLongestTaskNs);
    copy.original = ipc::load(shared.original) == 1 ? 1 : 0;
  });
  if (!whole || copy.launch == 0) return std::nullopt;
  return copy;
}

}  // namespace

std::optional<ipc::Head> Client::head(std::size_t index, std::uint64_t now_ns) const {
  if (slots_[index].faulted || silent()) return std::nullopt;
  return read_head(stub_->head[index], now_ns);
}

void Client::take_records(std::vector<ipc::Record>& records) {
  const std::uint32_t written = ipc::load(stub_->records_written);
  if (written == records_read_) return;
  // The page has no room for more. A client that claims more is read from its latest kRecords records.
  if (written - records_read_ > ipc::kRecords) records_read_ = written - ipc::kRecords;
  for (; records_read_ != written; ++records_read_) {
    const ipc::Record& shared = ipc::record_at(*stub_.get(), records_read_);
    records.push_back({.kernel = ipc::load(shared.kernel),
                       .issued_ns = ipc::load(shared.issued_ns),
                       .start_ns = ipc::load(shared.start_ns),
                       .done_ns = ipc::load(shared.done_ns),
                       .evict_ns = ipc::load(shared.evict_ns),
                       .evictions = ipc::load(shared.evictions),
                       .total = std::clamp(ipc::load(shared.total), 1u, kMostTasks),
                       .threads = bounded(ipc::load(shared.threads), kMostThreads),
                       .per_sm = bounded(ipc::load(shared.per_sm), kMostPerSm),
                       .shared = std::min(ipc::load(shared.shared), kMostShared),
                       .task_ns = std::min(ipc::load(shared.task_ns), kLongestTaskNs),
                       .input_kib = ipc::load(shared.input_kib)});
  }
  ipc::store(stub_->records_read, records_read_);
}

}  // namespace gpuctl::daemon
