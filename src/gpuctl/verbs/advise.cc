#include <algorithm>
#include <cmath>
#include <memory>
#include <ostream>

#include "base/plural.h"
#include "base/slice_settings.h"
#include "gpuctl/line/daemon.h"
#include "gpuctl/line/settings.h"
#include "gpuctl/line/verb.h"
#include "gpuctl/text/table.h"
#include "gpuctl/text/units.h"

namespace gpuctl::cli {
namespace {

Table measured_table(const std::vector<ipc::MeasuredIsolation>& measured) {
  using enum Table::Align;
  Table table({{"PROGRAM", left}, {"ISOLATION", left}, {"BURSTS", right}, {"P99", right}, {"OTHERS", right}});
  for (const ipc::MeasuredIsolation& m : measured)
    table.add_row({m.program.empty() ? "-" : printable(m.program), printable(m.isolation), format_count(m.bursts),
                   format_us(m.p99_us), format_count(std::llround(m.others_per_s)) + " launches/s"});
  return table;
}

/// Whether a job may come: what can still be promised to it on each device.
std::vector<std::string> room_lines(const std::vector<ipc::Room>& rooms) {
  std::vector<std::string> lines;
  for (const ipc::Room& room : rooms) {
    const std::string gpu = "GPU " + std::to_string(room.device) + ": ";
    lines.push_back(gpu + plural(room.reserve_free, "SM") + " can be reserved for it, " +
                    std::to_string(room.reserved) + " are for slices beside it");
    lines.push_back(gpu + format_bytes(room.memory_free) + " of memory can be kept for it, " +
                    format_bytes(room.memory_kept) + " are for slices beside it");
    if (room.isolated_part.value_or(0) > 0)
      lines.push_back(gpu + "isolated slices beside it used " + std::to_string(std::lround(100 * *room.isolated_part)) +
                      " % of its time lately");
  }
  return lines;
}

/// What would have to be seen to know more.
std::vector<std::string> unknown_lines(const ipc::Advice& advice, const std::string& slice) {
  if (advice.measured.empty())
    return {"not known yet: what its programs take beside others",
            "  that takes a target, MPS, and 161 bursts while others work"};
  std::vector<std::string> lines;
  const std::string& program = advice.measured.front().program;  // the one that was seen last
  for (const std::string_view isolation : kIsolations) {
    if (isolation == kIsolations.front()) continue;
    const bool known = std::ranges::any_of(advice.measured, [&](const ipc::MeasuredIsolation& m) {
      return m.program == program && m.isolation == isolation;
    });
    if (known) continue;
    lines.push_back("not known yet: what " + (program.empty() ? "it" : printable(program)) + " takes " +
                    std::string(isolation));
    lines.push_back("  gpuctl set " + slice + " isolation=" + std::string(isolation) +
                    ", and start it again beside others");
  }
  return lines;
}

/// What a job may ask for.
constexpr std::string_view kAskedFor[] = {"reserve", "memory-min", "latency"};
/// Of a job for which there is no slice. It is not made.
constexpr char kNewJob[] = "new-job.slice";

/// Whether the job may come, and why not.
int say_admitted(Context& context, const ipc::Advice& advice) {
  const std::string reason = advice.reason ? ": " + printable(*advice.reason) : "";
  context.out << (*advice.admitted ? "yes" : "no") << reason << '\n';
  for (const std::string& line : room_lines(advice.room)) context.out << line << '\n';
  return *advice.admitted ? kExitOk : kExitRefused;
}

}  // namespace

Action declare_advise(Arguments& arguments) {
  struct Options {
    std::string name;
    std::vector<std::string> values = std::vector<std::string>(std::size(kAskedFor));
  };
  auto options = std::make_shared<Options>();
  arguments.add("SLICE", options->name, "The slice; with an option it need not exist");
  std::vector<std::pair<const SliceSetting*, Argument>> given;
  for (std::size_t i = 0; i < std::size(kAskedFor); ++i) {
    const auto all = setting_options();
    const SliceSetting& setting =
        **std::ranges::find(all, kAskedFor[i], [](const SliceSetting* one) { return std::string_view(one->option); });
    given.emplace_back(
        &setting,
        arguments.add("--" + std::string(setting.option), options->values[i], setting.help).value(setting.argument));
  }
  arguments.footer("With an option: whether a slice could have that now. Exit status 0: yes, 1: no.");

  return [options, given](Context& context) -> Outcome<int> {
    ipc::SliceSettings settings;
    bool asks = false;
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (!given[i].second.given()) continue;
      asks = true;
      const SliceSetting& setting = *given[i].first;
      const auto applied = apply_setting(setting, options->values[i], "--" + std::string(setting.option), settings);
      if (!applied) return applied.error();
    }
    if (options->name.empty() && !asks) return usage("advise: give a slice, or what a job asks for");
    const Outcome<std::string> path = slice_path(options->name.empty() ? kNewJob : options->name);
    if (!path) return path.error();
    boost::json::object parameters{{"path", *path}};
    if (asks) parameters["settings"] = ipc::to_json(settings);
    const auto reply = ask(context, "Advise", std::move(parameters));
    if (!reply) return reply.error();
    const auto advice = decode_reply(*reply, [](ipc::Fields& fields) {
      ipc::Advice read_one;
      read(fields, read_one);
      return read_one;
    });
    if (!advice) return advice.error();
    if (context.json) {
      print_json(context, *reply);
      return advice->admitted.value_or(true) ? kExitOk : kExitRefused;
    }
    if (advice->admitted) return say_admitted(context, *advice);
    context.out << printable(advice->why) << "\nin force: " << printable(advice->in_force)
                << ", for programs that start now\n";
    if (!advice->measured.empty()) {
      context.out << '\n';
      for (const std::string& line : measured_table(advice->measured).lines()) context.out << line << '\n';
      context.out << '\n';
    }
    for (const std::string& line : room_lines(advice->room)) context.out << line << '\n';
    for (const std::string& line : unknown_lines(*advice, printable(*path))) context.out << line << '\n';
    return kExitOk;
  };
}

}  // namespace gpuctl::cli
