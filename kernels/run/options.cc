#include "kernels/run/options.h"

#include <CLI/CLI.hpp>
#include <map>

namespace gpuctl::bench {
namespace {

constexpr int kUsageStatus = 2;
constexpr std::uint32_t kMostExtent = 4'000'000'000;

template <class Value>
using Names = std::map<std::string, Value>;

const Names<Size> kSizes = {{"trivial", Size::kTrivial}, {"small", Size::kSmall}, {"large", Size::kLarge}};
const Names<Arrival> kArrivals = {{"back-to-back", Arrival::kBackToBack},
                                  {"periodic", Arrival::kPeriodic},
                                  {"poisson", Arrival::kPoisson},
                                  {"bursts", Arrival::kBursts},
                                  {"apart", Arrival::kApart}};
const Names<Check> kChecks = {
    {"all", Check::kAll}, {"device", Check::kDevice}, {"last", Check::kLast}, {"none", Check::kNone}};
const Names<Priority> kPriorities = {{"none", Priority::kNone}, {"low", Priority::kLow}, {"high", Priority::kHigh}};

/// An option that takes one of a few words.
template <class Value>
void add_choice(CLI::App& app, const std::string& name, Value& value, const Names<Value>& names,
                const std::string& help) {
  std::string words;
  for (const auto& [word, unused] : names) words += (words.empty() ? "" : "|") + word;
  app.add_option_function<std::string>(
         name, [&value, &names](const std::string& word) { value = names.at(word); }, help)
      ->check(CLI::IsMember(names))
      ->option_text(words);
}

void add_run_options(CLI::App& app, Options& options, std::string& kernel) {
  RunOptions& run = options.run;
  app.add_option("kernel", kernel, "which kernel (see list)")->required();
  add_choice(app, "--size", options.size, kSizes, "size of the inputs (default trivial)");
  app.add_option("--extent", options.given_extent, "size of the inputs in numbers, as list shows them: X[,Y[,Z]]")
      ->delimiter(',')
      ->expected(1, 3)
      ->check(CLI::Range(1u, kMostExtent))
      ->excludes("--size");
  app.add_option("--blocks", options.blocks, "work: blocks of 256 threads")->check(CLI::Range(1u, 1u << 22));
  app.add_option("--iterations", options.iterations, "work: iterations of each thread")
      ->check(CLI::Range(1u, 1u << 28));
  app.add_option("--task-us", options.targets.task_us, "work: choose iterations so that a block-task takes this long")
      ->check(CLI::PositiveNumber);
  app.add_option(
         "--calibrate-us", options.targets.kernel_us,
         "work: choose iterations (with --task-us: blocks) so that a kernel alone takes this long; other kernels: "
         "choose --repeat")
      ->check(CLI::PositiveNumber);
  app.add_option("--repeat", options.repeat, "how often each launch does its blocks, in a deeper grid (default 1)")
      ->check(CLI::Range(1u, kMostRepeats))
      ->excludes("--calibrate-us");
  app.add_option("--count", run.count, "launches to make")->check(CLI::PositiveNumber);
  app.add_option("--seconds", run.seconds, "time in which launches are issued")->check(CLI::PositiveNumber);
  add_choice(app, "--arrival", run.arrival, kArrivals, "when launches are issued (default back-to-back)");
  app.add_option("--period-us", run.period_us,
                 "periodic, bursts: from one to the next; poisson: the mean; apart: from the end of one to the next "
                 "(default 1000)")
      ->check(CLI::PositiveNumber);
  app.add_option("--burst", run.burst, "bursts: launches of each (default 1)")->check(CLI::Range(1u, 1u << 20));
  app.add_option("--depth", run.depth, "launches in flight, per stream (default 1)")->check(CLI::Range(1, 1024));
  app.add_option("--streams", run.streams, "streams, used in turn (default 1)")->check(CLI::Range(1, 128));
  add_choice(app, "--check", run.check, kChecks,
             "which results are compared with the CPU's; device: all, on the GPU (default all)");
  add_choice(app, "--priority", run.priority, kPriorities, "priority of the streams (default none)");
  app.add_option("--hints", run.hints, "before each launch, a priority hint that is drawn from LEAST to GREATEST")
      ->delimiter(',')
      ->check(CLI::Range(-100, 100))
      ->option_text("LEAST,GREATEST");
  app.add_flag("--gpu-time,!--no-gpu-time", run.gpu_time, "time each launch by events too (default yes)");
  app.add_option("--warmup", run.warmup, "launches before the measured ones (default 2)");
  app.add_option("--start-at", run.start.at_ns, "first measured launch at this CLOCK_MONOTONIC time, nanoseconds");
  app.add_flag("--start-on-input", run.start.on_input,
               "write \"ready\" to stderr, then read the time to start at from standard input")
      ->excludes("--start-at");
  app.add_flag("--announce", run.announce, "write \"started\" to stderr when the measured launches begin");
  app.add_option("--seed", run.seed, "of the inputs and of poisson arrivals (default 1)");
  app.add_flag("--json", options.json, "print one JSON object");
  app.add_option("--samples", options.samples, "write one line per launch to this file, times in nanoseconds");
}

/// What CLI11 cannot see in one option alone; throws CLI::ValidationError.
void validate(Options& options, const std::string& kernel) {
  options.kernel = find_kernel(kernel);
  if (options.kernel == nullptr)
    throw CLI::ValidationError("kernel", "no kernel is called " + kernel + "; see gpuslice-bench list");
  const Extent& usual = options.kernel->sizes[0];
  const std::size_t dimensions = usual.z != 0 ? 3 : usual.y != 0 ? 2 : 1;
  if (!options.given_extent.empty() && options.given_extent.size() != dimensions) {
    throw CLI::ValidationError("--extent", "of " + kernel + " is " + std::string(options.kernel->extent));
  }
  const bool calibrated = options.targets.task_us || options.targets.kernel_us;
  if (!options.kernel->tunable && (options.blocks || options.iterations || options.targets.task_us)) {
    throw CLI::ValidationError(kernel, "takes a --size or --extent only; blocks, iterations and tasks are for work");
  }
  if (options.iterations && calibrated) {
    throw CLI::ValidationError("--iterations", "is what --task-us and --calibrate-us choose: give one of them");
  }
  if (options.blocks && options.targets.task_us && options.targets.kernel_us) {
    throw CLI::ValidationError("--blocks", "is what --calibrate-us chooses with --task-us: give one of them");
  }
  if (options.run.arrival == Arrival::kApart && options.run.depth * options.run.streams > 1) {
    throw CLI::ValidationError("--arrival", "apart has one launch in flight");
  }
  if (options.run.hints && options.run.hints->first > options.run.hints->second) {
    throw CLI::ValidationError("--hints", "are the least and the greatest");
  }
  if (options.run.count == 0 && options.run.seconds == 0) options.run.count = 10;
}

}  // namespace

Extent Options::extent() const {
  Extent extent = kernel->sizes[static_cast<std::size_t>(size)];
  if (!given_extent.empty()) {
    extent.x = given_extent[0];
    if (given_extent.size() > 1) extent.y = given_extent[1];
    if (given_extent.size() > 2) extent.z = given_extent[2];
  }
  if (blocks) extent.x = *blocks;
  if (iterations) extent.y = *iterations;
  return extent;
}

Parsed parse_options(int argc, char** argv) {
  CLI::App app("Runs a kernel in a loop on the first GPU, checks every result and reports latencies and throughput.");
  app.name("gpuslice-bench");
  app.require_subcommand(1);
  app.footer(
      "Exit status: 0 all results right, 1 the run failed, 2 wrong usage, 3 a result was wrong.\n"
      "The first SIGINT or SIGTERM ends the run early, and what was measured until then is printed; the second ends it "
      "at once.");
  Options options;
  std::string kernel;
  CLI::App* list = app.add_subcommand("list", "print the kernels, their parameters and sizes");
  list->add_flag("--json", options.json, "print one JSON object");
  CLI::App* run = app.add_subcommand("run", "run one kernel");
  add_run_options(*run, options, kernel);
  try {
    app.parse(argc, argv);
    if (run->parsed()) {
      options.verb = Options::Verb::kRun;
      validate(options, kernel);
    }
  } catch (const CLI::CallForHelp&) {
    app.exit(CLI::CallForHelp());
    return {std::nullopt, 0};
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "gpuslice-bench: %s\n", error.what());
    return {std::nullopt, kUsageStatus};
  }
  return {options, 0};
}

}  // namespace gpuctl::bench
