#include <langinfo.h>
#include <poll.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <ostream>
#include <sstream>

#include "base/plural.h"
#include "gpuctl/line/daemon.h"
#include "gpuctl/line/settings.h"
#include "gpuctl/line/verb.h"
#include "gpuctl/text/table.h"
#include "gpuctl/text/terminal.h"
#include "gpuctl/text/units.h"
#include "gpuctl/views/top_model.h"
#include "gpuctl/views/top_screen.h"
#include "gpuctl/views/top_view.h"

namespace gpuctl::cli {
namespace {

/// The latest two replies of Monitor; rates are their difference.
struct Samples {
  std::optional<ipc::Snapshot> before;
  std::optional<ipc::Snapshot> now;

  const ipc::Snapshot* previous() const { return before ? &*before : nullptr; }

  /// Within the time of one sample, and that of an answer.
  Outcome<void> take(Daemon& daemon, std::int64_t interval_ms) {
    const auto reply = daemon.next(std::chrono::milliseconds(interval_ms) + ipc::kDefaultTimeout);
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

Outcome<int> print_once(Context& context, Daemon& daemon, std::int64_t interval_ms) {
  Samples samples;
  for (int i = 0; i < 2; ++i)
    if (const auto taken = samples.take(daemon, interval_ms); !taken) return taken.error();
  if (context.json) {
    print_json(context, top_json(samples.previous(), *samples.now));
  } else {
    for (const std::string& line : render_top(samples.previous(), *samples.now, {0, 0, false, utf8_terminal()}))
      context.out << line << '\n';
  }
  return kExitOk;
}

/// One after the other, until nobody reads.
Outcome<int> print_all(Context& context, Daemon& daemon, std::int64_t interval_ms) {
  Samples samples;
  while (context.out) {
    if (const auto taken = samples.take(daemon, interval_ms); !taken) return taken.error();
    if (context.json) {
      print_json(context, top_json(samples.previous(), *samples.now));
    } else if (samples.before) {
      for (const std::string& line : render_top(samples.previous(), *samples.now, {0, 0, false, utf8_terminal()}))
        context.out << line << '\n';
      context.out << '\n';
    }
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

/// A request that a key made, until the daemon has answered. It has a connection of its own.
class Asked {
 public:
  /// Sends it. Returns what to say of it.
  std::string begin(const Context& context, const TopRequest& request) {
    connection_.reset();
    if (request.kind == TopRequest::Kind::set) return set(context, request);
    boost::json::object parameters;
    if (request.kind == TopRequest::Kind::kill_program)
      parameters["pid"] = request.pid;
    else
      parameters["slice"] = request.slice;
    Outcome<Daemon> daemon = Daemon::connect(context);
    if (!daemon) return daemon.error().message;
    // Not read as a series of replies: the daemon sends one.
    if (const auto sent = daemon->start("Kill", std::move(parameters)); !sent) return sent.error().message;
    connection_.emplace(std::move(*daemon));
    return "ending it ...";
  }

  int fd() const { return connection_ ? connection_->connection().fd() : -1; }

  /// Once fd() is readable: what came of it.
  std::string take() {
    const auto reply = connection_->next();
    connection_.reset();
    if (!reply) return reply.error().message;
    const auto ended =
        decode_reply(*reply, [](ipc::Fields& fields) { return ipc::read_list<ipc::EndedClient>(fields, "clients"); });
    if (!ended) return ended.error().message;
    const auto still = std::ranges::count_if(*ended, [](const ipc::EndedClient& client) { return !client.ended; });
    return still == 0 ? plural(std::ssize(*ended), "program") + " ended" : plural(still, "program") + " still there";
  }

 private:
  static std::string set(const Context& context, const TopRequest& request) {
    ipc::SliceSettings settings;
    std::istringstream words(request.settings);
    for (std::string word; words >> word;)
      if (const Outcome<void> applied = apply_assignment(word, settings); !applied) return applied.error().message;
    const auto reply = ask(context, "SetSlice", {{"path", request.slice}, {"settings", ipc::to_json(settings)}});
    return reply ? request.slice + ": " + request.settings : reply.error().message;
  }

  std::optional<Daemon> connection_;
};

bool readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return fd >= 0 && ::poll(&entry, 1, 0) > 0;
}

/// Goes on with the next daemon when one has ended.
Outcome<int> live_screen(const Context& context, Daemon first, std::int64_t interval_ms) {
  constexpr int kPauseMs = 500;
  std::optional<Daemon> daemon(std::move(first));
  Samples samples;
  if (const auto taken = samples.take(*daemon, interval_ms); !taken) return taken.error();
  Terminal terminal;
  TopView view;
  Asked asked;
  std::string lost;  // said as long as there is no daemon
  remember(view, *samples.now);
  while (true) {
    const Terminal::Size size = terminal.size();
    if (!lost.empty()) view.note = lost;
    terminal.draw(render_top(samples.previous(), *samples.now,
                             {size.columns, size.lines, color_wanted(), utf8_terminal()}, view));
    const int fds[] = {daemon ? daemon->connection().fd() : -1, asked.fd()};
    const Terminal::Event event = terminal.wait(fds, daemon ? -1 : kPauseMs);
    if (event == Terminal::Event::quit) return kExitOk;
    if (event == Terminal::Event::redraw) continue;
    if (event == Terminal::Event::keys) {
      const TopModel model = make_top_model(samples.previous(), *samples.now);
      for (const Key& key : terminal.take_keys()) {
        const TopRequest request = press(view, key, rows_of(model, *samples.now, view), size.lines / 3);
        if (request.kind == TopRequest::Kind::quit) return kExitOk;
        if (request.kind != TopRequest::Kind::nothing) view.note = asked.begin(context, request);
      }
      continue;
    }
    if (readable(asked.fd())) view.note = asked.take();
    if (!daemon) {
      auto next = connect(context, interval_ms);
      if (next) daemon.emplace(std::move(*next));
      samples.before.reset();
      continue;
    }
    if (!daemon->connection().reply_waiting() && !readable(daemon->connection().fd())) continue;
    bool taken = true;
    do {
      const auto sample = samples.take(*daemon, interval_ms);
      if (!sample && sample.error().exit_status != kExitUnreachable) return sample.error();
      taken = sample.has_value();
      if (taken) remember(view, *samples.now);
    } while (taken && daemon->connection().reply_waiting());
    if (taken && !lost.empty()) view.note.clear();
    lost = taken ? "" : "no daemon; this is what the last one said";
    if (!taken) daemon.reset();
  }
}

}  // namespace

Action declare_top(Arguments& arguments) {
  struct Options {
    bool once = false, batch = false;
    std::string interval = "1";
  };
  auto options = std::make_shared<Options>();
  arguments.add_flag("--once", options->once, "Print one table, measured over one interval, and exit");
  arguments.add_flag("--batch", options->batch, "Print a table for each interval instead of a screen, until stopped");
  arguments.add("--interval", options->interval, "Seconds between two samples, 0.1 to 60 (1)").value("S");

  return [options](Context& context) -> Outcome<int> {
    const auto seconds = parse_seconds(options->interval);
    if (!seconds || *seconds < 0.1 || *seconds > 60)
      return usage("--interval: '" + options->interval + "' is not a number of seconds from 0.1 to 60");
    const std::int64_t interval_ms = std::llround(*seconds * 1000);
    Outcome<Daemon> daemon = connect(context, interval_ms);
    if (!daemon) return daemon.error();
    const bool live = context.out_is_terminal && !options->once && !options->batch;
    if ((context.json || options->batch) && !options->once) return print_all(context, *daemon, interval_ms);
    return live ? live_screen(context, std::move(*daemon), interval_ms) : print_once(context, *daemon, interval_ms);
  };
}

}  // namespace gpuctl::cli
