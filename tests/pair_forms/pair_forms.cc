// pair-forms [--size trivial|small|large] [--pairs N] KERNEL FILE...: a kernel of gpuslice-bench as it stands in each
// FILE, PTX that `gpuctl rewrite` made of kernels/KERNEL.ptx, or what somebody made of that; original against
// rewritten, by turns, in one process, without a daemon and without libgpuslice. So a change of the worker's text can
// be tried by hand, and what a piece of it costs be told to a tenth of a microsecond, before it is built.
//
// For each step of the kernel, it prints the time of a launch in both forms, the difference, and how the block-tasks
// were handed out; then whether both forms left the same output. Exit status: 0, 1 something failed, 2 wrong usage, 3
// the outputs differ.
#include <getopt.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/sm_range.h"
#include "kernels/run/workbench.h"
#include "libgpuslice/launch/chunks.h"

namespace {

using namespace gpuctl::bench;
using gpuctl::ptx::DeviceSlot;
using gpuctl::ptx::HostSlot;
using gpuctl::ptx::LaunchArgs;

constexpr double kTargetNs = 20'000;  // as gpuctl.toml has it for block-tasks
constexpr int kLaunches = 20;         // a burst
constexpr std::uint32_t kPairs = 30;  // of bursts
constexpr int kLearn = 6;             // launches until the block-task's duration is known well enough

/// Launch blocks, enough for a burst and for all steps of a kernel.
class Slots {
 public:
  /// They are all zero then. None may be in use.
  void reset(Workbench& workbench) {
    next_ = 0;
    workbench.upload(zero_, device_.address());
    std::memset(host_.data(), 0, kCount * sizeof(HostSlot));
  }
  void take(LaunchArgs& args) {
    args.slot = device_.address() + next_ * sizeof(DeviceSlot);
    args.host = reinterpret_cast<CUdeviceptr>(host_.data()) + next_ * sizeof(HostSlot);
    ++next_;
  }
  /// What a block-task of the last launch took.
  std::uint32_t task_ns() const {
    DeviceSlot slot;
    CUDA_CALL(cuMemcpyDtoH_v2, &slot, device_.address() + (next_ - 1) * sizeof slot, sizeof slot);
    return slot.task_ns;
  }

 private:
  static constexpr std::size_t kCount = 512;
  DeviceMemory device_{kCount * sizeof(DeviceSlot)};
  PinnedWords host_{kCount * sizeof(HostSlot) / sizeof(std::uint32_t)};
  Words zero_ = Words(kCount * sizeof(DeviceSlot) / sizeof(std::uint32_t));
  std::size_t next_ = 0;
};

/// The kernel on its workbench, and its steps in one form or the other.
class Pair {
 public:
  /// `spec` has the PTX of the file.
  Pair(const Gpu& gpu, const KernelSpec& spec, const Extent& extent)
      : gpu_(gpu), workbench_(spec, extent, 1, 1, false) {
    const gpuctl::Polled polled{
        static_cast<std::uint32_t>(gpu.sms()),
        {gpuctl::kNoLimit, gpuctl::kNoLimit, gpuctl::kNoLimit, gpuctl::kNoLimit, gpuctl::kNoLimit, gpuctl::kNoLimit}};
    std::memcpy(polled_.data(), &polled, sizeof polled);
    CUmodule module = load_module(spec.ptx);
    for (const Step& step : workbench_.problem().steps)
      find(step, module, std::string(step.entry.empty() ? spec.name : step.entry));
    for (std::size_t i = 0; i < steps_.size(); ++i) learn(i);
  }

  std::size_t steps() const { return steps_.size(); }

  /// Of the output of all steps, one after the other, in that form.
  std::uint64_t hash_of_output(bool rewritten) {
    run_before(steps_.size(), rewritten);
    workbench_.verify(0);  // without a reference it only reads back
    return workbench_.hash_of_last();
  }

  /// Prints a step's line.
  void measure(std::size_t index, const char* file, std::uint32_t pairs) {
    Prepared& step = steps_[index];
    if (step.persistent == nullptr) return void(std::printf("%s %s: has no rewritten form\n", file, step.name.c_str()));
    run_before(index, false);
    std::vector<double> plain, rewritten, more;
    for (std::uint32_t i = 0; i < pairs; ++i) {
      plain.push_back(burst_us(index, false));
      rewritten.push_back(burst_us(index, true));
      more.push_back(rewritten.back() - plain.back());
    }
    const double us = median(plain);
    std::printf(
        "%s %s: %.2f us, rewritten %+.2f us, %.4f; block-task %.0f ns, %u workers, chunks of %u to %u, quick below %u "
        "of %u\n",
        file, step.name.c_str(), us, median(more), median(rewritten) / us, step.task_ns, step.args.workers,
        step.args.chunk >> 16, step.args.chunk & 0xffff, step.args.quick_below, step.args.total);
  }

 private:
  struct Prepared {
    std::string name;
    Dim3 grid;
    CUfunction persistent;  ///< null: there is none
    std::uint32_t per_sm;
    LaunchArgs args;
    double task_ns;
  };

  void find(const Step& step, CUmodule module, const std::string& name) {
    Prepared prepared{name, step.grid, nullptr, 0, {}, 0};
    int per_sm = 0;
    const auto found =
        driver().cuModuleGetFunction(&prepared.persistent, module, (name + gpuctl::ptx::kPersistentSuffix).c_str());
    if (found == CUDA_SUCCESS)
      CUDA_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, &per_sm, prepared.persistent,
                static_cast<int>(step.block.count()), 0);
    prepared.per_sm = static_cast<std::uint32_t>(per_sm);
    steps_.push_back(prepared);
  }

  /// From fresh memory, the steps before that one: it may count on what they leave, and not bear their being run twice.
  void run_before(std::size_t index, bool rewritten) {
    workbench_.poison(0);
    slots_.reset(workbench_);
    for (std::size_t i = 0; i < index; ++i) launch(i, rewritten);
    CUDA_CALL(cuStreamSynchronize, stream_.get());
  }

  /// How long its block-tasks take, and so how they are to be handed out.
  void learn(std::size_t index) {
    Prepared& step = steps_[index];
    run_before(index, false);
    for (int i = 0; step.persistent != nullptr && i < kLearn; ++i) {
      plan(step);
      slots_.reset(workbench_);
      launch(index, true);
      CUDA_CALL(cuStreamSynchronize, stream_.get());
      if (const std::uint32_t ns = slots_.task_ns(); ns != 0) step.task_ns = ns;
    }
    if (step.persistent != nullptr) plan(step);
  }

  /// As libgpuslice does with all SMs granted.
  void plan(Prepared& step) {
    const std::array<std::uint32_t, 3> grid = {step.grid.x, step.grid.y, step.grid.z};
    const auto sms = static_cast<std::uint32_t>(gpu_.sms());
    const gpuslice::Chunks chunks =
        gpuslice::plan_chunks(grid, step.task_ns, std::uint64_t{sms} * step.per_sm, kTargetNs);
    step.args = gpuslice::lay_out(grid, chunks);
    step.args.polled = reinterpret_cast<CUdeviceptr>(polled_.data());
    step.args.range = sms << 16;
    gpuslice::set_workers(step.args, std::min(divide_up(step.args.total, chunks.most), sms * step.per_sm), true);
  }

  void launch(std::size_t index, bool rewritten) {
    Prepared& step = steps_[index];
    if (!rewritten || step.persistent == nullptr) return workbench_.launch_step(index, 0, stream_.get());
    slots_.take(step.args);
    const Workbench::Other form{step.persistent, {step.args.workers, 1, 1}, &step.args};
    workbench_.launch_step(index, 0, stream_.get(), &form);
  }

  /// Of one launch, of several back to back.
  double burst_us(std::size_t index, bool rewritten) {
    slots_.reset(workbench_);
    launch(index, rewritten);  // what comes behind finds the GPU at work
    CUDA_CALL(cuEventRecord, begin_.get(), stream_.get());
    for (int i = 0; i < kLaunches; ++i) launch(index, rewritten);
    CUDA_CALL(cuEventRecord, end_.get(), stream_.get());
    CUDA_CALL(cuEventSynchronize, end_.get());
    float ms = 0;
    CUDA_CALL(cuEventElapsedTime, &ms, begin_.get(), end_.get());
    return 1000.0 * ms / kLaunches;
  }

  static double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
  }

  const Gpu& gpu_;
  Workbench workbench_;
  PinnedWords polled_{sizeof(gpuctl::Polled) / sizeof(std::uint32_t)};
  Slots slots_;
  Stream stream_{Priority::kNone};
  Event begin_{true}, end_{true};
  std::vector<Prepared> steps_;
};

struct Options {
  std::string kernel;
  std::string size = "large";
  std::uint32_t pairs = kPairs;
  std::vector<std::string> files;
};

/// What the command line does not allow; one line.
struct WrongUsage : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::uint32_t number_of_pairs(std::string_view text) {
  std::uint32_t pairs = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pairs);
  if (error == std::errc() && end == text.data() + text.size() && pairs > 0) return pairs;
  throw WrongUsage("--pairs: '" + std::string(text) + "' is not a number of at least 1");
}

/// By hand: CLI11 would take ten seconds to compile for this one program.
Options read_options(int argc, char** argv) {
  static constexpr std::array<option, 3> kOptions = {
      {{"size", required_argument, nullptr, 's'}, {"pairs", required_argument, nullptr, 'p'}, {}}};
  Options options;
  opterr = 0;
  for (int found; (found = getopt_long(argc, argv, "", kOptions.data(), nullptr)) != -1;) {
    if (found == 's') {
      options.size = optarg;
    } else if (found == 'p') {
      options.pairs = number_of_pairs(optarg);
    } else {
      throw WrongUsage("usage: pair-forms [--size trivial|small|large] [--pairs N] KERNEL FILE...");
    }
  }
  if (std::ranges::find(kSizeNames, options.size) == std::end(kSizeNames))
    throw WrongUsage("--size: " + options.size + " not in trivial, small, large");
  if (argc - optind < 2) throw WrongUsage("needs KERNEL and at least one FILE");
  options.kernel = argv[optind];
  if (find_kernel(options.kernel) == nullptr)
    throw WrongUsage("KERNEL: " + options.kernel + " not in gpuslice-bench list");
  options.files.assign(argv + optind + 1, argv + argc);
  for (const std::string& file : options.files)
    if (!std::filesystem::is_regular_file(file)) throw WrongUsage("FILE: " + file + " is not a file");
  return options;
}

int run(const Options& options) {
  const Gpu gpu;
  const KernelSpec& spec = *find_kernel(options.kernel);
  const Extent& extent =
      spec.sizes[static_cast<std::size_t>(std::ranges::find(kSizeNames, options.size) - kSizeNames.begin())];
  bool same = true;
  for (const std::string& file : options.files) {
    std::ifstream in(file);
    const std::string ptx{std::istreambuf_iterator<char>(in), {}};
    KernelSpec in_file = spec;
    in_file.ptx = ptx;
    Pair pair(gpu, in_file, extent);
    for (std::size_t i = 0; i < pair.steps(); ++i) pair.measure(i, file.c_str(), options.pairs);
    const bool equal = pair.hash_of_output(false) == pair.hash_of_output(true);
    std::printf("%s: %s\n", file.c_str(), equal ? "both forms leave the same" : "THE OUTPUTS DIFFER");
    same = same && equal;
  }
  return same ? 0 : 3;
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    return run(read_options(argc, argv));
  } catch (const WrongUsage& wrong) {
    std::fprintf(stderr, "pair-forms: %s\n", wrong.what());
    return 2;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "pair-forms: %s\n", failure.what());
    return 1;
  }
}
