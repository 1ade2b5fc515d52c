// How many of MPS's hardware queues are promised to which program. MPS makes 2 for each program that asks for no
// number, and a program that finds none left does not start. So a program is promised more only while that leaves
// enough for those that come. Pure. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace gpuctl::daemon {

/// What MPS makes of itself. Two streams that wait hold up both.
inline constexpr std::uint32_t kUsualQueues = 2;
/// With 8 a start takes 60 ms longer (measured on an H100).
inline constexpr std::uint32_t kMoreQueues = 4;
/// The most that the driver makes for a program.
inline constexpr std::uint32_t kMostQueues = 32;
/// MPS has some 120 queues in all (measured on an H100). Eighteen programs with four each leave 48. So 24 more programs
/// start, with two each, whether they are clients or not: 42 in all.
inline constexpr std::uint32_t kQueuesPromised = 72;
/// What the programs of one user, or of all users but root and the daemon's own, are promised or say that they have
/// counts no further. So a user who lies, or asks in a loop, keeps no other from its four.
inline constexpr std::uint32_t kQueuesOfUser = 48, kQueuesOfUsers = 64;

class QueueLedger {
 public:
  struct Program {
    std::uint64_t id = 0;  ///< one promise for each
    std::uint32_t uid = 0;
    bool exempt = false;  ///< its user has no budget (UserBudgets::exempt)
  };

  /// How many queues the program may have: kMoreQueues where it `needs_more` and that many are left, else kUsualQueues.
  /// They are its own until give_back(). What it was promised before is given back first.
  std::uint32_t promise(const Program& program, bool needs_more);

  /// The program says how many it has, or takes whatever it is promised.
  void note(const Program& program, std::uint32_t queues);

  void give_back(std::uint64_t id);

  /// Of all programs.
  std::uint32_t promised() const;
  std::size_t programs() const { return promises_.size(); }

 private:
  struct Promise {
    std::uint32_t uid = 0;
    bool exempt = false;
    std::uint32_t queues = 0;
  };
  bool has_more_for(const Program& program) const;

  std::map<std::uint64_t, Promise> promises_;
};

}  // namespace gpuctl::daemon
