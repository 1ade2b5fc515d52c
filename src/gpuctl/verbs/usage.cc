#include <algorithm>
#include <ctime>
#include <memory>
#include <ostream>

#include "base/plural.h"
#include "gpuctl/line/daemon.h"
#include "gpuctl/line/settings.h"
#include "gpuctl/line/verb.h"
#include "gpuctl/text/instant.h"
#include "gpuctl/text/table.h"
#include "gpuctl/text/units.h"

namespace gpuctl::cli {
namespace {

struct UsageOptions {
  std::string since, until, slice, user, gpu;
};

/// "-", "1.5 ms", "2 h 5 min"
std::string time_text(double seconds) {
  constexpr double kLong = 600;
  if (seconds <= 0) return "-";
  return seconds < kLong ? format_us(seconds * 1e6) : format_duration_s(static_cast<std::int64_t>(seconds));
}

std::string count_text(std::int64_t count) {
  return count == 0 ? "-" : format_count(count);
}

std::vector<std::string> row_of(const std::string& slice, const std::string& user, const std::string& gpu,
                                const ipc::UsageEntry& used) {
  constexpr double kGiBHour = 3600.0 * (1 << 30);
  return {slice,
          user,
          gpu,
          format_rate(used.sm_seconds / 3600),
          time_text(used.work_seconds),
          time_text(used.waited_seconds),
          used.memory_byte_seconds > 0 ? format_rate(used.memory_byte_seconds / kGiBHour) : "-",
          used.joules > 0 ? format_rate(used.joules / 3600) : "-",
          count_text(used.launches),
          count_text(used.bursts),
          count_text(used.evictions)};
}

void print(std::ostream& out, const std::vector<ipc::UsageEntry>& entries, std::size_t width) {
  if (entries.empty()) {
    out << "nothing was used\n";
    return;
  }
  using enum Table::Align;
  Table table({{"SLICE", left, 20},
               {"USER", left},
               {"GPU", left, 12},
               {"SM HOURS", right},
               {"AT WORK", right},
               {"WAITED", right, 0, 2, true},
               {"GIB HOURS", right, 0, 1, true},
               {"WATT HOURS", right, 0, 6, true},
               {"LAUNCHES", right, 0, 3},
               {"BURSTS", right, 0, 4},
               {"EVICTIONS", right, 0, 5, true}});
  ipc::UsageEntry total;
  for (const ipc::UsageEntry& entry : entries) {
    table.add_row(row_of(printable(entry.slice), user_name(entry.uid),
                         entry.device ? std::to_string(*entry.device) : printable(entry.gpu), entry));
    total.sm_seconds += entry.sm_seconds;
    total.work_seconds += entry.work_seconds;
    total.waited_seconds += entry.waited_seconds;
    total.memory_byte_seconds += entry.memory_byte_seconds;
    total.joules += entry.joules;
    total.launches += entry.launches;
    total.bursts += entry.bursts;
    total.evictions += entry.evictions;
  }
  if (entries.size() > 1) table.add_row(row_of("total", "", "", total));
  for (const std::string& line : table.lines(width)) out << line << '\n';
}

Outcome<void> put_instant(boost::json::object& parameters, const char* name, const std::string& text) {
  if (text.empty()) return {};
  const auto instant = parse_instant(text, std::time(nullptr));
  if (!instant)
    return usage("--" + std::string(name) + ": '" + text +
                 "' is no time; give how long ago, such as 30min, 12h or 7d, or a day or a time, such as "
                 "2026-11-28 or '2026-11-28 10:15'");
  parameters[name] = *instant;
  return {};
}

/// The UUID of a GPU that is named so or by its index.
Outcome<std::string> uuid_of(Daemon& daemon, const std::string& gpu) {
  const auto index = parse_integer(gpu);
  if (!index) return gpu;
  const auto reply = daemon.call("GetStatus");
  if (!reply) return reply.error();
  const auto status = decode(ipc::from_json<ipc::Status>(*reply));
  if (!status) return status.error();
  const auto found = std::ranges::find(status->devices, *index, &ipc::Device::index);
  if (found != status->devices.end()) return found->uuid;
  return usage("--gpu: gpuctld manages no GPU " + gpu + "; give the UUID of one that it managed once");
}

Outcome<boost::json::object> parameters_of(const UsageOptions& options) {
  boost::json::object parameters;
  if (auto since = put_instant(parameters, "since", options.since); !since) return since.error();
  if (auto until = put_instant(parameters, "until", options.until); !until) return until.error();
  if (!options.since.empty() && !options.until.empty() &&
      parameters["since"].as_int64() > parameters["until"].as_int64())
    return usage("--since " + options.since + " is after --until " + options.until);
  if (!options.slice.empty()) {
    const Outcome<std::string> path = slice_path(options.slice);
    if (!path) return path.error();
    parameters["slice"] = *path;
  }
  if (!options.user.empty()) {
    const Outcome<std::int64_t> uid = user_id(options.user);
    if (!uid) return uid.error();
    parameters["uid"] = *uid;
  }
  return parameters;
}

}  // namespace

Action declare_usage(Arguments& arguments) {
  auto options = std::make_shared<UsageOptions>();
  arguments.add("--since", options->since, "From then on: 12h or 7d ago, a day, or a time; otherwise all that is kept");
  arguments.add("--until", options->until, "Until then, likewise; otherwise until now");
  arguments.add("--slice", options->slice, "Only of this slice, which may be gone, and of those below it");
  arguments.add("--user", options->user, "Only of this user's programs, by name or number");
  arguments.add("--gpu", options->gpu, "Only of this GPU, by its index, or by the name that --json gives it");

  return [options](Context& context) -> Outcome<int> {
    Outcome<boost::json::object> parameters = parameters_of(*options);
    if (!parameters) return parameters.error();
    Outcome<Daemon> daemon = Daemon::connect(context);
    if (!daemon) return daemon.error();
    if (!options->gpu.empty()) {
      const Outcome<std::string> uuid = uuid_of(*daemon, options->gpu);
      if (!uuid) return uuid.error();
      (*parameters)["gpu"] = *uuid;
    }
    const auto reply = daemon->call("GetUsage", std::move(*parameters));
    if (!reply) return reply.error();
    const auto used =
        decode_reply(*reply, [](ipc::Fields& fields) { return ipc::read_list<ipc::UsageEntry>(fields, "entries"); });
    if (!used) return used.error();
    if (context.json)
      print_json(context, *reply);
    else
      print(context.out, *used, context.width);
    return kExitOk;
  };
}

}  // namespace gpuctl::cli
