// `gpuctl run` becomes the program by execvp: same process id, same descriptors, same signal dispositions and mask. The
// parent process gets the program's own exit status. So everything that can be refused is checked before.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <ostream>

#include "base/installed.h"
#include "base/join_text.h"
#include "base/visible_devices.h"
#include "gpuctl/doctor/child.h"
#include "gpuctl/line/daemon.h"
#include "gpuctl/line/settings.h"
#include "gpuctl/line/verb.h"
#include "gpuctl/run/preload_obstacle.h"
#include "gpuctl/run/run_watch.h"
#include "gpuctl/run/scope.h"
#include "gpuctl/text/table.h"
#include "gpuctl/views/run_environment.h"
#include "gpuctl/views/slice_rows.h"
#include "ipc/message.h"
#include "sched/effective/kept_by_mps.h"

namespace gpuctl::cli {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// What the program's library will say beside its slice: which `devices` it sees, whether MPS keeps it to a percentage
/// there, and which MPS it joins. For the first program gpuctld starts its MPS, which may take some time. We join the
/// slice as the program will, so that no limit comes into force for others meanwhile. The answer: what
/// CUDA_VISIBLE_DEVICES is to be, if the slice has not all GPUs.
std::optional<std::string> say_of_start(Daemon& daemon, const std::string& slice, std::vector<ipc::Device> devices,
                                        boost::json::object& joining) {
  boost::json::object asking{{"slice", slice}};
  if (const auto* exe = joining.if_contains("exe")) asking["exe"] = *exe;
  const auto reply = daemon.call("GetMpsPercentage", asking);
  if (!reply) return std::nullopt;
  ipc::Fields fields(*reply);
  const auto hundredths = fields.maybe_integer("hundredths", 1, sched::kAllHundredths);
  const bool isolated = fields.maybe_boolean("isolated").value_or(false);
  if (isolated) joining["isolated"] = true;
  const std::string own = variable("CUDA_MPS_PIPE_DIRECTORY");
  if (const auto directory = fields.maybe_text("pipe_directory"))
    joining["pipe_directory"] = isolated || own.empty() ? *directory : ipc::to_utf8(own);
  std::optional<std::string> visible;
  if (fields.has("devices")) {
    std::vector<SliceGpu> gpus;
    for (const ipc::Device& device : ipc::read_list<ipc::Device>(fields, "devices"))
      gpus.push_back({.index = device.index, .uuid = device.uuid});
    visible = visible_devices(those_here(std::move(gpus)), std::getenv(kVisibleDevices));
    std::erase_if(devices, [&](const ipc::Device& device) { return visible->find(device.uuid) == visible->npos; });
    boost::json::array uuids;
    for (const ipc::Device& device : devices) uuids.emplace_back(device.uuid);
    if (!uuids.empty()) joining["device_uuids"] = std::move(uuids);  // a program that sees none will not join
  }
  if (!hundredths || devices.empty()) return visible;
  boost::json::array sms;
  for (const ipc::Device& device : devices)
    sms.emplace_back(sched::sms_of_hundredths(static_cast<std::uint32_t>(*hundredths),
                                              sched::CapSM{static_cast<std::uint32_t>(device.sms)})
                         .count);
  joining["mps_sms"] = std::move(sms);
  return visible;
}

struct Joined {
  std::string slice;
  bool software = false;               ///< the daemon manages software GPUs
  std::string no_sms;                  ///< why the slice has none; "": it has some
  std::optional<std::string> visible;  ///< what CUDA_VISIBLE_DEVICES is to be; none: as it is
};

/// Why no SMs are in force for the slice; "": there are some.
std::string why_no_sms(Daemon& daemon, const std::string& slice) {
  const auto reply = daemon.call("GetSlice", {{"path", slice}});
  if (!reply) return "";
  const auto shown = decode_slice(*reply);
  if (shown && is_frozen(shown->slice)) return "frozen";
  return shown && (shown->slice.effective_max ? shown->slice.effective_max : shown->slice.max) == 0 ? "max=0" : "";
}

/// What the program's command line will be, as much of it as the daemon shows.
std::string shown_command(const std::vector<std::string>& arguments) {
  constexpr std::size_t kMost = 256;
  std::string command;
  for (const std::string& argument : arguments) command += (command.empty() ? "" : " ") + argument;
  return ipc::to_utf8(command.substr(0, kMost));
}

/// Asks the daemon whether we may join the slice, by joining it for a moment: only the daemon knows the rules. "": it
/// says which slice is ours.
Outcome<Joined> check_slice(const Context& context, const std::string& slice) {
  Outcome<Daemon> daemon = Daemon::connect(context);
  if (!daemon) return daemon.error();
  const auto reply = daemon->call("GetStatus");
  if (!reply) return reply.error();
  const auto status = decode(ipc::from_json<ipc::Status>(*reply));
  if (!status) return status.error();
  boost::json::array uuids;
  for (const ipc::Device& device : status->devices) uuids.emplace_back(device.uuid);
  boost::json::object joining{{"slice", slice}, {"device_uuids", uuids}, {"resumed", false}};
  if (slice.empty())
    if (const std::string exe = file_run_by(context.command[0]); is_full_path(exe)) joining["exe"] = exe;
  std::optional<std::string> visible = say_of_start(*daemon, slice, status->devices, joining);
  joining["command"] = shown_command(context.command);
  const auto attached = daemon->call("Attach", joining);
  if (!attached) return attached.error();
  ipc::Fields fields(*attached);
  std::string joined = fields.text("slice");
  if (slice.empty() && joined == "/")
    return usage("run: --slice is missing, and no slice has a setting join for you; give one: --slice NAME");
  std::string no_sms = why_no_sms(*daemon, joined);
  return Joined{std::move(joined),
                std::ranges::any_of(status->devices, [](const ipc::Device& d) { return d.kind == "software"; }),
                std::move(no_sms), std::move(visible)};
}

/// Says what the user may not expect of the program, which is about to start.
void say_what_is_odd(const Context& context, const RunPlan& plan, const std::string& no_sms) {
  const std::string slice = printable(plan.slice);
  if (!no_sms.empty())
    context.err << "gpuctl: run: slice '" << slice << "' has no SMs (" << no_sms
                << "): what it launches waits until it has some\n";
  if (plan.visible_devices && plan.visible_devices->empty()) {
    const char* own = std::getenv(kVisibleDevices);
    context.err << "gpuctl: run: the program sees no GPU: slice '" << slice << "' has none "
                << (own == nullptr ? std::string("here") : "of " + std::string(kVisibleDevices) + "=" + printable(own))
                << '\n';
  }
  const std::string obstacle = preload_obstacle(context.command[0]);
  if (!obstacle.empty())
    context.err << "gpuctl: run: '" << printable(context.command[0]) << "' runs without gpuctl's library, so slice '"
                << slice << "' does not limit it: " << printable(obstacle) << '\n';
  context.err.flush();
  // What was put into this process may follow processes, and wait for those that it did not see begin.
  if (obstacle.empty() && plan.ld_preload.empty()) watch_beside(plan.slice, plan.library);
}

/// The process is `words` from here on; returns if that cannot be.
void become(std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
}

/// The first line; that of systemd-run says what is wrong.
std::string said_by(const ChildSaid& child) {
  const std::string line = child.text.substr(0, child.text.find('\n'));
  return line.empty() ? "systemd-run ended with status " + std::to_string(child.status) : line;
}

/// Becomes the same in a scope of systemd; returns why not.
Failure enter_scope(const Context& context, std::optional<std::string> slice, bool quiet) {
  ScopePlan plan{.unit = scope_name(),
                 .of_user = ::geteuid() != 0,
                 .self = own_executable(),
                 .socket = context.socket,
                 .slice = std::move(slice),
                 .quiet = quiet,
                 .command = context.command};
  if (std::string obstacle = scope_obstacle(plan.of_user, variable("XDG_RUNTIME_DIR")); !obstacle.empty())
    return {kExitRunFailed, "run: there is no scope: " + printable(obstacle)};
  if (const auto trial = ask_child(scope_trial(plan)); trial && trial->status != 0)
    return {kExitRunFailed, "run: there is no scope: " + printable(said_by(*trial))};
  std::vector<std::string> words = scope_command(plan);
  if (has_variable(words)) {
    const auto said = ask_child({words[0], "--version"});
    plan.may_expand = said && may_expand(said->text);
    words = scope_command(plan);
  }
  become(words);
  return {kExitRunFailed, "run: there is no scope: cannot execute '" + words[0] + "': " + std::strerror(errno)};
}

Failure exec_failure(const std::string& program, int error) {
  std::error_code ignored;
  const bool directory = error == EACCES && std::filesystem::is_directory(program, ignored);
  const std::string reason = directory ? "it is a directory" : std::strerror(error);
  const std::string message = "run: cannot execute '" + program + "': " + reason;
  return {error == ENOENT ? kExitNotFound : kExitNotExecutable, message};
}

}  // namespace

Action declare_run(Arguments& arguments) {
  auto name = std::make_shared<std::string>();
  const Argument slice =
      arguments.add("--slice", *name, "The slice to run in (GPUCTL_SLICE, else that whose join names you)")
          .value("NAME");
  auto quiet = std::make_shared<bool>(false);
  arguments.add_flag("--quiet", *quiet, "Do not say which programs the slice does not limit, and that it has no SMs");
  auto scope = std::make_shared<bool>(false);
  arguments.add_flag("--scope", *scope, "Run it in a transient scope of its own, by which systemd can limit it");
  // For the help only: the program's command line is cut off before the options are parsed.
  auto program = std::make_shared<std::vector<std::string>>();
  arguments.add("PROGRAM", *program, "The program, looked up in PATH, and its arguments, passed on untouched");
  arguments.footer(
      "Options of gpuctl end at the program or at '--'. The program keeps its arguments, environment, descriptors and\n"
      "process id; its exit status is that of gpuctl. 125: gpuctl itself failed, 126: not executable, 127: not found.");

  return [name, slice, quiet, scope, program](Context& context) -> Outcome<int> {
    const bool heard = !*quiet && ::fcntl(STDERR_FILENO, F_GETFD) >= 0;
    if (!slice.given()) *name = variable("GPUCTL_SLICE");
    if (context.command.empty()) return usage("run: no program given; write gpuctl run --slice NAME PROGRAM ARGUMENTS");
    if (*scope) return enter_scope(context, slice.given() ? std::optional(*name) : std::nullopt, *quiet);
    const Outcome<std::string> path = name->empty() && !slice.given() ? Outcome<std::string>("") : slice_path(*name);
    if (!path) return path.error();
    const Outcome<Joined> joined = check_slice(context, *path);
    if (!joined) return joined.error();

    RunPlan plan;
    plan.socket = std::filesystem::absolute(context.socket);
    plan.slice = joined->slice;
    plan.ld_preload = variable("LD_PRELOAD");
    plan.ld_library_path = variable("LD_LIBRARY_PATH");
    const std::string self = own_executable();
    const Result<std::string> library = find_library(self);
    if (!library) return Failure{kExitRunFailed, "run: " + library.error().message};
    plan.library = *library;
    if (joined->software) {
      const Result<std::string> directory = find_software_gpu(self);
      if (!directory) return Failure{kExitRunFailed, "run: " + directory.error().message};
      plan.software_gpu = *directory;
    }
    plan.visible_devices = joined->visible;
    if (heard) say_what_is_odd(context, plan, joined->no_sms);
    for (const auto& [key, value] : run_environment(plan)) ::setenv(key.c_str(), value.c_str(), 1);

    become(context.command);
    return exec_failure(context.command[0], errno);
  };
}

}  // namespace gpuctl::cli
