#include "gpuctl/simulate/workload_file.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <map>
#include <sstream>

#include "base/regular_file.h"

namespace gpuctl::cli {

namespace {

using sched::Application;
using sched::CapSM;
using sched::Time;
using sched::Workload;

constexpr std::size_t kMostWorkloadBytes = 64u << 20;  // a million launches take less
constexpr double kMsPerYear = 3.2e10;  // more than a simulation needs, and it fits into 64 bits of nanoseconds

std::string plain(double v) {
  std::ostringstream text;
  text << v;
  return text.str();
}

/// Remembers the first problem; what is read after it does not matter.
class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  Result<Workload> read(const toml::table& root) {
    known(root, "", {"title", "seeds", "device", "arrivals", "application"});
    string(root, "", "title", workload_.title);
    number(
        root, "", "seeds", 1, 1e6, [&](double v) { workload_.seeds = static_cast<std::uint32_t>(v); }, true);
    if (const toml::table* device = table(root, "device")) read_device(*device);
    if (const toml::table* arrivals = table(root, "arrivals")) read_arrivals(*arrivals);
    const toml::node* applications = root.get("application");
    const toml::array* list = applications ? applications->as_array() : nullptr;
    if (list == nullptr || list->empty() || !list->is_array_of_tables()) {
      problem(applications ? applications->source() : root.source(), "application",
              "at least one [[application]] is needed");
    } else {
      for (const toml::node& item : *list) read_application(*item.as_table());
      admit(applications->source());
    }
    if (!error_.empty()) return fail(error_);
    return std::move(workload_);
  }

 private:
  void problem(const toml::source_region& at, const std::string& field, const std::string& reason) {
    if (error_.empty())
      error_ = file_ + ":" + std::to_string(at.begin.line) + ":" + std::to_string(at.begin.column) + ": " + field +
               ": " + reason;
  }

  void known(const toml::table& in, const std::string& prefix, std::initializer_list<std::string_view> keys) {
    for (const auto& [key, value] : in) {
      if (std::find(keys.begin(), keys.end(), key.str()) != keys.end()) continue;
      std::string list;
      for (const std::string_view k : keys) list.append(list.empty() ? "" : ", ").append(k);
      problem(key.source(), prefix + std::string(key.str()), "unknown key; known: " + list);
    }
  }

  const toml::table* table(const toml::table& in, const char* key) {
    const toml::node* node = in.get(key);
    if (node != nullptr && !node->is_table())
      problem(node->source(), key, "must be a table: [" + std::string(key) + "]");
    return node ? node->as_table() : nullptr;
  }

  void string(const toml::table& in, const std::string& prefix, const char* key, std::string& result) {
    const toml::node* node = in.get(key);
    if (node == nullptr) return;
    if (auto value = node->value_exact<std::string>())
      result = *value;
    else
      problem(node->source(), prefix + key, "must be a string");
  }

  std::optional<double> checked(const toml::node& node, const std::string& field, double least, double most,
                                bool whole) {
    const auto value = node.is_number() ? node.value<double>() : std::nullopt;
    if (!value) {
      problem(node.source(), field, "must be a number");
    } else if (!(*value >= least && *value <= most) || (whole && *value != std::floor(*value))) {
      problem(node.source(), field,
              std::string("must be a ") + (whole ? "whole number" : "number") + " from " + plain(least) + " to " +
                  plain(most) + ", not " + plain(*value));
    } else {
      return value;
    }
    return std::nullopt;
  }

  void number(const toml::table& in, const std::string& prefix, const char* key, double least, double most,
              const std::function<void(double)>& store, bool whole = false) {
    const toml::node* node = in.get(key);
    if (node == nullptr) return;
    if (const auto value = checked(*node, prefix + key, least, most, whole)) store(*value);
  }

  void span(const toml::table& in, const std::string& prefix, const char* key, double ns_per_unit, bool positive,
            const std::function<void(Time)>& store) {
    const double most = kMsPerYear * 1e6 / ns_per_unit;
    number(in, prefix, key, positive ? 1 / ns_per_unit : 0, most,
           [&](double v) { store(Time{std::llround(v * ns_per_unit)}); });
  }

  void turns(const toml::table& in, const std::string& prefix, const std::function<void(Time)>& store) {
    constexpr double kLeastUs = 1;  // as gpuctld has it
    number(in, prefix, "turn_us", kLeastUs, kMsPerYear * 1e3, [&](double us) { store(Time{std::llround(us * 1e3)}); });
  }

  void read_device(const toml::table& device) {
    known(device, "device.",
          {"count", "capsm", "compute_capability", "preempt_us", "dispatch_us", "turn_us", "switch_us"});
    number(
        device, "device.", "count", 1, 100000, [&](double v) { workload_.devices = static_cast<std::uint32_t>(v); },
        true);
    number(
        device, "device.", "capsm", 1, 10000, [&](double v) { workload_.capsm = CapSM{static_cast<std::uint32_t>(v)}; },
        true);
    read_capability(device);
    span(device, "device.", "preempt_us", 1e3, false, [&](Time t) { workload_.preempt = t; });
    span(device, "device.", "dispatch_us", 1e3, false, [&](Time t) { workload_.dispatch = t; });
    turns(device, "device.", [&](Time t) { workload_.turn = t; });
    span(device, "device.", "switch_us", 1e3, false, [&](Time t) { workload_.switch_cost = t; });
  }

  // With it applications share each SM, so a device is as large as one SM.
  void read_capability(const toml::table& device) {
    const toml::node* node = device.get("compute_capability");
    if (node == nullptr) return;
    std::string capability;
    string(device, "device.", "compute_capability", capability);
    workload_.sm = sched::sm_limits(capability);
    if (!workload_.sm)
      return problem(node->source(), "device.compute_capability",
                     "must be one of " + std::string(sched::known_compute_capabilities()));
    if (device.get("capsm") != nullptr)
      problem(device.get("capsm")->source(), "device.capsm", "has no meaning with device.compute_capability");
    workload_.capsm = CapSM{workload_.sm->blocks};
  }

  void read_block(const toml::table& in, Application& app) {
    const std::string p = "application.";
    for (const char* key : {"threads", "registers", "shared", "barriers", "issue"})
      if (!workload_.sm && in.get(key) != nullptr)
        problem(in.get(key)->source(), p + key, "needs device.compute_capability");
    const auto whole = [&](const char* key, double least, double most, std::uint32_t& value) {
      number(
          in, p, key, least, most, [&](double v) { value = static_cast<std::uint32_t>(v); }, true);
    };
    whole("threads", 1, 1024, app.block.threads);
    whole("registers", 0, 255, app.block.registers);
    whole("shared", 0, 1 << 20, app.block.shared);
    whole("barriers", 0, 16, app.block.barriers);
    number(in, p, "issue", 0, 1, [&](double v) { app.issue = v; });
    if (!workload_.sm) return;
    if (in.get("threads") == nullptr) problem(in.source(), p + "threads", "is needed with device.compute_capability");
    const std::uint32_t most = sched::most_blocks(*workload_.sm, app.block);
    if (most == 0) problem(in.source(), p + "threads", "an SM of device.compute_capability holds no such block");
    if (app.need.count > most)
      problem(in.source(), p + (app.curve.empty() ? "capsm" : "curve"),
              "counts " + plain(app.need.count) + " workers on each SM, which holds " + plain(most));
  }

  void read_arrivals(const toml::table& arrivals) {
    known(arrivals, "arrivals.", {"order", "gap_ms", "until_ms", "prediction_error"});
    std::string order = "listed";
    string(arrivals, "arrivals.", "order", order);
    if (order == "listed")
      workload_.order = sched::Order::listed;
    else if (order == "shuffled")
      workload_.order = sched::Order::shuffled;
    else if (order == "poisson")
      workload_.order = sched::Order::poisson;
    else
      problem(arrivals.get("order")->source(), "arrivals.order",
              "must be listed, shuffled or poisson, not \"" + order + "\"");
    span(arrivals, "arrivals.", "gap_ms", 1e6, false, [&](Time t) { workload_.gap = t; });
    span(arrivals, "arrivals.", "until_ms", 1e6, true, [&](Time t) { workload_.until = t; });
    number(arrivals, "arrivals.", "prediction_error", 0, 2, [&](double v) { workload_.prediction_error = v; });
  }

  void read_application(const toml::table& in) {
    const std::string p = "application.";
    known(in, p, {"name",   "alone_ms", "vary",         "deviation", "task_us",   "preempt_us", "capsm",
                  "curve",  "start_ms", "priority",     "weight",    "instances", "repeat",     "think_ms",
                  "device", "reserve",  "reserve_mode", "max",       "latency",   "threads",    "registers",
                  "shared", "barriers", "issue",        "isolated",  "turn_us"});
    Application app;
    app.name = "application " + std::to_string(workload_.applications.size() + 1);
    string(in, p, "name", app.name);
    span(in, p, "alone_ms", 1e6, true, [&](Time t) { app.alone = t; });
    std::string vary = "none";
    string(in, p, "vary", vary);
    if (vary == "exponential")
      app.vary = sched::Vary::exponential;
    else if (vary == "lognormal")
      app.vary = sched::Vary::lognormal;
    else if (vary != "none")
      problem(in.get("vary")->source(), p + "vary", "must be none, exponential or lognormal, not \"" + vary + "\"");
    number(in, p, "deviation", 0, 10, [&](double v) { app.deviation = v; });
    span(in, p, "task_us", 1e3, false, [&](Time t) { app.task = t; });
    span(in, p, "preempt_us", 1e3, false, [&](Time t) { app.preempt = t; });
    number(
        in, p, "capsm", 1, 10000, [&](double v) { app.need = CapSM{static_cast<std::uint32_t>(v)}; }, true);
    read_curve(in, app);
    read_block(in, app);
    if (app.alone == Time{0}) problem(in.source(), p + "alone_ms", "is needed (or a curve)");
    span(in, p, "start_ms", 1e6, false, [&](Time t) { app.start = t; });
    read_priority(in, app);
    number(
        in, p, "weight", 1, 10000, [&](double v) { app.weight = static_cast<std::uint32_t>(v); }, true);
    number(
        in, p, "instances", 1, 1e7, [&](double v) { app.instances = static_cast<std::uint32_t>(v); }, true);
    read_repeat(in, app);
    span(in, p, "think_ms", 1e6, false, [&](Time t) { app.think = t; });
    number(
        in, p, "device", 0, workload_.devices - 1, [&](double v) { app.device = static_cast<std::uint32_t>(v); }, true);
    const auto capsm = [](double v) { return CapSM{static_cast<std::uint32_t>(v)}; };
    number(
        in, p, "reserve", 0, workload_.capsm.count, [&](double v) { app.limits.reserve = capsm(v); }, true);
    number(
        in, p, "max", 1, 10000, [&](double v) { app.limits.max = capsm(v); }, true);
    std::string mode = "strict";
    string(in, p, "reserve_mode", mode);
    app.limits.strict = mode == "strict";
    if (mode != "strict" && mode != "active")
      problem(in.get("reserve_mode")->source(), p + "reserve_mode", "must be strict or active, not \"" + mode + "\"");
    if (const toml::node* node = in.get("isolated")) {
      if (const auto value = node->value_exact<bool>())
        app.isolated = *value;
      else
        problem(node->source(), p + "isolated", "must be true or false");
    }
    turns(in, p, [&](Time t) { app.turn = t; });
    if (app.turn && !app.isolated) problem(in.get("turn_us")->source(), p + "turn_us", "needs isolated = true");
    std::string latency = "none";
    string(in, p, "latency", latency);
    if (const auto target = parse_latency(latency))
      app.latency = *target;
    else
      problem(in.get("latency")->source(), p + "latency", "must be " + std::string(kLatencyForm));
    if (app.limits.reserve > app.limits.max)
      problem(in.get("reserve")->source(), p + "reserve", "is more than its max");
    workload_.applications.push_back(std::move(app));
  }

  /// No device may have more reserved than it has. An application that is not pinned may come to any device.
  void admit(const toml::source_region& at) {
    std::uint32_t anywhere = 0, most = 0;
    std::map<std::uint32_t, std::uint32_t> pinned;
    for (const Application& app : workload_.applications) {
      if (!app.device)
        anywhere += app.limits.reserve.count;
      else
        most = std::max(most, pinned[*app.device] += app.limits.reserve.count);
    }
    if (anywhere + most > workload_.capsm.count)
      problem(at, "application.reserve",
              "together more than the " + plain(workload_.capsm.count) + " CapSM of a device");
  }

  void read_priority(const toml::table& in, Application& app) {
    const toml::node* node = in.get("priority");
    if (node == nullptr) return;
    const auto one = [&](const toml::node& n) {
      return static_cast<std::int32_t>(checked(n, "application.priority", -100, 100, true).value_or(0));
    };
    const toml::array* range = node->as_array();
    if (range == nullptr) {
      app.priority = one(*node);
    } else if (range->size() != 2) {
      problem(node->source(), "application.priority", "must be a number, or [lowest, highest] to draw from");
    } else {
      app.random_priority = {one((*range)[0]), one((*range)[1])};
      if (app.random_priority->first > app.random_priority->second)
        problem(node->source(), "application.priority", "the lowest comes first");
    }
  }

  void read_repeat(const toml::table& in, Application& app) {
    const toml::node* node = in.get("repeat");
    if (node == nullptr) return;
    if (const auto text = node->value_exact<std::string>()) {
      if (*text != "endless") problem(node->source(), "application.repeat", "must be a number or \"endless\"");
      app.endless = true;
      if (workload_.until == sched::kNever)
        problem(node->source(), "application.repeat", "\"endless\" needs arrivals.until_ms");
      return;
    }
    if (const auto value = checked(*node, "application.repeat", 1, 1e9, true))
      app.repeat = static_cast<std::uint64_t>(*value);
  }

  // [[CapSM, ms], ...]. Without alone_ms the fastest point is the time alone.
  void read_curve(const toml::table& in, Application& app) {
    const toml::node* node = in.get("curve");
    if (node == nullptr) return;
    const char* shape = "must be a list of [CapSM, ms], each with more CapSM and less time than the one before";
    const toml::array* points = node->as_array();
    if (points == nullptr || points->empty()) return problem(node->source(), "application.curve", shape);
    for (const toml::node& item : *points) {
      const toml::array* pair = item.as_array();
      if (pair == nullptr || pair->size() != 2) return problem(item.source(), "application.curve", shape);
      const auto capsm = checked((*pair)[0], "application.curve", 1, 10000, true);
      const auto ms = checked((*pair)[1], "application.curve", 1e-6, kMsPerYear, false);
      if (!capsm || !ms) return;
      const sched::CurvePoint point{CapSM{static_cast<std::uint32_t>(*capsm)}, Time{std::llround(*ms * 1e6)}};
      if (!app.curve.empty() && (point.capsm <= app.curve.back().capsm || point.whole >= app.curve.back().whole))
        return problem(item.source(), "application.curve", shape);
      app.curve.push_back(point);
    }
    if (app.alone == Time{0}) app.alone = app.curve.back().whole;
    if (app.need == CapSM{}) app.need = app.curve.back().capsm;
  }

  std::string file_;
  std::string error_;
  Workload workload_;
};

}  // namespace

Result<sched::Workload> parse_workload(std::string_view text, const std::string& file) {
  try {
    return Reader(file).read(toml::parse(text, file));
  } catch (const toml::parse_error& e) {
    const auto& at = e.source().begin;
    return fail(file + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) + ": " +
                std::string(e.description()));
  }
}

Result<sched::Workload> read_workload(const std::string& path) {
  const auto text = read_regular_file(path, kMostWorkloadBytes);
  if (!text) return text.error();
  return parse_workload(*text, path);
}

}  // namespace gpuctl::cli
