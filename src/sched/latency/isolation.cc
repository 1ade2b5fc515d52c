#include "sched/latency/isolation.h"

#include <cmath>

#include "sched/latency/time_text.h"

namespace gpuctl::sched {

namespace {

using Why = IsolationChoice::Why;

/// Percentiles that are so close are taken to be the same.
constexpr double kAboutTheSame = 1.1;

/// Who misses the target apart by no more than this does not try to share: beside four programs ResNet-50 took 2.55 ms
/// of 2.27 ms apart, and with them 4 s (measured, H200).
constexpr double kMissesLittle = 1.5;

bool meets(const MeasuredIsolation& measured, std::chrono::nanoseconds at_most) {
  return at_most.count() > 0 && measured.p99 <= at_most;
}

bool both_meet(const IsolationEvidence& evidence) {
  return meets(*evidence.measured.shared, evidence.at_most) && meets(*evidence.measured.isolated, evidence.at_most);
}

/// Both are known. What others do says something only where they were the same.
IsolationChoice better_of(const IsolationEvidence& evidence) {
  const MeasuredIsolation &shared = *evidence.measured.shared, &isolated = *evidence.measured.isolated;
  if (meets(shared, evidence.at_most) != meets(isolated, evidence.at_most))
    return {meets(isolated, evidence.at_most), Why::meets_target};
  const auto of = [](const MeasuredIsolation& measured) { return static_cast<double>(measured.p99.count()); };
  const bool the_same =
      both_meet(evidence) || (of(shared) <= kAboutTheSame * of(isolated) && of(isolated) <= kAboutTheSame * of(shared));
  if (the_same && shared.others == isolated.others)
    return {isolated.others_per_s > shared.others_per_s, Why::others_do_more};
  return {isolated.p99 < shared.p99, Why::lower_p99};
}

const char* name(bool isolated) {
  return isolated ? "isolated" : "shared";
}

std::string per_s(double launches) {
  return std::to_string(std::llround(launches)) + " launches/s";
}

}  // namespace

IsolationChoice choose_isolation(const IsolationEvidence& evidence) {
  if (!evidence.has_target) return {false, Why::no_target};
  if (evidence.exclusive) return {false, Why::exclusive};
  const auto& [shared, isolated] = evidence.measured;
  if (shared && isolated) return better_of(evidence);
  if (shared || isolated) {
    const bool misses = evidence.at_most.count() > 0 && (shared ? shared : isolated)->p99 > evidence.at_most;
    if (misses && isolated && isolated->p99 <= kMissesLittle * evidence.at_most) return {true, Why::misses_little};
    return {shared.has_value() == misses, misses ? Why::to_be_tried : Why::meets_target};
  }
  if (evidence.at_most.count() > 0 && evidence.at_most < kLeastIsolated) return {false, Why::short_target};
  if (evidence.others_isolated >= kMostUnmeasured) return {false, Why::many_isolated};
  return {true, Why::nothing_known};
}

std::string words(const IsolationChoice& choice, const IsolationEvidence& evidence) {
  const auto& [shared, isolated] = evidence.measured;
  const std::optional<MeasuredIsolation>&its = choice.isolated ? isolated : shared,
        &other = choice.isolated ? shared : isolated;
  const std::string is = name(choice.isolated);
  switch (choice.why) {
    case Why::no_target:
      return is + ": it has no target of latency";
    case Why::lower_p99:
      return is + ": p99 " + time_text(its->p99) + ", " + name(!choice.isolated) + " " + time_text(other->p99);
    case Why::others_do_more:
      return is + ": p99 " + time_text(its->p99) + ", " + name(!choice.isolated) +
             (both_meet(evidence) ? " " + time_text(other->p99) + " of " + time_text(evidence.at_most)
                                  : std::string(" about as much")) +
             ", and others do " + per_s(its->others_per_s) + " instead of " + per_s(other->others_per_s);
    case Why::meets_target:
      return is + ": p99 " + time_text(its->p99) +
             (evidence.at_most.count() > 0 ? " is within " + time_text(evidence.at_most) : "");
    case Why::to_be_tried:
      return is + ", to be tried: " + name(!choice.isolated) + " it has p99 " + time_text(other->p99) + " of " +
             time_text(evidence.at_most);
    case Why::misses_little:
      return is + ": p99 " + time_text(its->p99) + " of " + time_text(evidence.at_most) +
             ", and shared it may wait for any kernel of others";
    case Why::nothing_known:
      return is + ": not measured yet";
    case Why::short_target:
      return is + ": not measured yet, and " + time_text(evidence.at_most) + " is too short for turns";
    case Why::many_isolated:
      return is + ": not measured yet, and " + std::to_string(evidence.others_isolated) + " other slices are isolated";
    case Why::exclusive:
      return is + ": a GPU is in compute mode EXCLUSIVE_PROCESS";
  }
  return is;
}

}  // namespace gpuctl::sched
