// Keeps the 99th percentile of a slice's bursts on one GPU at its target, by dials that make other programs yield.
//
// - *Begin*: where one turn of others is much of the target, what costs them little is given at once, before anything
//   is seen. It goes back as all does, by a try, or by the first seek, which looks how much less is as good.
// - *Seek*: a target that is missed has one dial turned at a time, turns to the shortest at once and SMs in steps that
//   double, until it is met. More is not always better, so at the end of the dial rungs on both sides of the best one
//   are looked at. A dial that did not help then goes back to where it was; one that helped to where it helps about as
//   much with the least. Then the next one is turned. If the last one is through the target cannot be met, and the
//   dials stay where the percentile was about least.
// - *Try*: a target that is met has the dial that was turned last tried with less, halfway between where it is and
//   where it was seen to be too little. A try that misses is undone, and so is one of turns by which others do no more.
//   Between tries that fail so, at neighbouring rungs or in vain, there is three times as long each time.
// - *Pause*: a multiple of what the slice takes alone needs to know that. Where there are no quiet times others are
//   paused for it (pauses.h).
// - Whatever is decided, it is by enough bursts (evidence.h), and of those that began after the dials were turned and
//   others had left what they were to leave.
//
// Pure; time is an argument.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/latency_text.h"
#include "sched/latency/alone.h"
#include "sched/latency/evidence.h"
#include "sched/latency/pauses.h"

namespace gpuctl::sched {

/// In the order in which they are turned: what costs others least comes first.
enum class Dial : std::uint8_t {
  level,  ///< the slice's levels of the GPU's priorities lie above those of others
  turns,  ///< how long others keep the GPU, where programs take turns
  kept,   ///< SMs that are kept for the slice
};
inline constexpr std::size_t kDials = 3;

/// The rung of each dial; 0: it is off. Each rung makes others yield more than the one before.
using Rungs = std::array<int, kDials>;

/// How long others may keep the GPU at a rung of Dial::turns.
std::chrono::microseconds turn_at(int rung);
inline constexpr int kTurnRungs = 12;
/// How many SMs are kept at a rung of Dial::kept: of a device of so many.
std::uint32_t kept_at(int rung, std::uint32_t device);
/// The last rung that keeps no more than `most`.
int kept_rungs(std::uint32_t most, std::uint32_t device);

/// What happened since the last step.
struct LatencyStep {
  std::chrono::nanoseconds now{};
  const LatencyHistogram* bursts = nullptr;  ///< that ended
  bool active = false;                       ///< the slice had work
  bool frozen = false;                       ///< nobody yields, and how long its bursts take says nothing
  bool absent = false;                       ///< no program of the slice is there: nobody yields until one is
  bool no_others = false;                    ///< no other program is there
  /// No other program had work on the device, neither since the last step nor since the one before.
  bool quiet = false;
  bool may_turn = true;    ///< nobody else turns dials now
  Rungs last{};            ///< the last rung of each dial; 0: nothing comes of it now, or somebody is not there
  bool leaving = false;    ///< others still use what they are to leave
  bool can_pause = false;  ///< all others that have work can be paused
  bool still = false;      ///< others are paused and have nothing left on the device
  std::uint64_t who = 0;   ///< is there, of both sides: a number that changes with them
  double launches = 0;     ///< of the others
};

class Steer {
 public:
  using Nanoseconds = std::chrono::nanoseconds;
  /// Bursts that end so soon after a dial was turned began before it, or waited behind what did. Longer after bursts
  /// that take longer.
  static constexpr Nanoseconds kSettles = std::chrono::milliseconds{200};
  /// After so long without work nobody yields to the slice. The first step that sees work again turns the dials
  /// back to what they were: bursts that began before that step have none.
  static constexpr Nanoseconds kRests = std::chrono::seconds{60};
  /// Between tries, and between searches that found that the target cannot be met.
  static constexpr Nanoseconds kFirstWait = std::chrono::seconds{20}, kLongestWait = std::chrono::minutes{10};

  /// When programs come or go, what is known of the dials is forgotten, but no more often than this.
  static constexpr Nanoseconds kForgets = std::chrono::minutes{1};
  /// So long nobody else turns dials after it has. Others that have not left by then are taken to stay.
  static constexpr Nanoseconds kTurnsAlone = std::chrono::seconds{10};

  /// `alone`: what is known of it already.
  explicit Steer(LatencyTarget target, const Alone& alone = {}) : target_(target), alone_(alone) {}

  /// True if rungs() or pauses() changed.
  bool step(const LatencyStep& step);
  /// Another slice turned its dials: what was seen before is not what comes now.
  void disturbed(Nanoseconds now);

  const LatencyTarget& target() const { return target_; }
  /// The target as a time; 0: not known yet.
  Nanoseconds at_most() const;
  Rungs rungs() const { return resting_ ? Rungs{} : rungs_; }
  /// It turned a dial lately and has not found yet what comes of it, or has others paused.
  bool moving() const { return pauses() || (phase_ != Phase::holds && !resting_ && last_ - turned_ < kTurnsAlone); }
  /// Others are to be paused now.
  bool pauses() const { return pauses_.on(); }
  int pauses_in_vain() const { return pauses_.vain(); }

  /// Its owner set the target again: what was found out is found out anew.
  void begin_anew(Nanoseconds now);

  enum class State {
    learning,  ///< what the slice takes alone is not known yet
    resting,   ///< it has no work
    few,       ///< too few bursts to tell, or nearly as many longer as may be
    met,
    missed,    ///< and another slice's dials are turned before
    leaving,   ///< a dial was turned, and others still use what they are to leave
    seeking,   ///< it was missed, and dials are turned
    trying,    ///< whether less is enough
    unmet,     ///< all dials were tried, and it cannot be met
    helpless,  ///< it is missed, and nobody is there who could yield
  };
  State state() const;
  /// Of the bursts under the present dials; 0: none.
  Nanoseconds p99() const { return recent_.bursts().percentile(0.99).value_or(Nanoseconds{}); }
  std::uint64_t count() const { return recent_.count(); }
  const Alone& alone() const { return alone_; }
  /// The least percentile that was reached by the dials as they are, where the target cannot be met.
  Nanoseconds best() const { return best_; }
  /// The percentile that began the search which goes on; 0: none does.
  Nanoseconds missed_by() const { return phase_ == Phase::seeks ? missed_by_ : Nanoseconds{}; }
  /// Launches of the others a second, as a part of what they are with all dials off; 0: not measured.
  double others_part() const;

 private:
  enum class Phase : std::uint8_t { holds, seeks, tries };
  struct Seen {
    int rung = 0;
    Nanoseconds p99{};
  };
  struct Rate {
    double launches = 0;
    Nanoseconds time{};
    double per_s() const { return launches / std::chrono::duration<double>(time).count(); }
  };
  /// What is known of a dial.
  struct Known {
    int too_little = -1;                     ///< a rung at which the target was missed; -1: none is known
    bool helps_not = false;                  ///< turning it changed nothing
    Nanoseconds wait = kFirstWait, again{};  ///< until the next try with one rung less
    Nanoseconds vain{};                      ///< no try before, as others gained nothing by the last one
  };

  bool step_pauses(const LatencyStep& step);
  void count_bursts(const LatencyStep& step);
  void count_launches(const LatencyStep& step);
  void go(const Rungs& rungs, const LatencyStep& step);
  void set(std::size_t dial, int rung, const LatencyStep& step);
  void keep_dials(const LatencyStep& step);
  void look(const LatencyStep& step);
  void hold(const LatencyStep& step);
  void seek(const LatencyStep& step);
  std::optional<int> next_rung(int last);
  std::optional<int> next_below();
  bool begin(const LatencyStep& step);
  bool begin_dial(std::size_t dial, const LatencyStep& step);
  int first_stride(std::size_t dial, int last) const;
  void end_dial(const LatencyStep& step);
  void cannot(Nanoseconds best, const LatencyStep& step);
  bool begin_try(const LatencyStep& step);
  void judge_try(const LatencyStep& step);
  void undo_try(const LatencyStep& step);
  bool others_gain() const;
  bool tells_as_it_is() const;
  Verdict verdict() const;

  LatencyTarget target_;
  Alone alone_;
  Pauses pauses_;
  Rungs rungs_{}, before_try_{}, offered_{};
  std::array<bool, kDials> works_{};  ///< the dials by which something came of it, when both sides were there
  Phase phase_ = Phase::holds;
  std::size_t dial_ = 0;    ///< that is turned or tried
  int stride_ = 1;          ///< of the seek
  bool gives_ = false;      ///< the seek looks for how much less is as good
  int looks_ = 0;           ///< between rungs, in this seek
  std::vector<Seen> seen_;  ///< of the dial in this seek
  Nanoseconds missed_by_{};
  Nanoseconds best_{};  ///< when the target was given up
  std::array<Known, kDials> known_{};
  bool begun_ = false;
  std::array<bool, kDials> unproven_{};  ///< given at the beginning, and whether less is as good was not looked at
  bool unmet_ = false, resting_ = false, active_once_ = false, leaving_ = false;
  Nanoseconds unmet_wait_ = 3 * kFirstWait, unmet_again_{};
  Nanoseconds work_{};     ///< when the slice last had work
  Nanoseconds settled_{};  ///< from when on bursts count
  Nanoseconds turned_{};   ///< when a dial was turned
  Nanoseconds last_{};     ///< the last step
  std::uint64_t who_ = 0;
  std::optional<Nanoseconds> forgot_;
  Evidence recent_{500}, long_{2000};
  Rate off_, now_, before_;  ///< of the others: with all dials off, as they are, and as they were before the try
};

/// What there is to say of a slice's target.
struct Said {
  Steer::State state = Steer::State::resting;
  Rungs rungs{};
  LatencyTarget target;
  std::chrono::nanoseconds at_most{};  ///< the target as a time; 0: not known yet
  std::uint64_t count = 0;             ///< bursts under the present dials
  std::chrono::nanoseconds p99{}, best{};
  std::chrono::nanoseconds missed_by{};  ///< the percentile that began the search; 0: none goes on
  std::uint64_t alone_count = 0;
  std::chrono::nanoseconds alone{};
  double others_part = 0;  ///< 0: not measured
  bool pauses = false;     ///< others are paused
  bool in_vain = false;    ///< they were, and went on all the same
};
Said said(const Steer& steer);

/// A line for people: what is done for the slice and why. It follows from the state. `device`: its SMs.
std::string words(const Said& said, std::uint32_t device);
inline std::string words(const Steer& steer, std::uint32_t device) {
  return words(said(steer), device);
}

}  // namespace gpuctl::sched
