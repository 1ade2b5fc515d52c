#include <cmath>
#include <cstdio>
#include <string>

#include "sched/latency/steer.h"

namespace gpuctl::sched {

namespace {

/// Two digits at least: "350 us", "4.1 ms", "41 ms".
std::string time_text(std::chrono::nanoseconds time) {
  double value = static_cast<double>(time.count()) / 1e3;
  const char* unit = "us";
  if (value >= 1000) value /= 1000, unit = "ms";
  if (value >= 1000) value /= 1000, unit = "s";
  char text[32];
  std::snprintf(text, sizeof text, value < 10 && *unit != 'u' ? "%.2g %s" : "%.0f %s", value, unit);
  return text;
}

std::string factor_text(double factor) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", factor);
  return text;
}

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
  return text.empty() ? "others need not yield" : text;
}

std::string target_text(const Steer& steer) {
  std::string text = time_text(steer.at_most());
  if (steer.target().multiple > 0) text += " (alone " + time_text(steer.alone().p99()) + ")";
  return text;
}

std::string p99_text(const Steer& steer) {
  if (steer.count() == 0) return "no bursts since, at most " + target_text(steer);
  return "p99 " + time_text(steer.p99()) + " of " + target_text(steer);
}

}  // namespace

std::string words(const Steer& steer, std::uint32_t device) {
  using State = Steer::State;
  std::string text = dials_text(steer.rungs(), device) + "; ";
  switch (steer.state()) {
    case State::resting:
      return "no bursts lately; others need not yield";
    case State::learning:
      return text + "what it takes alone is not known yet: " + std::to_string(steer.alone().count()) + " of " +
             std::to_string(Alone::kEnough) + " bursts seen while nobody else had work";
    case State::few:
      if (steer.count() == 0) return text + "no bursts yet beside others; at most " + target_text(steer);
      text += p99_text(steer) + " by " + std::to_string(steer.count()) + " bursts, " + std::to_string(kTellsMet) +
              " are needed";
      break;
    case State::met:
      text += p99_text(steer);
      break;
    case State::seeking:
      text += p99_text(steer) + ", others are to yield more";
      break;
    case State::trying:
      text += p99_text(steer) + ", trying whether less is enough";
      break;
    case State::unmet:
      text += "cannot be met: " + p99_text(steer) +
              (steer.helpless()     ? ", and nobody is there to yield"
               : steer.count() == 0 ? ""
                                    : " is the best that was reached");
      break;
  }
  if (const double part = steer.others_part(); part > 0 && steer.rungs() != Rungs{})
    text += "; others at " + factor_text(part) + " of unthrottled";
  return text;
}

}  // namespace gpuctl::sched
