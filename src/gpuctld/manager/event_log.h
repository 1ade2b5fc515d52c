// What happened lately, for callers of Events (io.gpuctl). Where it is more than is kept, the oldest event goes of the
// user who has the most: who makes many loses those, and no others. Who reads slowly misses what is forgotten
// meanwhile, and learns how much that is; nothing waits for a reader. One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "ipc/types.h"

namespace gpuctl::daemon {

class Session;

class EventLog {
 public:
  /// What is kept, and how long one text of it may be.
  static constexpr std::size_t kMostKept = 4096, kMostKeptBytes = 2u << 20, kMostText = 512;
  static constexpr std::size_t kMostInReply = 256;

  using User = std::optional<std::int64_t>;
  /// Gives it its number. `by`: who caused it; none: the event's user.
  void add(ipc::Event event, User by = std::nullopt);

  struct Part {
    std::vector<ipc::Event> events;
    std::uint64_t lost = 0;  ///< so many were forgotten between those and what the reader had
    std::uint64_t last = 0;  ///< the number up to which all was looked at
    bool more = false;       ///< there are more than that
  };
  using Wanted = std::function<bool(const ipc::Event&)>;
  /// What comes after the event of that number and is wanted.
  Part after(std::uint64_t number, const Wanted& wanted) const;
  /// The same for a reader who goes on from there.
  Part begin(Session& reader, std::uint64_t number, const Wanted& wanted);
  /// What is new since the reader's last call.
  Part go_on(Session& reader, const Wanted& wanted);
  void forget(Session& reader) { readers_.erase(&reader); }
  bool any(const Wanted& wanted) const {
    return std::ranges::any_of(kept_, [&](const auto& entry) { return wanted(entry.second); });
  }

  /// Those who follow.
  std::vector<Session*> readers() const;
  bool followed() const { return !readers_.empty(); }

 private:
  void drop_one();

  std::map<std::uint64_t, ipc::Event> kept_;           ///< by number
  std::map<User, std::deque<std::uint64_t>> by_user_;  ///< the numbers of what is kept
  std::size_t bytes_ = 0;                              ///< of kept_
  std::uint64_t last_ = 0;                             ///< number of the latest event
  std::map<Session*, std::uint64_t> readers_;          ///< number of the last event that each had
};

}  // namespace gpuctl::daemon
