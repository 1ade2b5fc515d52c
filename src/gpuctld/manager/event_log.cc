#include "gpuctld/manager/event_log.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/utf8.h"

namespace gpuctl::daemon {

namespace {

std::size_t kept_bytes(const ipc::Event& event) {
  return sizeof event + event.slice.size() + event.command.size() + event.text.size();
}

}  // namespace

void EventLog::add(ipc::Event event, User by) {
  event.number = static_cast<std::int64_t>(++last_);
  if (event.text.size() > kMostText) event.text = std::string(whole_characters(event.text, kMostText - 3)) + "...";
  bytes_ += kept_bytes(event);
  by_user_[by ? by : event.uid].push_back(last_);
  kept_.emplace(last_, std::move(event));
  while (kept_.size() > kMostKept || bytes_ > kMostKeptBytes) drop_one();
}

void EventLog::drop_one() {
  const auto most = std::ranges::max_element(by_user_, [](const auto& a, const auto& b) {
    return std::pair(a.second.size(), b.second.front()) < std::pair(b.second.size(), a.second.front());
  });
  const auto dropped = kept_.find(most->second.front());
  bytes_ -= kept_bytes(dropped->second);
  kept_.erase(dropped);
  most->second.pop_front();
  if (most->second.empty()) by_user_.erase(most);
}

EventLog::Part EventLog::after(std::uint64_t number, const Wanted& wanted) const {
  number = std::min(number, last_);  // one of an earlier daemon may be greater than any here
  Part part;
  std::uint64_t seen = 0;
  auto next = kept_.upper_bound(number);
  for (; next != kept_.end() && part.events.size() < kMostInReply; ++next, ++seen)
    if (wanted(next->second)) part.events.push_back(next->second);
  part.more = next != kept_.end();
  part.last = part.more ? std::prev(next)->first : last_;
  part.lost = part.last - number - seen;
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
