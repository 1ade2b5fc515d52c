#include <cmath>
#include <cstdio>
#include <string>

#include "base/plural.h"
#include "sched/latency/steer.h"
#include "sched/latency/time_text.h"

namespace gpuctl::sched {

namespace {

std::string factor_text(double factor) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", factor);
  return text;
}

/// "" if all are off.
std::string dials_text(const Rungs& rungs, std::uint32_t device) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  const auto rung = [&rungs](Dial dial) { return rungs[static_cast<std::size_t>(dial)]; };
  if (rung(Dial::level) > 0) add("goes before the others");
  if (rung(Dial::turns) > 0) add("others' turns " + time_text(turn_at(rung(Dial::turns))));
  if (rung(Dial::kept) > 0) {
    const std::uint32_t kept = kept_at(rung(Dial::kept), device);
    add(std::to_string(kept) + (kept == 1 ? " SM kept" : " SMs kept"));
  }
  return text;
}

std::string target_text(const Said& said) {
  std::string text = time_text(said.at_most);
  const bool too_little = said.alone_count >= Alone::kEnough && said.alone > said.at_most;
  if (said.target.multiple > 0 || too_little) text += " (alone " + time_text(said.alone) + ")";
  return text;
}

std::string is_target(const Said& said) {
  return "; its target is " + target_text(said);
}

std::string p99_text(const Said& said, std::chrono::nanoseconds p99) {
  return "p99 " + time_text(p99) + " of " + target_text(said);
}

/// Of bursts that do not tell yet.
std::string more_needed(const Said& said) {
  return p99_text(said, said.p99) + " by " + std::to_string(said.count) + " bursts, " +
         (said.count < kTellsMet ? std::to_string(kTellsMet) : "more") + " are needed";
}

/// What came of it.
std::string outcome(const Said& said) {
  using State = Steer::State;
  const std::string now = said.count == 0 ? "no bursts since" + is_target(said) : p99_text(said, said.p99);
  switch (said.state) {
    case State::resting:
      return "no bursts lately";
    case State::learning:
      return "what it takes alone is not known yet: " + std::to_string(said.alone_count) + " of " +
             std::to_string(Alone::kEnough) + " bursts seen while nobody else had work" +
             (said.in_vain ? ", as others went on when they were to pause" : "");
    case State::few:
      if (said.count == 0) return "no bursts yet beside others" + is_target(said);
      return more_needed(said);
    case State::met:
      return now;
    case State::missed:
      return now + ", others are to yield more once another slice's target is seen to";
    case State::leaving:
      return "others are still leaving" + is_target(said);
    case State::seeking:
      if (said.count == 0 && said.missed_by.count() > 0)
        return p99_text(said, said.missed_by) + " before that, and no bursts since";
      return said.count > 0 && said.p99 <= said.at_most ? more_needed(said) : now + ", others are to yield more";
    case State::trying:
      return "it was met, trying whether less is enough: " + now +
             (said.count == 0 ? "" : " by " + plural(static_cast<std::int64_t>(said.count), "burst"));
    case State::unmet:
      return "cannot be met: " + p99_text(said, said.best) + " is the best that was reached";
    case State::helpless:
      return now + ", and nobody beside it is there to yield";
  }
  return now;
}

/// What is said where all dials are off.
const char* undisturbed(Steer::State state) {
  using State = Steer::State;
  switch (state) {
    case State::resting:
    case State::learning:
    case State::few:
    case State::met:
      return "others need not yield";
    case State::trying:
      return "others do not yield";
    case State::unmet:
      return "others do not yield, which did not help";
    case State::missed:
    case State::leaving:
    case State::seeking:
    case State::helpless:
      return "others do not yield yet";
  }
  return "";
}

}  // namespace

Said said(const Steer& steer) {
  return {.state = steer.state(),
          .rungs = steer.rungs(),
          .target = steer.target(),
          .at_most = steer.at_most(),
          .count = steer.count(),
          .p99 = steer.p99(),
          .best = steer.best(),
          .missed_by = steer.missed_by(),
          .alone_count = steer.alone().count(),
          .alone = steer.alone().p99(),
          .others_part = steer.others_part(),
          .pauses = steer.pauses(),
          .in_vain = steer.pauses_in_vain() > 0};
}

std::string words(const Said& said, std::uint32_t device) {
  const std::string dials = dials_text(said.rungs, device);
  if (said.state == Steer::State::resting) return "no bursts lately; others need not yield";
  if (said.pauses)
    return "others are paused for a moment, to see what it takes alone: " + std::to_string(said.alone_count) +
           (said.alone_count == 1 ? " burst" : " bursts") + " so far";
  std::string text = dials.empty() ? undisturbed(said.state) : dials;
  text += "; " + outcome(said);
  if (said.others_part > 0 && !dials.empty())
    text += "; others at " + factor_text(said.others_part) + " of unthrottled";
  return text;
}

}  // namespace gpuctl::sched
