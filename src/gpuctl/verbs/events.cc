#include <ctime>
#include <memory>
#include <ostream>

#include "base/plural.h"
#include "gpuctl/line/daemon.h"
#include "gpuctl/line/settings.h"
#include "gpuctl/line/verb.h"
#include "gpuctl/text/table.h"

namespace gpuctl::cli {
namespace {

/// "2026-11-28 10:15:00", where the user is.
std::string local_time(std::int64_t us) {
  const std::time_t seconds = us / 1'000'000;
  std::tm local{};
  ::localtime_r(&seconds, &local);
  char text[64];
  return {text, std::strftime(text, sizeof text, "%F %T", &local)};
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

/// "2026-11-28 10:15:00  changed    batch         by alice: max none -> 40"
std::string line_of(const ipc::Event& event) {
  std::string what;
  if (event.pid) {
    what = std::to_string(*event.pid);
    if (!event.command.empty()) what += " " + printable(event.command);
    if (event.uid) what += " (" + user_name(*event.uid) + ")";
  } else if (event.uid) {
    what = "by " + user_name(*event.uid);
  } else if (event.kind == "created" || event.kind == "changed" || event.kind == "deleted") {
    what = "by the configuration";
  }
  if (!event.text.empty()) what += (what.empty() ? "" : ": ") + printable(event.text);
  std::string line = local_time(event.time_us) + "  " + padded(printable(event.kind), 9) + "  " +
                     padded(event.slice.empty() ? "-" : printable(event.slice), 12);
  if (!what.empty()) line += "  " + what;
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

struct Told {
  std::vector<ipc::Event> events;
  std::int64_t lost = 0;
};

Outcome<Told> read_told(const boost::json::object& reply) {
  return decode_reply(reply, [](ipc::Fields& fields) {
    Told told{ipc::read_list<ipc::Event>(fields, "events"), 0};
    told.lost = fields.integer("lost", 0);
    return told;
  });
}

void print(Context& context, const Told& told) {
  if (told.lost > 0) context.out << plural(told.lost, "event") << " before or between these are forgotten\n";
  for (const ipc::Event& event : told.events) context.out << line_of(event) << '\n';
}

/// All that the daemon knows, in as many replies as it takes.
Outcome<int> tell_all(Context& context, Daemon& daemon, boost::json::object parameters) {
  Told all;
  boost::json::array events;
  for (;;) {
    if (!all.events.empty()) parameters["after"] = all.events.back().number;
    const auto reply = daemon.call("Events", parameters);
    if (!reply) return reply.error();
    const Outcome<Told> told = read_told(*reply);
    if (!told) return told.error();
    // The last reply, which is empty, says again what the one before said.
    if (all.events.empty() || !told->events.empty()) all.lost += told->lost;
    if (told->events.empty()) break;
    all.events.insert(all.events.end(), told->events.begin(), told->events.end());
  }
  if (!context.json) return print(context, all), kExitOk;
  print_json(context, {{"events", ipc::to_json(all.events)}, {"lost", all.lost}});
  return kExitOk;
}

/// Until the output or the daemon is gone, or the user ends it.
Outcome<int> follow(Context& context, Daemon& daemon, boost::json::object parameters) {
  if (const auto started = daemon.start("Events", std::move(parameters)); !started) return started.error();
  while (context.out) {
    const auto reply = daemon.next();
    if (!reply) return reply.error();
    const Outcome<Told> told = read_told(*reply);
    if (!told) return told.error();
    if (told->events.empty() && told->lost == 0) continue;
    if (context.json)
      print_json(context, *reply);
    else
      print(context, *told);
    context.out.flush();
  }
  return kExitOk;
}

}  // namespace

Action declare_events(Arguments& arguments) {
  struct Options {
    std::string slice;
    bool follow = false;
  };
  auto options = std::make_shared<Options>();
  arguments.add("SLICE", options->slice, "Only what concerns this slice and those below it");
  arguments.add_flag("--follow", options->follow, "Go on with what happens, until Ctrl-C");

  return [options](Context& context) -> Outcome<int> {
    boost::json::object parameters;
    if (!options->slice.empty()) {
      const Outcome<std::string> path = slice_path(options->slice);
      if (!path) return path.error();
      parameters["slice"] = *path;
    }
    Outcome<Daemon> daemon = Daemon::connect(context);
    if (!daemon) return daemon.error();
    return options->follow ? follow(context, *daemon, std::move(parameters))
                           : tell_all(context, *daemon, std::move(parameters));
  };
}

}  // namespace gpuctl::cli
