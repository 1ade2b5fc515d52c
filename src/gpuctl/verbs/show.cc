#include <cmath>
#include <memory>
#include <ostream>
#include <utility>

#include "base/device_list.h"
#include "base/join_text.h"
#include "base/plural.h"
#include "base/quota_text.h"
#include "gpuctl/line/daemon.h"
#include "gpuctl/line/settings.h"
#include "gpuctl/line/verb.h"
#include "gpuctl/text/units.h"
#include "gpuctl/views/fairness_lines.h"
#include "gpuctl/views/kernel_lines.h"
#include "gpuctl/views/latency_lines.h"
#include "gpuctl/views/slice_rows.h"
#include "sched/policy.h"

namespace gpuctl::cli {
namespace {

void print_slice(std::ostream& out, const ipc::Slice& s) {
  const auto line = [&](const char* name, const std::string& value) {
    out << std::string(name) + std::string(14 - std::string_view(name).size(), ' ') << value << '\n';
  };
  const sched::Policy* policy = sched::find_policy(s.policy.substr(0, s.policy.find(':')));
  const std::string_view help = policy != nullptr ? policy->help : "";
  const std::string hold = format_us(1000.0 * static_cast<double>(s.reserve_hold_ms));
  const std::string kept =
      s.reserve_mode == "strict" ? ", kept free" : ", kept free while active and " + hold + " longer";
  line("slice", printable(s.path));
  const auto amount = [](const std::string& every, const std::string& fallback, const std::string& per_gpu,
                         const std::string& same) {
    return per_gpu == kSameOnEach ? same : printable(amount_text(every, fallback, per_gpu));
  };
  const std::string reserve =
      amount(std::to_string(s.reserve), "0", s.reserve_per_gpu, s.reserve == 0 ? "none" : plural(s.reserve, "SM"));
  line("reserve", reserve == "none" ? reserve : reserve + kept);
  line("max",
       amount(s.max ? std::to_string(*s.max) : "none", "none", s.max_per_gpu, s.max ? plural(*s.max, "SM") : "none"));
  if (s.quota != kNoQuota || s.burst != kNoQuota || s.throttled > 0)
    line("quota", printable(s.quota) + (s.burst == kNoQuota ? "" : ", burst " + printable(s.burst)) + "; used up " +
                      plural(s.throttled, "time") + ", for " + format_us(static_cast<double>(s.throttled_us)));
  if (s.quota_now) line("throttled", printable(*s.quota_now));
  line("weight", std::to_string(s.weight));
  line("priority", std::to_string(s.priority));
  line("isolation", isolation_text(s));
  if (s.isolation_now) line("", printable(*s.isolation_now));
  if (s.memory_min != 0 || s.memory_min_per_gpu != kSameOnEach)
    line("memory min", amount(size_text(s.memory_min), "0", s.memory_min_per_gpu,
                              format_bytes(s.memory_min) + " of each GPU, kept for it"));
  line("memory max", amount(s.memory_max ? size_text(*s.memory_max) : "none", "none", s.memory_max_per_gpu,
                            s.memory_max ? format_bytes(*s.memory_max) + " of each GPU" : "none"));
  if (s.memory_high || s.memory_high_per_gpu != kSameOnEach)
    line("memory high", amount(s.memory_high ? size_text(*s.memory_high) : "none", "none", s.memory_high_per_gpu,
                               s.memory_high ? format_bytes(*s.memory_high) + " of each GPU" : "none"));
  if (s.memory_waits + s.memory_refusals > 0)
    line("allocations", plural(s.memory_waits, "wait") + " by memory high, " + refusals_text(s));
  line("target", s.latency == "none" ? "none" : "99 of 100 bursts within " + printable(s.latency));
  if (s.latency_now) line("", printable(*s.latency_now));
  line("policy", printable(s.policy) + (help.empty() ? "" : " (" + std::string(help) + ")"));
  line("owner", owner_text(s));
  if (s.join != kNobodyJoins) line("joined by", printable(join_names(s.join)));
  if (s.devices != kAllDevices) line("devices", printable(s.devices));
  if (is_frozen(s))
    line("frozen", printable(s.effective_frozen.value_or(s.frozen)) + ": its programs get no SMs" +
                       (is_swapped(s) ? ", and their memory goes to the host" : "") +
                       (s.effective_frozen ? "" : " until it is thawed"));
  if (const std::string bounds = bounds_text(s); !bounds.empty()) line("in force", bounds);
  for (const char* name = "by GPU"; const std::string& text : gpu_lines(s)) line(std::exchange(name, ""), text);
  line("granted", plural(s.granted, "SM") + " of " + std::to_string(s.demand) + " wanted");
  for (const char* name = "on GPUs"; const std::string& text : use_lines(s)) line(std::exchange(name, ""), text);
  for (const char* name = "waiting"; const std::string& text : pressure_lines(s)) line(std::exchange(name, ""), text);
  line("clients", std::to_string(s.clients));
  line("faults", std::to_string(s.faults));
  line("ended", s.ended == 0 ? "none"
                             : plural(s.ended, "program") + "; launches " + format_count(s.ended_launches) +
                                   ", evictions " + format_count(s.ended_evictions));
  const std::vector<std::string> latency = latency_lines(s.latencies);
  line("latency", latency.empty() ? "none measured" : latency.front());
  for (std::size_t i = 1; i < latency.size(); ++i) line("", latency[i]);
}

/// "1.0 GiB", "1.0 GiB swapped"
std::string memory_text(const ipc::ClientUsage& use) {
  return use.swapped.value_or(0) > 0 ? format_bytes(*use.swapped) + " swapped" : format_bytes(use.memory);
}

Table client_table(const std::vector<ipc::Client>& clients) {
  using enum Table::Align;
  // On a narrow terminal those go first that the lines above sum up.
  Table table({{"PID", right},
               {"USER", left, 0, 1},
               {"GPU", right},
               {"STATE", left},
               {"GRANTED", right},
               {"HOLDING", right, 0, 3},
               {"DEMAND", right, 0, 2},
               {"MEMORY", right},
               {"LAUNCHES", right, 0, 4},
               {"P50", right, 0, 5, true},
               {"P99", right, 0, 0, true},
               {"P99.9", right, 0, 6, true},
               {"EVICTIONS", right, 0, 7},
               {"EVICT MEAN", right, 0, 9},
               {"EVICT MAX", right, 0, 8},
               {"COMMAND", left, 16}});
  for (const ipc::Client& c : clients) {
    const std::string pid = std::to_string(c.pid);
    if (c.usage.empty())
      table.add_row({pid, user_name(c.uid), "-", printable(c.state), "-", "-", "-", "-", "-", "-", "-", "-", "-", "-",
                     "-", printable(c.command)});
    for (const ipc::ClientUsage& u : c.usage)
      table.add_row({pid, user_name(c.uid), std::to_string(u.device), printable(c.state), std::to_string(u.granted),
                     std::to_string(u.holding), std::to_string(u.demand), memory_text(u), format_count(u.launches),
                     latency_text(u.latency, &ipc::Latency::p50_us), latency_text(u.latency, &ipc::Latency::p99_us),
                     latency_text(u.latency, &ipc::Latency::p999_us), format_count(u.evictions),
                     u.evictions == 0 ? "-" : format_us(u.evict_us_mean),
                     u.evictions == 0 ? "-" : format_us(u.evict_us_max), printable(c.command)});
  }
  return table;
}

/// "1: 80 us  4: 20 us"
std::string curve_text(const std::vector<ipc::KernelPoint>& curve) {
  std::string text;
  for (const ipc::KernelPoint& point : curve)
    text.append(text.empty() ? "" : "  ").append(std::to_string(point.sms) + ": " + format_us(point.block_task_us));
  return text.empty() ? "-" : text;
}

Outcome<int> show_kernels(Context& context) {
  const auto reply = ask(context, "ListKernels");
  if (!reply) return reply.error();
  const auto kernels =
      decode_reply(*reply, [](ipc::Fields& fields) { return ipc::read_list<ipc::KernelDurations>(fields, "kernels"); });
  if (!kernels) return kernels.error();
  if (context.json) {
    print_json(context, *reply);
    return kExitOk;
  }
  using enum Table::Align;
  Table table({{"KERNEL", left},
               {"MODULE", left},
               {"USER", left},
               {"LAUNCHES", right},
               {"PREDICTED", right},
               {"OBSERVED", right},
               {"ERROR", right},
               {"EVICTION", right},
               {"PER BLOCK-TASK BY SMS", left}});
  for (const ipc::KernelDurations& k : *kernels)
    table.add_row({printable(k.name), k.module.empty() ? "-" : printable(k.module), k.uid ? user_name(*k.uid) : "-",
                   format_count(k.launches), k.predicted_us == 0 ? "-" : format_us(k.predicted_us),
                   format_us(k.observed_us),
                   k.predicted_us == 0 ? "-" : std::to_string(std::llround(100 * k.error)) + " %",
                   k.evict_us == 0 ? "-" : format_us(k.evict_us), curve_text(k.curve)});
  for (const std::string& line : table.lines()) context.out << line << '\n';
  return kExitOk;
}

Outcome<int> show_fairness(Context& context, const std::string& path) {
  const auto reply = ask(context, "GetFairness", {{"path", path}});
  if (!reply) return reply.error();
  const auto fairness = decode_reply(*reply, [](ipc::Fields& fields) {
    ipc::Fairness read_one;
    ipc::Fields nested = fields.object("fairness");
    read(nested, read_one);
    return read_one;
  });
  if (!fairness) return fairness.error();
  if (context.json) {
    print_json(context, *reply);
    return kExitOk;
  }
  for (const std::string& line : fairness_lines(*fairness)) context.out << line << '\n';
  return kExitOk;
}

}  // namespace

Action declare_show(Arguments& arguments) {
  auto name = std::make_shared<std::string>();
  auto kernels = std::make_shared<bool>(false), fairness = std::make_shared<bool>(false);
  arguments.add("NAME", *name, "The slice; '/' is the root");
  arguments.add_flag("--kernels", *kernels, "What policies for jobs have learnt about kernels, instead of a slice");
  arguments.add_flag("--fairness", *fairness, "How well the programs in and below the slice were served lately");

  return [name, kernels, fairness](Context& context) -> Outcome<int> {
    if (*kernels && *fairness) return usage("show: give --kernels or --fairness, not both");
    if (*kernels && !name->empty()) return usage("show: --kernels goes without the name of a slice");
    if (*kernels) return show_kernels(context);
    if (name->empty()) return usage("show: give the name of a slice, or --kernels");
    const Outcome<std::string> path = slice_path(*name);
    if (!path) return path.error();
    if (*fairness) return show_fairness(context, *path);
    const auto reply = ask(context, "GetSlice", {{"path", *path}});
    if (!reply) return reply.error();
    const Outcome<SliceWithClients> shown = decode_slice(*reply);
    if (!shown) return shown.error();
    if (context.json) {
      print_json(context, *reply);
      return kExitOk;
    }
    print_slice(context.out, shown->slice);
    if (!shown->clients.empty()) {
      context.out << '\n';
      for (const std::string& line : client_table(shown->clients).lines(context.width)) context.out << line << '\n';
    }
    return kExitOk;
  };
}

}  // namespace gpuctl::cli
