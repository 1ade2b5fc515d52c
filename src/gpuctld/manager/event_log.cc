#include "gpuctld/manager/event_log.h"

#include <algorithm>
#include <utility>

namespace gpuctl::daemon {

namespace {

std::size_t kept_bytes(const ipc::Event& event) {
  return sizeof event + event.slice.size() + event.command.size() + event.text.size();
}

}  // namespace

void EventLog::add(ipc::Event event) {
  event.number = static_cast<std::int64_t>(first_ + kept_.size());
  if (event.text.size() > kMostText) event.text = event.text.substr(0, kMostText - 3) + "...";
  bytes_ += kept_bytes(event);
  kept_.push_back(std::move(event));
  for (; kept_.size() > kMostKept || bytes_ > kMostKeptBytes; ++first_) {
    bytes_ -= kept_bytes(kept_.front());
    kept_.pop_front();
  }
}

EventLog::Part EventLog::after(std::uint64_t number, const Wanted& wanted) const {
  const std::uint64_t end = first_ + kept_.size();
  number = std::min(number, end - 1);  // one of an earlier daemon may be greater than any here
  std::uint64_t next = std::max(number + 1, first_);
  Part part;
  part.lost = next - (number + 1);
  for (; next < end && part.events.size() < kMostInReply; ++next)
    if (wanted(kept_[next - first_])) part.events.push_back(kept_[next - first_]);
  part.last = next - 1;
  part.more = next < end;
  return part;
}

EventLog::Part EventLog::begin(Session& reader, std::uint64_t number, const Wanted& wanted) {
  readers_[&reader] = number;
  return go_on(reader, wanted);
}

EventLog::Part EventLog::go_on(Session& reader, const Wanted& wanted) {
  std::uint64_t& last = readers_[&reader];
  Part part = after(last, wanted);
  last = part.last;
  return part;
}

std::vector<Session*> EventLog::readers() const {
  std::vector<Session*> all;
  for (const auto& [reader, last] : readers_) all.push_back(reader);
  return all;
}

}  // namespace gpuctl::daemon
