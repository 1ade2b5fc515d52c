#include <algorithm>
#include <memory>
#include <ostream>

#include "gpuctl/line/daemon.h"
#include "gpuctl/line/settings.h"
#include "gpuctl/line/verb.h"
#include "gpuctl/text/table.h"
#include "gpuctl/text/units.h"

namespace gpuctl::cli {
namespace {

constexpr std::int64_t kLongestTimeoutMs = 60'000;

/// "after SIGTERM and SIGKILL"
std::string signals_text(const ipc::EndedClient& client) {
  std::string text;
  for (const std::string& signal : client.signals) text += (text.empty() ? " after " : " and ") + printable(signal);
  return text.empty() ? ", no signal was sent" : text;
}

/// What became of its work on the GPU; empty if MPS had no part in it.
std::string mps_text(const ipc::EndedClient& client) {
  if (client.mps == "not active" || client.mps == "not listed") return "";
  if (client.mps == "terminated") return "; its work on the GPU was terminated before";
  return "; its work on the GPU was not terminated before: " + printable(client.mps);
}

}  // namespace

Action declare_kill(Arguments& arguments) {
  struct Options {
    std::string whom, signal, timeout;
  };
  auto options = std::make_shared<Options>();
  arguments
      .add("PID|SLICE", options->whom,
           "The program, or the slice whose programs are to end, with those below it. A number is a program; a slice "
           "that is called 7 is '/7'")
      .required();
  arguments.add("--signal", options->signal, "The signal: TERM (default), HUP, INT, QUIT, ABRT, USR1, USR2 or KILL")
      .value("NAME");
  arguments.add("--timeout", options->timeout, "SIGKILL follows after so many milliseconds; 2000 by default")
      .value("MS");

  return [options](Context& context) -> Outcome<int> {
    boost::json::object parameters;
    if (const auto pid = parse_integer(options->whom)) {
      if (*pid <= 0) return usage("kill: '" + options->whom + "' is not a process id");
      parameters["pid"] = *pid;
    } else {
      const Outcome<std::string> path = slice_path(options->whom);
      if (!path) return path.error();
      parameters["slice"] = *path;
    }
    if (!options->signal.empty()) parameters["signal"] = options->signal;
    if (!options->timeout.empty()) {
      const auto timeout = parse_integer(options->timeout);
      if (!timeout || *timeout < 0 || *timeout > kLongestTimeoutMs)
        return usage("--timeout: '" + options->timeout + "' is not a number of milliseconds from 0 to " +
                     std::to_string(kLongestTimeoutMs));
      parameters["timeout_ms"] = *timeout;
    }
    const bool parameters_have_pid = parameters.contains("pid");
    Outcome<Daemon> daemon = Daemon::connect(context);
    if (!daemon) return daemon.error();
    // The reply comes when all have ended; the daemon limits how long that takes.
    const auto reply = daemon->call("Kill", std::move(parameters), ipc::kNoTimeout);
    if (!reply) {
      Failure failure = reply.error();
      if (parameters_have_pid && failure.message.ends_with("is not attached to a slice"))
        failure.message += "; a slice that is called so is '/" + options->whom + "'";
      return failure;
    }
    const auto clients =
        decode_reply(*reply, [](ipc::Fields& fields) { return ipc::read_list<ipc::EndedClient>(fields, "clients"); });
    if (!clients) return clients.error();
    if (context.json) {
      print_json(context, *reply);
    } else if (clients->empty()) {
      context.out << "no programs are in slice " << printable(options->whom) << '\n';
    } else {
      for (const ipc::EndedClient& client : *clients)
        context.out << client.pid << "  " << printable(client.command) << "  in slice " << printable(client.slice)
                    << ": " << (client.ended ? "ended" : "still there") << signals_text(client) << mps_text(client)
                    << '\n';
    }
    const bool all = std::all_of(clients->begin(), clients->end(), [](const auto& client) { return client.ended; });
    return all ? kExitOk : kExitRefused;
  };
}

}  // namespace gpuctl::cli
