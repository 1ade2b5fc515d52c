// What one user may take of the daemon: connections, calls, bytes, time, lines of the log. Root and the daemon's own
// user have no budgets. All others have one each, and one together, because one person may have many user ids. Pure:
// time is an argument. One thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "gpuctld/budgets/token_bucket.h"

namespace gpuctl::daemon {

/// What a user has, or all users with a budget together.
struct Budget {
  std::size_t connections;
  std::size_t buffered;           ///< bytes of calls that are not served yet, and of replies that are not read
  std::size_t kept_for_each = 0;  ///< of these, what others cannot take from a user; of a user only
  TokenBucket::Rate calls;        ///< in units of a cheap call (Answer::cost)
  TokenBucket::Rate bytes;        ///< received and sent
  TokenBucket::Rate log_lines;
  TokenBucket::Rate time;  ///< seconds of the daemon's processor, whatever they went into
  /// Seconds too. Of a user: who has taken no more waits for nobody else's debts. Of all: what such users take together
  /// while there are debts; beyond it they wait as all do.
  TokenBucket::Rate kept_time{};
  TokenBucket::Rate connects{};  ///< taken from the socket's queue, refused or not; of all
};

inline constexpr std::size_t kMiB = 1u << 20;
/// A program asks a few times when it starts and then seldom: a few hundred can start at once.
inline constexpr Budget kBudgetOfUser{.connections = 512,
                                      .buffered = 8 * kMiB,
                                      .kept_for_each = 16 << 10,
                                      .calls = {1000, 4000},
                                      .bytes = {8.0 * kMiB, 32.0 * kMiB},
                                      .log_lines = {1, 100},
                                      .time = {0.03, 0.5},
                                      .kept_time = {0.008, 0.03}};
/// What attackers cause is to stay near a twentieth of a core. Connections that are refused come to it, at 16 us each.
inline constexpr Budget kBudgetOfAll{.connections = 4032,
                                     .buffered = 24 * kMiB,
                                     .calls = {4000, 16'000},
                                     .bytes = {32.0 * kMiB, 128.0 * kMiB},
                                     .log_lines = {5, 500},
                                     .time = {0.035, 0.5},
                                     .kept_time = {0.05, 0.15},
                                     .connects = {4000, 1000}};
/// Programs of one user that may be attached at a time.
inline constexpr std::size_t kMaxClientsOfUser = 256;
/// Bytes of kernels' texts that the daemon keeps of all programs of one user, and of all users but root.
inline constexpr std::size_t kMaxKernelTextOfUser = 16 * kMiB, kMaxKernelTextOfAll = 32 * kMiB;

class UserBudgets {
 public:
  /// `own_uid`: the daemon's. `all`: together; its connections leave room for root.
  explicit UserBudgets(std::uint32_t own_uid, Budget user = kBudgetOfUser, Budget all = kBudgetOfAll);

  bool exempt(std::uint32_t uid) const { return uid == 0 || uid == own_uid_; }

  /// Counts a connection and charges the user as for a call. False: there is no room for it, and none was counted.
  /// Connecting cannot be made to wait. So whoever owes something already pays for it alone.
  bool connect(std::uint32_t uid, std::uint64_t now_ns);
  void disconnect(std::uint32_t uid);
  /// Whose connection is next is not known until it is taken. So all wait where users connect too often.
  std::chrono::nanoseconds wait_to_connect(std::uint64_t now_ns) const { return together_.connects.wait(now_ns); }
  /// Where all connections are taken: the user who has the most, if they are so many more than those of `uid` that one
  /// is to be closed for it.
  std::optional<std::uint32_t> gives_up_connection_for(std::uint32_t uid) const;

  /// How long the user's next call, or wake-up, has to wait; 0: not at all.
  std::chrono::nanoseconds wait(std::uint32_t uid, std::uint64_t now_ns) const;
  void charge(std::uint32_t uid, double calls, std::size_t bytes, std::uint64_t now_ns);

  /// Counts bytes that are kept, or with a negative number no longer are. False: there is no room for them, and nothing
  /// was counted. A user's first bytes (Budget::kept_for_each) do not count for all together: who sends little is not
  /// refused because others send much.
  bool buffer(std::uint32_t uid, std::ptrdiff_t bytes);

  /// Whether a line about the user may go to the log: how many were left out before it; empty: leave it out.
  std::optional<std::uint64_t> log_line(std::uint32_t uid, std::uint64_t now_ns);

  /// The daemon worked so long for the user. What a call costs cannot be foreseen: it is measured.
  void worked(std::uint32_t uid, std::chrono::nanoseconds took, std::uint64_t now_ns);

  /// Forgets users who have no connection and owe nothing.
  void forget_idle(std::uint64_t now_ns);
  std::size_t users() const { return users_.size(); }

 private:
  struct Account {
    explicit Account(const Budget& budget)
        : calls(budget.calls),
          bytes(budget.bytes),
          log_lines(budget.log_lines),
          time(budget.time),
          kept_time(budget.kept_time),
          connects(budget.connects) {}

    std::chrono::nanoseconds wait(std::uint64_t now_ns) const {
      return std::max({calls.wait(now_ns), bytes.wait(now_ns), time.wait(now_ns)});
    }

    std::size_t connections = 0, buffered = 0;
    TokenBucket calls, bytes, log_lines, time, kept_time, connects;
    std::uint64_t lines_left_out = 0;
  };
  bool asks_seldom(std::uint32_t uid, std::uint64_t now_ns) const;
  Account& of(std::uint32_t uid) { return users_.try_emplace(uid, user_).first->second; }

  std::uint32_t own_uid_;
  Budget user_, all_;
  std::map<std::uint32_t, Account> users_;
  Account together_;
};

}  // namespace gpuctl::daemon
