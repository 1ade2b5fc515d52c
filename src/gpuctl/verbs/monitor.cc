#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <memory>
#include <ostream>

#include "gpuctl/line/daemon.h"
#include "gpuctl/line/verb.h"
#include "gpuctl/simulate/trace_file.h"
#include "gpuctl/text/progress.h"
#include "gpuctl/text/units.h"

namespace gpuctl::cli {
namespace {

volatile std::sig_atomic_t monitor_stopped = 0;

/// Ctrl-C ends the recording, not the program, which still has to write what was recorded.
void end_on_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { monitor_stopped = 1; };
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

/// True when a reply can be read, false when the time is over or the user stopped the recording.
bool wait_for_reply(Daemon& daemon, std::chrono::steady_clock::time_point until) {
  while (!daemon.connection().reply_waiting()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (monitor_stopped != 0 || left.count() <= 0) return false;
    pollfd waiting{daemon.connection().fd(), POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 100)));
    if (ready > 0) return monitor_stopped == 0;
  }
  return true;
}

/// Launches that ended since the last ones. `lost` counts those of which the daemon cannot tell.
Outcome<std::vector<ipc::Launch>> next_launches(Daemon& daemon, std::int64_t& lost) {
  const auto reply = daemon.next();
  if (!reply) return reply.error();
  return decode_reply(*reply, [&](ipc::Fields& fields) {
    lost += fields.integer("lost", 0);
    std::vector<ipc::Launch> list;
    for (ipc::Fields& item : fields.objects("launches")) read(item, list.emplace_back());
    return list;
  });
}

}  // namespace

Action declare_monitor(Arguments& arguments) {
  struct Options {
    std::string record;
    std::string seconds;
  };
  auto options = std::make_shared<Options>();
  arguments.add("--record", options->record, "Write what ran to this file, for 'gpuctl simulate FILE'")
      .value("FILE")
      .required();
  arguments.add("--seconds", options->seconds, "How long (until Ctrl-C)").value("S");

  return [options](Context& context) -> Outcome<int> {
    auto until = std::chrono::steady_clock::time_point::max();
    if (!options->seconds.empty()) {
      const auto seconds = parse_seconds(options->seconds);
      if (!seconds || *seconds <= 0 || *seconds > 1e6)
        return usage("--seconds: '" + options->seconds + "' is not a number of seconds up to 1000000");
      until = std::chrono::steady_clock::now() + std::chrono::milliseconds(std::llround(*seconds * 1000));
    }
    // What is there stays until there is something to take its place.
    std::ofstream file(options->record, std::ios::binary | std::ios::app);
    if (!file) return usage("--record: " + options->record + ": " + std::strerror(errno));
    const auto status = ask(context, "GetStatus");
    if (!status) return status.error();
    const auto devices =
        decode_reply(*status, [](ipc::Fields& fields) { return ipc::read_list<ipc::Device>(fields, "devices"); });
    if (!devices) return devices.error();
    std::int64_t sms = 1;
    for (const ipc::Device& device : *devices) sms = std::max(sms, device.sms);

    Outcome<Daemon> daemon = Daemon::connect(context);
    if (!daemon) return daemon.error();
    const auto started = daemon->start("Record", {});
    if (!started) return started.error();
    end_on_signals();
    std::vector<ipc::Launch> launches;
    std::int64_t lost = 0;
    // The daemon may end meanwhile: what was recorded until then is written.
    Outcome<std::vector<ipc::Launch>> part;
    {
      Progress progress(context.err);
      const auto say = [&] {
        progress.say("recording: " + std::to_string(launches.size()) + " launches so far; Ctrl-C ends it");
      };
      say();
      while (part && wait_for_reply(*daemon, until)) {
        part = next_launches(*daemon, lost);
        if (part) launches.insert(launches.end(), part->begin(), part->end());
        say();
      }
    }
    if (!part && launches.empty()) return part.error();
    if (launches.empty())
      return Failure{kExitRefused, "nothing to record: no launch in persistent form ended meanwhile"};
    // A workload counts its devices from 0, but some of a machine's GPUs may not be managed.
    for (ipc::Launch& launch : launches) {
      const auto place = std::find_if(devices->begin(), devices->end(),
                                      [&](const ipc::Device& device) { return device.index == launch.device; });
      if (place != devices->end()) launch.device = place - devices->begin();
    }
    file = std::ofstream(options->record, std::ios::binary);
    file << to_workload(launches, devices->size(), sms) << std::flush;
    if (!file) return usage("--record: " + options->record + ": cannot be written");
    if (context.json)
      print_json(context, {{"file", options->record}, {"launches", launches.size()}, {"lost", lost}});
    else
      context.out << launches.size() << " launches written to " << options->record
                  << (lost > 0 ? ", " + std::to_string(lost) + " lost" : std::string()) << '\n';
    if (!part) return Failure{part.error().exit_status, part.error().message + "; nothing is recorded after that"};
    return kExitOk;
  };
}

}  // namespace gpuctl::cli
