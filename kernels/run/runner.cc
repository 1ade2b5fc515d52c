#include "kernels/run/runner.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <limits>
#include <memory>
#include <optional>

#include "kernels/run/device_check.h"
#include "kernels/timing/clock.h"
#include "kernels/timing/priority_hints.h"

namespace gpuctl::bench {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kStreamPollNs = 20'000;         // while both an arrival and a completion may come
constexpr std::int64_t kLongestSleepNs = 100'000'000;  // so that a stop request is seen

struct Flight {
  std::size_t output;
  Sample sample;
};

struct UsedOutput {
  std::size_t output;
  bool holds_result;
};

class Runner {
 public:
  Runner(Workbench& bench, const RunOptions& options, const std::atomic<bool>& stop)
      : bench_(bench),
        options_(options),
        stop_(stop),
        limit_(std::size_t{options.depth} * options.streams),
        schedule_(options.arrival, options.period_us, options.burst, options.seed, 0) {
    if (options.check == Check::kDevice) device_check_.emplace(bench);
    if (options.hints) hints_.emplace(options.hints->first, options.hints->second, options.seed);
    for (std::uint32_t i = 0; i < options.streams; ++i) {
      streams_.push_back(std::make_unique<Stream>(options.priority));
    }
    for (std::size_t i = 0; i < outputs_needed(options); ++i) {
      starts_.emplace_back(true);
      ends_.emplace_back(options.gpu_time);
      dirty_.push_back({i, false});
    }
  }

  RunResult run() {
    clean_all();
    for (std::uint32_t i = 0; i < options_.warmup && !stop_; ++i) run_one();
    result_.samples.clear();
    const std::int64_t begin = wait_for(options_.start, stop_);
    result_.start_ns = std::max(begin, now_ns());
    schedule_ = Schedule(options_.arrival, options_.period_us, options_.burst, options_.seed, begin);
    deadline_ = options_.seconds > 0 ? begin + static_cast<std::int64_t>(options_.seconds * 1e9) : kNever;
    if (options_.announce) std::fputs("started\n", stderr);
    while (step()) {
    }
    result_.end_ns = result_.samples.empty() ? now_ns() : result_.samples.back().complete_ns;
    clean_all();
    if (options_.check == Check::kLast || device_check_) check_one_more();
    if (result_.checked != 0) result_.output_hash = bench_.hash_of_last();
    return std::move(result_);
  }

 private:
  /// One move of the run, the most urgent one; false when nothing is left to do.
  bool step() {
    const std::int64_t now = now_ns();
    const bool more = !stop_ && now < deadline_ && (options_.count == 0 || issued_ < options_.count);
    if (!more && flights_.empty()) return false;
    const std::int64_t due = schedule_.due_ns();
    if (more && flights_.size() < limit_ && !ready_.empty() && now >= due) {
      issue(options_.arrival == Arrival::kBackToBack ? now : due);
    } else if (!dirty_.empty()) {
      clean();
    } else if (flights_.empty()) {
      sleep_until_ns(std::min({due, deadline_, now + kLongestSleepNs}));
    } else if (!more || flights_.size() == limit_ || due <= now) {
      CUDA_CALL(cuEventSynchronize, end_of_oldest());
      land();
    } else {
      poll(now, due);
    }
    return true;
  }

  void poll(std::int64_t now, std::int64_t due) {
    const CUresult state = driver().cuEventQuery(end_of_oldest());
    if (state == CUDA_ERROR_NOT_READY) return sleep_until_ns(std::min(due, now + kStreamPollNs));
    check(state, "cuEventQuery");
    land();
  }

  CUevent end_of_oldest() { return ends_[flights_.front().output].get(); }

  void issue(std::int64_t due) {
    const std::size_t output = ready_.front();
    ready_.pop_front();
    const CUstream stream = streams_[issued_ % streams_.size()]->get();
    Flight flight{.output = output, .sample = {.due_ns = due}};
    if (hints_) flight.sample.hint = hints_->give();
    if (options_.gpu_time) CUDA_CALL(cuEventRecord, starts_[output].get(), stream);
    flight.sample.issue_ns = now_ns();
    bench_.launch(output, stream);
    flight.sample.issued_ns = now_ns();
    CUDA_CALL(cuEventRecord, ends_[output].get(), stream);
    flights_.push_back(flight);
    ++issued_;
    schedule_.advance();
  }

  /// The oldest launch is complete.
  void land() {
    Flight flight = flights_.front();
    flights_.pop_front();
    flight.sample.complete_ns = now_ns();
    flight.sample.gpu_us = 0;
    if (options_.gpu_time) {
      float milliseconds = 0;
      CUDA_CALL(cuEventElapsedTime, &milliseconds, starts_[flight.output].get(), ends_[flight.output].get());
      flight.sample.gpu_us = milliseconds * 1000.0;
    }
    schedule_.completed(flight.sample.complete_ns);
    result_.samples.push_back(flight.sample);
    dirty_.push_back({flight.output, true});
  }

  /// Checks the result in a used output, if there is one, and makes it ready for the next launch.
  void clean() {
    const auto [output, holds_result] = dirty_.front();
    dirty_.pop_front();
    if (device_check_) {
      if (holds_result) count(device_check_->verify(output));
      device_check_->poison(output);
    } else if (options_.check == Check::kAll) {
      if (holds_result) count(bench_.verify(output));
      bench_.poison(output);
    }
    ready_.push_back(output);
  }

  void clean_all() {
    while (!dirty_.empty()) clean();
  }

  void count(const std::optional<std::string>& wrong) {
    ++result_.checked;
    if (wrong && result_.mismatches++ == 0) result_.first_mismatch = *wrong;
  }

  void run_one() {
    const std::uint64_t issued = issued_;
    issue(now_ns());
    CUDA_CALL(cuEventSynchronize, end_of_oldest());
    land();
    clean_all();
    issued_ = issued;
  }

  void check_one_more() {
    const std::vector<Sample> measured = std::move(result_.samples);
    const std::size_t output = ready_.front();
    bench_.poison(output);
    issue(now_ns());
    CUDA_CALL(cuEventSynchronize, end_of_oldest());
    land();
    count(bench_.verify(output));
    result_.samples = measured;
  }

  Workbench& bench_;
  std::optional<DeviceCheck> device_check_;
  std::optional<PriorityHints> hints_;
  const RunOptions& options_;
  const std::atomic<bool>& stop_;
  const std::size_t limit_;
  Schedule schedule_;
  std::int64_t deadline_ = kNever;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<Event> starts_;
  std::vector<Event> ends_;
  std::deque<std::size_t> ready_;  ///< outputs that a launch may use
  std::deque<UsedOutput> dirty_;   ///< outputs to be cleaned first
  std::deque<Flight> flights_;     ///< in order of issue
  std::uint64_t issued_ = 0;
  RunResult result_;
};

}  // namespace

std::size_t outputs_needed(const RunOptions& options) {
  const std::size_t in_flight = std::size_t{options.depth} * options.streams;
  return in_flight > 1 ? in_flight + 1 : 1;
}

RunResult run(Workbench& bench, const RunOptions& options, const std::atomic<bool>& stop) {
  return Runner(bench, options, stop).run();
}

}  // namespace gpuctl::bench
