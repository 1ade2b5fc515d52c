#include "kernels/run/report.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cinttypes>
#include <functional>

#include "kernels/timing/statistics.h"

namespace gpuctl::bench {
namespace {

namespace json = boost::json;

template <class Value>
Summary summarize_by(const RunResult& result, Value value) {
  std::vector<double> values;
  values.reserve(result.samples.size());
  for (const Sample& sample : result.samples) values.push_back(value(sample));
  return summarize(std::move(values));
}

Summary latency(const RunResult& result) {
  return summarize_by(result, [](const Sample& s) { return (s.complete_ns - s.issue_ns) / 1000.0; });
}
Summary response(const RunResult& result) {
  return summarize_by(result, [](const Sample& s) { return (s.complete_ns - s.due_ns) / 1000.0; });
}
Summary gpu_time(const RunResult& result) {
  return summarize_by(result, [](const Sample& s) { return s.gpu_us; });
}
double launch_call(const RunResult& result) {
  return summarize_by(result, [](const Sample& s) { return (s.issued_ns - s.issue_ns) / 1000.0; }).p50;
}

double window_seconds(const RunResult& result) {
  return static_cast<double>(result.end_ns - result.start_ns) / 1e9;
}
double kernels_per_second(const RunResult& result) {
  const double seconds = window_seconds(result);
  return seconds > 0 ? static_cast<double>(result.samples.size()) / seconds : 0;
}

json::object to_json(const Summary& summary) {
  return {
      {"p50", summary.p50}, {"p90", summary.p90}, {"p99", summary.p99}, {"max", summary.max}, {"mean", summary.mean}};
}
json::array to_json(const Dim3& dim) {
  return {dim.x, dim.y, dim.z};
}
json::array to_json(const Extent& extent) {
  return {extent.x, extent.y, extent.z};
}

/// The step with the most blocks, the first of them.
const Step& widest_step(const Problem& problem) {
  return *std::ranges::max_element(problem.steps, {}, [](const Step& step) { return step.grid.count(); });
}

std::string hex(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, value);
  return text;
}

std::string extent_text(const Extent& extent) {
  std::string text = std::to_string(extent.x);
  if (extent.y != 0) text += " x " + std::to_string(extent.y);
  if (extent.z != 0) text += " x " + std::to_string(extent.z);
  return text;
}

void print_summary(const char* name, const Summary& s, std::FILE* out) {
  std::fprintf(out, "%-18s %10.1f %10.1f %10.1f %10.1f %10.1f\n", name, s.p50, s.p90, s.p99, s.max, s.mean);
}

}  // namespace

void print_table(const Report& report, std::FILE* out) {
  const RunResult& result = report.result;
  const Dim3& grid = widest_step(report.problem).grid;
  std::fprintf(out, "%s (%s: %s), grid %u x %u x %u", std::string(report.spec.name).c_str(),
               std::string(report.spec.extent).c_str(), extent_text(report.extent).c_str(), grid.x, grid.y, grid.z);
  if (report.problem.steps.size() > 1) std::fprintf(out, " at most in %zu steps", report.problem.steps.size());
  std::fprintf(out, ", on %s (%d SMs)\n", report.gpu.name().c_str(), report.gpu.sms());
  std::fprintf(out, "%-18s %10s %10s %10s %10s %10s\n", "microseconds", "p50", "p90", "p99", "max", "mean");
  print_summary("latency", latency(result), out);
  if (report.options.arrival != Arrival::kBackToBack) print_summary("response", response(result), out);
  if (report.options.gpu_time) print_summary("GPU time", gpu_time(result), out);
  std::fprintf(out, "launch call %.2f us (median)\n", launch_call(result));
  const double rate = kernels_per_second(result);
  std::fprintf(out, "%zu launches in %.3f s: %.1f kernels/s, %.0f block-tasks/s\n", result.samples.size(),
               window_seconds(result), rate, rate * static_cast<double>(report.problem.block_tasks()));
  std::fprintf(out, "%" PRIu64 " results checked, %" PRIu64 " wrong", result.checked, result.mismatches);
  if (result.checked != 0) std::fprintf(out, ", output hash %s", hex(result.output_hash).c_str());
  std::fprintf(out, "\n");
  if (!result.first_mismatch.empty()) std::fprintf(out, "first wrong: %s\n", result.first_mismatch.c_str());
}

void print_json(const Report& report, std::FILE* out) {
  const RunResult& result = report.result;
  const double rate = kernels_per_second(result);
  const std::uint64_t blocks = report.problem.block_tasks();
  const Step& widest = widest_step(report.problem);
  const json::object object = {
      {"kernel", report.spec.name},
      {"device", report.gpu.name()},
      {"sms", report.gpu.sms()},
      {"grid", to_json(widest.grid)},
      {"block", to_json(widest.block)},
      {"steps", report.problem.steps.size()},
      {"block_tasks", blocks},
      {"extent", to_json(report.extent)},
      {"repeats", report.repeats},
      {"launches", result.samples.size()},
      {"window_s", window_seconds(result)},
      {"kernels_per_s", rate},
      {"block_tasks_per_s", rate * static_cast<double>(blocks)},
      {"latency_us", to_json(latency(result))},
      {"response_us", to_json(response(result))},
      {"gpu_us", report.options.gpu_time ? json::value(to_json(gpu_time(result))) : json::value(nullptr)},
      {"launch_call_us", launch_call(result)},
      {"checked", result.checked},
      {"mismatches", result.mismatches},
      {"first_mismatch", result.first_mismatch.empty() ? json::value(nullptr) : json::value(result.first_mismatch)},
      {"output_hash", result.checked != 0 ? json::value(hex(result.output_hash)) : json::value(nullptr)},
  };
  std::fprintf(out, "%s\n", json::serialize(object).c_str());
}

void write_samples(const RunResult& result, bool hints, const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) throw Failure("--samples: cannot write " + path);
  std::fprintf(file, "due_ns issue_ns issued_ns complete_ns gpu_us%s\n", hints ? " hint" : "");
  for (const Sample& s : result.samples) {
    std::fprintf(file, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %.3f", s.due_ns, s.issue_ns, s.issued_ns,
                 s.complete_ns, s.gpu_us);
    if (hints) std::fprintf(file, " %d", s.hint);
    std::fputc('\n', file);
  }
  if (std::fclose(file) != 0) throw Failure("--samples: cannot write " + path);
}

void print_kernels(std::span<const KernelSpec> kernels, bool as_json, std::FILE* out) {
  json::array rows;
  for (const KernelSpec& spec : kernels) {
    json::object sizes;
    for (std::size_t i = 0; i < kSizeNames.size(); ++i) sizes[kSizeNames[i]] = to_json(spec.sizes[i]);
    rows.push_back(json::object{{"name", spec.name},
                                {"papers", spec.papers},
                                {"parameters", spec.parameters},
                                {"extent", spec.extent},
                                {"sizes", sizes}});
    if (as_json) continue;
    std::fprintf(out, "%s(%s)\n", std::string(spec.name).c_str(), std::string(spec.parameters).c_str());
    if (!spec.papers.empty()) std::fprintf(out, "  as in %s\n", std::string(spec.papers).c_str());
    std::fprintf(out, "  %s:", std::string(spec.extent).c_str());
    for (std::size_t i = 0; i < kSizeNames.size(); ++i) {
      std::fprintf(out, "%s %s %s", i == 0 ? "" : ",", std::string(kSizeNames[i]).c_str(),
                   extent_text(spec.sizes[i]).c_str());
    }
    std::fprintf(out, "\n");
  }
  if (as_json) std::fprintf(out, "%s\n", json::serialize(json::object{{"kernels", rows}}).c_str());
}

}  // namespace gpuctl::bench
