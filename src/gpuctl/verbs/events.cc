#include <chrono>
#include <ctime>
#include <memory>
#include <optional>
#include <ostream>
#include <string_view>
#include <utility>

#include "base/plural.h"
#include "base/time_text.h"
#include "gpuctl/line/daemon.h"
#include "gpuctl/line/settings.h"
#include "gpuctl/line/verb.h"
#include "gpuctl/text/table.h"
#include "gpuctl/text/units.h"

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

struct Trigger {
  std::string_view of;
  std::chrono::nanoseconds stall, window;
};

/// "some:150ms/1s"
std::optional<Trigger> parse_trigger(std::string_view text) {
  const std::size_t colon = text.find(':'), slash = text.find('/');
  if (colon == text.npos || slash == text.npos || slash < colon) return std::nullopt;
  const std::string_view of = text.substr(0, colon);
  const auto stall = parse_number_and_unit(text.substr(colon + 1, slash - colon - 1)),
             window = parse_number_and_unit(text.substr(slash + 1));
  if ((of != "some" && of != "full") || !stall || !window) return std::nullopt;
  const auto in = time_of(*window, std::chrono::milliseconds(500), std::chrono::seconds(10));
  const auto most = in ? time_of(*stall, std::chrono::microseconds(1), *in) : std::nullopt;
  return most ? std::optional(Trigger{of, *most, *in}) : std::nullopt;
}

/// Says each time that the trigger is passed, until the output or the daemon is gone, or the user ends it.
Outcome<int> follow_pressure(Context& context, Daemon& daemon, const std::string& slice, const Trigger& trigger) {
  const auto us = [](std::chrono::nanoseconds time) {
    return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  };
  const auto started = daemon.start(
      "WatchPressure",
      {{"slice", slice}, {"of", trigger.of}, {"stall_us", us(trigger.stall)}, {"window_us", us(trigger.window)}});
  if (!started) return started.error();
  while (context.out) {
    const auto reply = daemon.next();
    if (!reply) return reply.error();
    const auto stalled = decode_reply(*reply, [](ipc::Fields& fields) {
      const bool passed = fields.boolean("passed");
      return std::pair(passed, fields.integer("stall_us", 0));
    });
    if (!stalled) return stalled.error();
    if (!stalled->first) continue;
    if (context.json)
      print_json(context, *reply);
    else
      context.out << local_time(std::time(nullptr) * 1'000'000) << "  pressure   " << padded(printable(slice), 12)
                  << "  " << trigger.of << ": work waited " << format_us(static_cast<double>(stalled->second)) << " of "
                  << format_us(static_cast<double>(us(trigger.window))) << '\n';
    context.out.flush();
  }
  return kExitOk;
}

}  // namespace

Action declare_events(Arguments& arguments) {
  struct Options {
    std::string slice, pressure;
    bool follow = false;
  };
  auto options = std::make_shared<Options>();
  arguments.add("SLICE", options->slice, "Only what concerns this slice and those below it");
  arguments.add_flag("--follow", options->follow, "Go on with what happens, until Ctrl-C");

  const Argument pressure =
      arguments
          .add("--pressure", options->pressure,
               "Say instead each time that work of SLICE waited for so long in such a window, until Ctrl-C")
          .value("some|full:TIME/WINDOW");

  return [options, pressure](Context& context) -> Outcome<int> {
    std::optional<Trigger> trigger;
    if (pressure.given()) trigger = parse_trigger(options->pressure);
    if (pressure.given() && !trigger)
      return usage("--pressure: must be such as some:150ms/1s: some or full, a time, and a window from 500ms to 10s");
    if (trigger && options->slice.empty()) return usage("events: --pressure is of one slice; name it");
    boost::json::object parameters;
    if (!options->slice.empty()) {
      const Outcome<std::string> path = slice_path(options->slice);
      if (!path) return path.error();
      parameters["slice"] = *path;
    }
    Outcome<Daemon> daemon = Daemon::connect(context);
    if (!daemon) return daemon.error();
    if (trigger) return follow_pressure(context, *daemon, std::string(parameters.at("slice").as_string()), *trigger);
    return options->follow ? follow(context, *daemon, std::move(parameters))
                           : tell_all(context, *daemon, std::move(parameters));
  };
}

}  // namespace gpuctl::cli
