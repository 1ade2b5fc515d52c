#include "sched/temporal/trial.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gpuctl::sched {

namespace {

/// Sets of programs whose results are remembered. Beyond that all are forgotten and found anew.
constexpr std::size_t kMostFound = 64;
/// A program with fewer counted launches has no rate.
constexpr std::uint64_t kFewest = 3;

double per_second(std::uint64_t launches, Time time) {
  return static_cast<double>(launches) / std::chrono::duration<double>(time).count();
}

}  // namespace

bool Trial::same(std::span<const CountedProgram> programs) const {
  return std::ranges::equal(programs, ids_, {}, &CountedProgram::id);
}

bool Trial::update(std::span<const CountedProgram> programs, Time now) {
  if (programs.size() < 2 || programs.size() > kMostPrograms) {
    phase_ = Phase::idle;
    ids_.clear();
    again_ = kNever;
    return programs.size() > kMostPrograms && std::exchange(to_gpu_, false);
  }
  if (phase_ == Phase::idle || !same(programs)) return begin(programs, now);
  for (std::size_t i = 0; i < programs.size(); ++i) {
    Measured& program = programs_[i];
    if (std::exchange(program.seen, programs[i].launches) == programs[i].launches) continue;
    if (program.first_at == kNever) program.first_at = now, program.first = program.seen;
    program.last_at = now, program.last = program.seen;
  }
  switch (phase_) {
    case Phase::settling:
      if (now >= since_ + kSettles) measure(now);
      break;
    case Phase::measuring:
      if (measured(now)) return conclude(now);
      again_ = now + kCountedEvery;
      break;
    case Phase::kept:
      if (now >= again_) second_ = false, measure(now);  // the way in force comes first: that needs no change
      break;
    case Phase::idle:
      break;
  }
  return false;
}

/// Other programs than before: what was found of them the last time, if anything was.
bool Trial::begin(std::span<const CountedProgram> programs, Time now) {
  ids_.clear();
  programs_.clear();
  for (const CountedProgram& program : programs) {
    ids_.push_back(program.id);
    programs_.push_back({.seen = program.launches});
  }
  second_ = false;
  const auto known = found_.find(ids_);
  if (known == found_.end()) return go(false, now);
  return keep(known->second, now);
}

/// True if it is another way than before.
bool Trial::keep(const Found& found, Time now) {
  phase_ = Phase::kept;
  again_ = now + found.kept;
  return std::exchange(to_gpu_, found.to_gpu) != found.to_gpu;
}

/// Lets the way settle, then measures it. True if it is another one than before.
bool Trial::go(bool to_gpu, Time now) {
  phase_ = Phase::settling;
  since_ = now;
  again_ = now + kSettles;
  return std::exchange(to_gpu_, to_gpu) != to_gpu;
}

void Trial::measure(Time now) {
  phase_ = Phase::measuring;
  since_ = now;
  again_ = now + kCountedEvery;
  for (Measured& program : programs_) program.first_at = kNever, program.first = program.last = program.seen;
}

bool Trial::measured(Time now) {
  const auto counted = [](const Measured& program) { return program.last - program.first; };
  const bool enough = std::ranges::all_of(programs_, [&](const Measured& p) { return counted(p) >= kEnough; });
  if (now < since_ + (enough ? kMeasures : kLongest)) return false;
  for (Measured& program : programs_)
    program.rate[to_gpu_] =
        counted(program) < kFewest ? 0 : per_second(counted(program), program.last_at - program.first_at);
  return true;
}

/// A way was measured. After the first comes the other one, and after that the better one is kept.
bool Trial::conclude(Time now) {
  const auto known = [](const Measured& program) { return program.rate[0] > 0 && program.rate[1] > 0; };
  if (!std::exchange(second_, true) &&
      std::ranges::all_of(programs_, [&](const Measured& program) { return program.rate[to_gpu_] > 0; }))
    return go(!to_gpu_, now);
  double gain = 0;
  for (const Measured& program : programs_) gain += known(program) ? std::log(program.rate[1] / program.rate[0]) : 0;
  const bool better = gain > 0 && std::ranges::all_of(programs_, known);
  if (found_.size() >= kMostFound && !found_.contains(ids_)) found_.clear();
  const auto [entry, is_new] = found_.try_emplace(ids_, Found{better});
  if (!is_new)
    entry->second = {better, entry->second.to_gpu == better ? std::min(2 * entry->second.kept, kMostKept) : kKept};
  return keep(entry->second, now);
}

}  // namespace gpuctl::sched
