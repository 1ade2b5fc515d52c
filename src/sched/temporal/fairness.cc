#include "sched/temporal/fairness.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sched/slices.h"

namespace gpuctl::sched {

namespace {

constexpr Time kSecond = std::chrono::seconds{1};
/// A burst that lasts longer is counted in parts, so that each is counted near the second in which it ran.
constexpr Time kLongestPart = kSecond;

std::int64_t second_at(Time instant) {
  return instant / kSecond;
}

/// What figures are made of.
struct Gathered {
  std::vector<Served> programs;
  std::uint64_t bursts = 0, launches = 0;
  double sum = 0, squares = 0, worst = 0;
};

FairnessFigures figures_of(const Gathered& all) {
  FairnessFigures figures{
      .programs = all.programs.size(), .bursts = all.bursts, .applications = measure(all.programs), .launches = {}};
  if (all.launches == 0) return figures;
  const auto n = static_cast<double>(all.launches);
  const double mean = all.sum / n;
  figures.launches = {.count = all.launches,
                      .mean = mean,
                      .deviation = std::sqrt(std::max(all.squares / n - mean * mean, 0.0)),
                      .worst = all.worst};
  return figures;
}

}  // namespace

Fairness::Program& Fairness::find_or_add(std::uint64_t program, std::string_view slice, Time now) {
  if (const auto found = programs_.find(program); found != programs_.end()) return found->second;
  if (programs_.size() >= kMostWatched) {
    std::erase_if(programs_, [&](const auto& other) {
      return second_at(other.second.latest) < second_at(now) - kFairnessSeconds;
    });
  }
  if (programs_.size() >= kMostWatched)
    programs_.erase(std::ranges::min_element(programs_, {}, [](const auto& other) { return other.second.latest; }));
  Program& added = programs_[program];
  added.slice = slice;
  return added;
}

/// Null if it is too long ago to count beside what came since.
Fairness::Second* Fairness::second_of(Program& program, Time ended) {
  const std::int64_t number = second_at(ended);
  Second& second = program.seconds[static_cast<std::size_t>(number % (kFairnessSeconds + 1))];
  if (second.number > number) return nullptr;
  if (second.number < number) second = {.number = number};
  return &second;
}

void Fairness::add(std::uint64_t number, std::string_view slice, const LaunchEnd& launch) {
  Program& program = find_or_add(number, slice, launch.done);
  if (launch.alone > Time{0}) {
    if (Second* second = second_of(program, launch.done)) {
      // As for policies, a program has one job on a device: a launch arrives when those that ended before it are over.
      const Time arrived = program.latest < launch.done ? std::max(launch.issued, program.latest) : launch.issued;
      const double slowdown = ntt({.alone = launch.alone, .turnaround = launch.done - arrived});
      ++second->launches;
      second->sum += slowdown;
      second->squares += slowdown * slowdown;
      second->worst = std::max(second->worst, slowdown);
    }
  }
  add_to_burst(program, launch);
  program.latest = std::max(program.latest, launch.done);
}

void Fairness::add_to_burst(Program& program, const LaunchEnd& launch) {
  Burst& burst = program.burst;
  const bool idle_before = launch.issued > burst.last && launch.oldest_issued > burst.last;
  if (!burst.open || idle_before) {
    close_burst(program);
    burst = {.first = launch.issued, .last = launch.done, .open = true};
  } else {
    if (!burst.goes_on) burst.first = std::min(burst.first, launch.issued);
    burst.last = std::max(burst.last, launch.done);
  }
  burst.alone += launch.alone;
  burst.whole = burst.whole && launch.all_reported && launch.alone > Time{0};
  if (burst.last - burst.first < kLongestPart) return;
  close_burst(program);
  burst = {.first = burst.last, .last = burst.last, .open = true, .goes_on = true};
}

void Fairness::close_burst(Program& program) {
  const Burst& burst = program.burst;
  if (!burst.counts()) return;
  Second* second = second_of(program, burst.last);
  if (second == nullptr) return;
  second->bursts += !burst.goes_on;
  second->alone += burst.alone;
  second->turnaround += burst.last - burst.first;
}

std::map<std::string, FairnessFigures> Fairness::figures(Time now) const {
  std::map<std::string, Gathered> gathered;
  const std::int64_t latest = second_at(now);
  const auto in_window = [latest](std::int64_t second) {
    return second >= 0 && second >= latest - kFairnessSeconds && second <= latest;
  };
  for (const auto& [number, program] : programs_) {
    Served times;
    Gathered own;
    for (const Second& second : program.seconds) {
      if (!in_window(second.number)) continue;
      times.alone += second.alone;
      times.turnaround += second.turnaround;
      own.bursts += second.bursts;
      own.launches += second.launches;
      own.sum += second.sum;
      own.squares += second.squares;
      own.worst = std::max(own.worst, second.worst);
    }
    if (const Burst& burst = program.burst; burst.counts() && in_window(second_at(burst.last))) {
      times.alone += burst.alone;
      times.turnaround += burst.last - burst.first;
      own.bursts += !burst.goes_on;
    }
    if (times.alone == Time{0} && own.launches == 0) continue;
    for_each_up(program.slice, [&](std::string_view path) {
      Gathered& all = gathered[std::string(path)];
      if (times.alone > Time{0}) all.programs.push_back(times);
      all.bursts += own.bursts;
      all.launches += own.launches;
      all.sum += own.sum;
      all.squares += own.squares;
      all.worst = std::max(all.worst, own.worst);
    });
  }
  std::map<std::string, FairnessFigures> figures;
  for (const auto& [path, all] : gathered) figures[path] = figures_of(all);
  return figures;
}

}  // namespace gpuctl::sched
