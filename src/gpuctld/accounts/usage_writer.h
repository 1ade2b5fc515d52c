// What the thread of UsageKeeper does: adds to the file, keeps what is missing in it, and puts a damaged file aside.
// Every call may wait for the disk.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "gpuctld/accounts/amounts.h"
#include "gpuctld/accounts/usage_store.h"

namespace gpuctl::daemon {

/// What is not in the file yet. Bounded: what there is beyond that counts together, as UsageStore::kOthers.
class Unwritten {
 public:
  /// Slices, users and GPUs, by the times to which they count.
  static constexpr std::size_t kMost = 10'000;

  void add(const Accounts& accounts, std::int64_t time_s);
  void add(const Unwritten& more);
  bool empty() const { return by_time_.empty(); }
  std::size_t size() const { return size_; }
  /// The earliest, and its time; not of an empty one.
  const std::pair<const std::int64_t, Accounts>& first() const { return *by_time_.begin(); }
  void remove_first();
  /// What is asked for, as UsageStore::sums() would tell it.
  Accounts sums(const UsageQuestion& question) const;

 private:
  std::map<std::int64_t, Accounts> by_time_;  ///< by the begin of the span
  std::size_t size_ = 0;                      ///< of their entries
};

class UsageWriter {
 public:
  /// Takes a line for the log.
  using Tell = std::function<void(std::string line)>;
  UsageWriter(std::string file, Tell tell, std::int64_t most_bytes = UsageStore::kMostBytes)
      : file_(std::move(file)), tell_(std::move(tell)), most_bytes_(most_bytes) {}

  void add(const Unwritten& more, std::int64_t time_s);
  /// What cannot be written counts too.
  Result<Accounts> sums(const UsageQuestion& question);

 private:
  void write();
  StoreResult<void> write_first();
  void tidy(std::int64_t time_s);
  void say(const std::string& message);
  template <class Body>
  auto on_store(Body body) -> decltype(body(std::declval<UsageStore&>()));
  void put_aside(const std::string& message);

  const std::string file_;
  Tell tell_;
  const std::int64_t most_bytes_;
  std::optional<UsageStore> store_;
  Unwritten unwritten_;
  std::string problem_;
  std::int64_t time_s_ = 0;  ///< of the latest
  std::int64_t tidied_s_ = 0, made_room_s_ = 0;
};

}  // namespace gpuctl::daemon
