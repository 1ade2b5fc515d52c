// The file of what was used: a database of SQLite, by time, slice, user and GPU. Every call may wait for the disk.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpuctld/accounts/amounts.h"

struct sqlite3;

namespace gpuctl::daemon {

/// What is asked for. Seconds since the epoch; what is from `since` on, and before `until`.
struct UsageQuestion {
  std::optional<std::int64_t> since, until;
  std::optional<std::string> slice;  ///< and those below it
  std::optional<std::uint32_t> uid;
  std::optional<std::string> gpu;  ///< UUID
};

/// Why the store does not do what it was asked.
struct StoreError {
  std::string message;
  bool damaged = false;  ///< what is in the file cannot be used
  bool full = false;     ///< the file, or the disk
};
template <class T>
using StoreResult = BasicResult<T, StoreError>;

class UsageStore {
 public:
  /// What is counted within so many seconds is one sum. When it is so old it becomes part of the next longer one, or,
  /// of the longest, is deleted.
  struct Span {
    std::int64_t seconds;
    std::int64_t kept_s;
  };
  static constexpr std::int64_t kDay = 86400;
  static constexpr std::array<Span, 3> kSpans{{{600, 7 * kDay}, {3600, 90 * kDay}, {kDay, 730 * kDay}}};
  /// Entries of one user that tidy() leaves apart by slice; the oldest of more than these count together, as kOthers.
  /// So nobody fills the disk with the names of slices.
  static constexpr std::int64_t kMostOfUser = 100'000;
  static constexpr const char* kOthers = "(others)";
  /// In one answer, beside a user's others: to write them takes the daemon some milliseconds.
  static constexpr std::size_t kMostSums = 1024;
  /// The file grows no further, whoever uses what. What SQLite has beside it does not count.
  static constexpr std::int64_t kMostBytes = 256ll << 20;

  /// Makes the file if there is none. Its directory may be a link, the file not.
  static StoreResult<UsageStore> open(const std::string& name, std::int64_t most_bytes = kMostBytes);

  /// Adds these to the sums of that time: all, or none where that fails.
  StoreResult<void> add(const Accounts& accounts, std::int64_t time_s);
  /// Moves what is old to longer spans, deletes what is too old, and adds up what is too much.
  StoreResult<void> tidy(std::int64_t time_s, std::int64_t most_of_user = kMostOfUser);
  /// Whether the file is about as large as it may become: what is full is not the disk then.
  bool large();
  /// A span counts whole if a part of it is asked for.
  /// Of more than `most` those with the least SM time count together, as kOthers of their user and GPU.
  /// `more` counts as if it were in the file.
  StoreResult<Accounts> sums(const UsageQuestion& question, std::size_t most = kMostSums, const Accounts& more = {});

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  UsageStore(sqlite3* database, std::int64_t most_bytes) : most_bytes_(most_bytes), database_(database) {}
  StoreError problem() const;
  StoreResult<void> run(const char* statements);
  template <class Body>
  StoreResult<void> at_once(Body body);
  StoreResult<void> with(const std::string& text, std::initializer_list<std::int64_t> bound);
  StoreResult<std::optional<std::int64_t>> one(const std::string& text, std::initializer_list<std::int64_t> bound);
  StoreResult<void> add_up(const std::string& as, const std::string& from, std::initializer_list<std::int64_t> bound);
  StoreResult<void> move_up(const Span& from, const Span& to, std::int64_t before);
  StoreResult<void> bound_users(std::int64_t most_of_user);

  std::int64_t most_bytes_;
  std::unique_ptr<sqlite3, Close> database_;
};

}  // namespace gpuctl::daemon
