#include "sched/latency/steer.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

namespace gpuctl::sched {

namespace {

using Nanoseconds = std::chrono::nanoseconds;

constexpr std::array<int, kTurnRungs> kTurnsUs{2000, 1400, 1000, 700, 500, 350, 250, 180, 125, 90, 64, 50};

/// Chance that a target that is met is taken for missed, at each look at the latest bursts, and at many.
constexpr double kMissedSoon = 0.001, kMissedInTheLongRun = 0.05;
/// So many of the latter tell.
constexpr std::uint64_t kLongRun = 2000;
/// So many bursts tell what a rung does while it is sought, unless fewer tell that the target is met.
constexpr std::uint64_t kTellsRung = 50;
/// What is not decided by so many goes by the percentile.
constexpr std::uint64_t kTellsTry = 800;
/// So many rungs between others are looked at before a dial is given up.
constexpr int kLooksBetween = 4;
/// A dial helps if the percentile becomes this part of what it was.
constexpr double kHelps = 0.85;
/// Rungs at which the percentile is that close to the least are as good.
constexpr double kAboutAsGood = 1.1;
constexpr Nanoseconds kLongestSettling = std::chrono::seconds{1};
/// Others gain by longer turns if they do so much more. With less it is not worth that bursts may be late.
constexpr double kGains = 1.02;
/// So long the others' rate is measured at least.
constexpr Nanoseconds kTellsRate = std::chrono::seconds{2};
/// Beside a target of less one turn of the driver's, of 2 ms, is much.
constexpr Nanoseconds kTurnsAreLittle = std::chrono::milliseconds{20};
/// Who has had no work for so long shows nothing while others are paused.
constexpr Nanoseconds kIsAtWork = std::chrono::seconds{1};

/// Whether less of the dial is good for others only if they do more. Who has fewer SMs may do as much and later.
bool goes_by_gain(std::size_t dial) {
  return dial == static_cast<std::size_t>(Dial::turns);
}

int step_of(std::uint32_t device) {
  return static_cast<int>(std::clamp<std::uint32_t>(device / 16, 1, 8));
}

}  // namespace

std::chrono::microseconds turn_at(int rung) {
  return std::chrono::microseconds(kTurnsUs[static_cast<std::size_t>(std::clamp(rung, 1, kTurnRungs) - 1)]);
}

std::uint32_t kept_at(int rung, std::uint32_t device) {
  return static_cast<std::uint32_t>(rung * step_of(device));
}

int kept_rungs(std::uint32_t most, std::uint32_t device) {
  return static_cast<int>(most) / step_of(device);
}

Nanoseconds Steer::at_most() const {
  if (target_.multiple == 0) return target_.at_most;
  if (!alone_.known()) return {};
  return Nanoseconds(std::llround(target_.multiple * static_cast<double>(alone_.p99().count())));
}

Verdict Steer::verdict() const {
  const Verdict soon = recent_.verdict(at_most(), kMissedSoon);
  if (soon == Verdict::missed || long_.count() < kLongRun) return soon;
  return long_.verdict(at_most(), kMissedInTheLongRun) == Verdict::missed ? Verdict::missed : soon;
}

Steer::State Steer::state() const {
  if (resting_ || !active_once_) return State::resting;
  if (at_most().count() == 0) return State::learning;
  if (phase_ != Phase::holds && leaving_) return State::leaving;
  if (phase_ == Phase::seeks) return State::seeking;
  if (phase_ == Phase::tries) return State::trying;
  const bool missed = verdict() == Verdict::missed;
  if (missed && offered_ == Rungs{}) return State::helpless;
  if (unmet_) return State::unmet;
  if (missed) return State::missed;
  return recent_.count() < kTellsMet || p99() > at_most() ? State::few : State::met;
}

double Steer::others_part() const {
  if (off_.time < kTellsRate || now_.time < kTellsRate || off_.launches == 0) return 0;
  return now_.per_s() / off_.per_s();
}

/// Measured while the slice has work, and others too: what they do when they are undisturbed is more.
void Steer::count_launches(const LatencyStep& step) {
  const Nanoseconds passed = step.now - last_;
  if (last_.count() == 0 || !step.active || step.quiet || resting_ || step.now < settled_) return;
  for (Rate* rate : {&now_, rungs_ == Rungs{} ? &off_ : nullptr})
    if (rate != nullptr) rate->launches += step.launches, rate->time += passed;
}

void Steer::disturbed(Nanoseconds now) {
  recent_.clear();
  long_.clear();
  settled_ = std::max(settled_, now + kSettles);
}

void Steer::begin_anew(Nanoseconds now) {
  phase_ = Phase::holds;
  known_ = {};
  begun_ = unmet_ = false;
  unmet_wait_ = 3 * kFirstWait;
  disturbed(now);
}

void Steer::count_bursts(const LatencyStep& step) {
  const bool late = at_most().count() > 0 && longer_than(*step.bursts, at_most()) >= 0.5;
  recent_.add(*step.bursts, late, step.now);
  long_.add(*step.bursts, late, step.now);
}

/// True if others were paused until now.
bool Steer::step_pauses(const LatencyStep& step) {
  const bool was = pauses_.on();
  const bool wanted = target_.multiple > 0 && alone_.count() < Alone::kStretch && step.can_pause && !step.quiet &&
                      active_once_ && !resting_ && step.now - work_ <= kIsAtWork &&
                      (was || (step.may_turn && phase_ == Phase::holds));
  const bool counts = pauses_.step({.now = step.now,
                                    .wanted = wanted,
                                    .still = step.still,
                                    .longest = step.bursts->percentile(1).value_or(Nanoseconds{})});
  if (counts) alone_.add(*step.bursts, step.now);
  if (was || pauses_.on()) disturbed(step.now);
  return was;
}

/// Bursts from before, and what they held up, count no more.
void Steer::go(const Rungs& rungs, const LatencyStep& step) {
  const Nanoseconds longest = recent_.bursts().percentile(1).value_or(Nanoseconds{});
  rungs_ = rungs;
  turned_ = step.now;
  now_ = {};
  disturbed(step.now);
  settled_ = std::max(settled_, step.now + std::min(kSettles + 2 * longest, kLongestSettling));
}

void Steer::set(std::size_t dial, int rung, const LatencyStep& step) {
  Rungs rungs = rungs_;
  rungs[dial] = rung;
  if (rungs != rungs_) go(rungs, step);
}

/// Where they may be. What was found stays for when programs of both sides are there again.
void Steer::keep_dials(const LatencyStep& step) {
  if (step.absent || step.no_others) {
    if (std::exchange(phase_, Phase::holds) == Phase::tries) go(before_try_, step);
    return;
  }
  for (std::size_t dial = 0; dial < kDials; ++dial) {
    if (rungs_[dial] > step.last[dial]) {
      set(dial, step.last[dial], step);
      phase_ = Phase::holds;
    }
    const bool works = step.last[dial] > 0;
    if (std::exchange(works_[dial], works) != works) unmet_ = false;  // that was with other dials
  }
}

bool Steer::step(const LatencyStep& step) {
  const Rungs rungs_before = rungs();
  const bool pauses_before = pauses();
  if (step.active) work_ = step.now, active_once_ = true;
  const bool rests = step.frozen || step.absent || !active_once_ || step.now - work_ > kRests;
  if (std::exchange(resting_, rests) && !rests) disturbed(step.now);
  offered_ = step.last;
  if (std::exchange(who_, step.who) != step.who) {
    off_ = now_ = {};
    if (!forgot_ || step.now - *forgot_ >= kForgets) {  // what was found out is about those
      known_ = {};
      unmet_ = false;
      unmet_wait_ = 3 * kFirstWait;
      forgot_ = step.now;
    }
  }
  keep_dials(step);
  leaving_ = step.leaving && turned_.count() > 0 && step.now - turned_ < kTurnsAlone;
  if (leaving_) disturbed(step.now);
  if (step_pauses(step)) {
    last_ = step.now;
    return rungs() != rungs_before || pauses() != pauses_before;
  }
  count_launches(step);
  if (step.quiet)
    alone_.add(*step.bursts, step.now);
  else if (step.now >= settled_ && !resting_)
    count_bursts(step);
  last_ = step.now;
  if (!resting_ && at_most().count() > 0 && !begin(step) && step.now >= settled_) look(step);
  return rungs() != rungs_before || pauses() != pauses_before;
}

void Steer::look(const LatencyStep& step) {
  switch (phase_) {
    case Phase::holds:
      return hold(step);
    case Phase::seeks:
      return seek(step);
    case Phase::tries:
      return judge_try(step);
  }
}

void Steer::hold(const LatencyStep& step) {
  const Verdict found = verdict();
  if (found == Verdict::met) unmet_ = false;
  if (!step.may_turn || step.last == Rungs{}) return;
  if (found == Verdict::missed) {
    if (unmet_ && step.now < unmet_again_) return;
    for (Known& known : known_) known.helps_not = false;
    unmet_ = false;
    missed_by_ = p99();
    for (std::size_t dial = 0; dial < kDials; ++dial)
      if (begin_dial(dial, step)) return;
    return cannot(p99(), step);
  }
  if (found == Verdict::met) begin_try(step);
}

/// False if there was nothing to give.
bool Steer::begin(const LatencyStep& step) {
  if (begun_ || !step.may_turn || step.last == Rungs{}) return false;
  begun_ = true;
  if (at_most() >= kTurnsAreLittle) return false;
  Rungs rungs = rungs_;
  for (const Dial costs_little : {Dial::level, Dial::turns}) {
    const auto dial = static_cast<std::size_t>(costs_little);
    if (rungs[dial] >= step.last[dial]) continue;
    rungs[dial] = step.last[dial];
    unproven_[dial] = goes_by_gain(dial);  // a level costs nothing while the slice has no work
  }
  if (rungs == rungs_) return false;
  go(rungs, step);
  return true;
}

/// False if it is at its end.
bool Steer::begin_dial(std::size_t dial, const LatencyStep& step) {
  gives_ = std::exchange(unproven_[dial], false) && rungs_[dial] > 0;
  if (!gives_ && rungs_[dial] >= step.last[dial]) return false;
  phase_ = Phase::seeks;
  dial_ = dial;
  seen_ = {{rungs_[dial], p99()}};
  looks_ = 0;
  known_[dial].too_little = rungs_[dial];
  stride_ = gives_ ? 1 : first_stride(dial, step.last[dial]);
  set(dial, gives_ ? rungs_[dial] - 1 : std::min(rungs_[dial] + stride_, step.last[dial]), step);
  return true;
}

/// Shorter turns are not worse for the slice and cost others little. So others give all, and have back what they may.
/// SMs cost more: only from far off the first step is a longer one.
int Steer::first_stride(std::size_t dial, int last) const {
  if (goes_by_gain(dial)) return last;
  const double off = std::log2(static_cast<double>(p99().count()) / static_cast<double>(at_most().count()));
  return std::clamp(static_cast<int>(off), 1, std::max(1, last / 3));
}

/// Of thousands of bursts a second so many may have waited for one thing. Time tells then.
bool Steer::tells_as_it_is() const {
  return recent_.count() >= kTellsTry && recent_.has_lasted();
}

void Steer::seek(const LatencyStep& step) {
  const Verdict found = verdict();
  if (found == Verdict::met || (found == Verdict::unknown && tells_as_it_is())) {
    phase_ = Phase::holds;
    int& too_little = known_[dial_].too_little = -1;
    for (const Seen& seen : seen_)
      if (seen.rung < rungs_[dial_]) too_little = std::max(too_little, seen.rung);
    return;
  }
  if (found != Verdict::missed || recent_.count() < kTellsRung) return;
  const Seen now{rungs_[dial_], p99()};
  seen_.insert(std::ranges::upper_bound(seen_, now.rung, {}, &Seen::rung), now);
  if (const std::optional<int> next = gives_ ? next_below() : next_rung(step.last[dial_]))
    return set(dial_, *next, step);
  end_dial(step);
}

/// The one to look at next; none: the dial is through.
std::optional<int> Steer::next_rung(int last) {
  if (seen_.back().rung < last) return std::min(seen_.back().rung + (stride_ *= 2), last);
  if (looks_++ == kLooksBetween) return std::nullopt;
  const auto best = std::ranges::min_element(seen_, {}, &Seen::p99);
  std::optional<int> between;
  int widest = 1;
  const auto look = [&](const Seen& a, const Seen& b) {
    if (b.rung - a.rung > widest) widest = b.rung - a.rung, between = std::midpoint(a.rung, b.rung);
  };
  if (best != seen_.begin()) look(*std::prev(best), *best);
  if (std::next(best) != seen_.end()) look(*best, *std::next(best));
  return between;
}

/// Less, for as long as it is about as good: nobody is to be late for what was given already.
std::optional<int> Steer::next_below() {
  const auto least = std::ranges::min_element(seen_, {}, &Seen::p99)->p99;
  const bool worse = kHelps * static_cast<double>(seen_.front().p99.count()) > static_cast<double>(least.count());
  if (worse || seen_.front().rung == 0) return std::nullopt;
  return std::max(seen_.front().rung - (stride_ *= 2), 0);
}

/// No rung of the dial is enough.
void Steer::end_dial(const LatencyStep& step) {
  known_[dial_].too_little = seen_.back().rung;
  const auto least = std::ranges::min_element(seen_, {}, &Seen::p99)->p99;
  const bool helps = static_cast<double>(least.count()) < kHelps * static_cast<double>(seen_.front().p99.count());
  const Nanoseconds good(std::llround(kAboutAsGood * static_cast<double>(least.count())));
  const Seen chosen =
      helps ? *std::ranges::find_if(seen_, [&](const Seen& seen) { return seen.p99 <= good; }) : seen_.front();
  known_[dial_].helps_not = !helps;
  const std::size_t dial = dial_;
  const Rungs before = rungs_;
  rungs_[dial] = chosen.rung;
  for (std::size_t next = dial + 1; next < kDials; ++next)
    if (begin_dial(next, step)) {
      seen_.front().p99 = chosen.p99;
      return;
    }
  rungs_ = before;
  set(dial, chosen.rung, step);
  cannot(chosen.p99, step);
}

void Steer::cannot(Nanoseconds best, const LatencyStep& step) {
  phase_ = Phase::holds;
  unmet_ = true;
  best_ = best;
  unmet_again_ = step.now + unmet_wait_;
  unmet_wait_ = std::min(3 * unmet_wait_, kLongestWait);
}

/// Tries less of the dial that was turned last.
bool Steer::begin_try(const LatencyStep& step) {
  for (std::size_t dial = kDials; dial-- > 0;) {
    Known& known = known_[dial];
    if (rungs_[dial] == 0) continue;
    if (known.too_little >= rungs_[dial]) known.too_little = -1;  // it was, for other bursts
    const bool next_to_it = known.too_little == rungs_[dial] - 1;
    if ((next_to_it && step.now < known.again) || step.now < known.vain) continue;
    if (goes_by_gain(dial) && now_.time < kTellsRate) return false;
    before_try_ = rungs_;
    before_ = now_;
    dial_ = dial;
    unproven_[dial] = false;
    phase_ = Phase::tries;
    set(dial, next_to_it ? known.too_little : (known.too_little + rungs_[dial]) / 2, step);
    return true;
  }
  return false;
}

void Steer::judge_try(const LatencyStep& step) {
  Verdict found = verdict();
  if (found == Verdict::unknown && tells_as_it_is())
    found = longer_than(recent_.bursts(), at_most()) <= 0.01 * static_cast<double>(recent_.count()) ? Verdict::met
                                                                                                    : Verdict::missed;
  if (found == Verdict::unknown) return;
  Known& known = known_[dial_];
  if (found == Verdict::met) {
    if (goes_by_gain(dial_) && now_.time < kTellsRate) return;
    if (goes_by_gain(dial_) && !others_gain()) {
      known.vain = step.now + known.wait;
      return undo_try(step);
    }
    phase_ = Phase::holds;
    known.too_little = std::min(known.too_little, rungs_[dial_] - 1);
    return;
  }
  known.too_little = rungs_[dial_];
  if (known.too_little != before_try_[dial_] - 1) {
    phase_ = Phase::holds;
    return go(before_try_, step);
  }
  known.again = step.now + known.wait;
  undo_try(step);
}

/// For long.
void Steer::undo_try(const LatencyStep& step) {
  phase_ = Phase::holds;
  Nanoseconds& wait = known_[dial_].wait;
  wait = std::min(3 * wait, kLongestWait);
  go(before_try_, step);
}

/// Who did nothing before has nothing to gain.
bool Steer::others_gain() const {
  return now_.per_s() > kGains * before_.per_s();
}

}  // namespace gpuctl::sched
