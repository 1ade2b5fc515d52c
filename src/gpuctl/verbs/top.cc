#include <langinfo.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <ostream>

#include "gpuctl/line/daemon.h"
#include "gpuctl/line/verb.h"
#include "gpuctl/text/terminal.h"
#include "gpuctl/text/units.h"
#include "gpuctl/views/top_model.h"
#include "gpuctl/views/top_screen.h"

namespace gpuctl::cli {
namespace {

/// The latest two replies of Monitor; rates are their difference.
struct Samples {
  std::optional<ipc::Snapshot> before;
  std::optional<ipc::Snapshot> now;

  const ipc::Snapshot* previous() const { return before ? &*before : nullptr; }

  Outcome<void> take(Daemon& daemon) {
    const auto reply = daemon.next();
    if (!reply) return reply.error();
    boost::json::object sample = *reply;
    sample.emplace("fairness", boost::json::array());  // a daemon of an earlier version does not say
    auto snapshot = decode(ipc::from_json<ipc::Snapshot>(sample));
    if (!snapshot) return snapshot.error();
    before = std::move(now);
    now = std::move(*snapshot);
    return {};
  }
};

bool utf8_terminal() {
  return std::strcmp(::nl_langinfo(CODESET), "UTF-8") == 0;
}

bool color_wanted() {
  const char* no_color = std::getenv("NO_COLOR");
  return no_color == nullptr || *no_color == '\0';
}

Outcome<int> print_once(Context& context, Daemon& daemon) {
  Samples samples;
  for (int i = 0; i < 2; ++i)
    if (const auto taken = samples.take(daemon); !taken) return taken.error();
  if (context.json) {
    print_json(context, top_json(samples.previous(), *samples.now));
  } else {
    for (const std::string& line : render_top(samples.previous(), *samples.now, {0, 0, false, utf8_terminal()}))
      context.out << line << '\n';
  }
  return kExitOk;
}

Outcome<int> stream_json(Context& context, Daemon& daemon) {
  Samples samples;
  while (context.out) {
    if (const auto taken = samples.take(daemon); !taken) return taken.error();
    print_json(context, top_json(samples.previous(), *samples.now));
    context.out.flush();
  }
  return kExitOk;
}

Outcome<Daemon> connect(const Context& context, std::int64_t interval_ms) {
  Outcome<Daemon> daemon = Daemon::connect(context);
  if (!daemon) return daemon;
  if (const auto started = daemon->start("Monitor", {{"interval_ms", interval_ms}}); !started) return started.error();
  return daemon;
}

/// Goes on with the next daemon when one has ended.
Outcome<int> live_screen(const Context& context, Daemon first, std::int64_t interval_ms) {
  constexpr int kPauseMs = 500;
  std::optional<Daemon> daemon(std::move(first));
  Samples samples;
  if (const auto taken = samples.take(*daemon); !taken) return taken.error();
  Terminal terminal;
  std::string note;
  while (true) {
    const Terminal::Size size = terminal.size();
    terminal.draw(render_top(samples.previous(), *samples.now,
                             {size.columns, size.lines, color_wanted(), utf8_terminal(), note}));
    const Terminal::Event event = terminal.wait(daemon ? daemon->connection().fd() : -1, daemon ? -1 : kPauseMs);
    if (event == Terminal::Event::quit) return kExitOk;
    if (event == Terminal::Event::redraw) continue;
    if (!daemon) {
      auto next = connect(context, interval_ms);
      if (next) daemon.emplace(std::move(*next));
      samples.before.reset();
      continue;
    }
    bool taken = true;
    do {
      const auto sample = samples.take(*daemon);
      if (!sample && sample.error().exit_status != kExitUnreachable) return sample.error();
      taken = sample.has_value();
    } while (taken && daemon->connection().reply_waiting());
    note = taken ? "" : "no daemon; this is what the last one said";
    if (!taken) daemon.reset();
  }
}

}  // namespace

Action declare_top(Arguments& arguments) {
  struct Options {
    bool once = false;
    std::string interval = "1";
  };
  auto options = std::make_shared<Options>();
  arguments.add_flag("--once", options->once, "Print one table, measured over one interval, and exit");
  arguments.add("--interval", options->interval, "Seconds between two samples, 0.1 to 60 (1)").value("S");

  return [options](Context& context) -> Outcome<int> {
    const auto seconds = parse_seconds(options->interval);
    if (!seconds || *seconds < 0.1 || *seconds > 60)
      return usage("--interval: '" + options->interval + "' is not a number of seconds from 0.1 to 60");
    const std::int64_t interval_ms = std::llround(*seconds * 1000);
    Outcome<Daemon> daemon = connect(context, interval_ms);
    if (!daemon) return daemon.error();
    const bool live = context.out_is_terminal && !options->once;
    if (context.json && !options->once) return stream_json(context, *daemon);
    return live ? live_screen(context, std::move(*daemon), interval_ms) : print_once(context, *daemon);
  };
}

}  // namespace gpuctl::cli
