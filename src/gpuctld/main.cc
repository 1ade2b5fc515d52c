// gpuctld: command line, configuration, socket, state, then the event loop. Everything else is in the library.
#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>

#include "gpuctld/config/options.h"
#include "gpuctld/config/state.h"
#include "gpuctld/config/trusted_file.h"
#include "gpuctld/host/device_search.h"
#include "gpuctld/host/driver_probe.h"
#include "gpuctld/host/gpu_users.h"
#include "gpuctld/host/group_limits.h"
#include "gpuctld/host/journal.h"
#include "gpuctld/host/line_log.h"
#include "gpuctld/host/mps_helper.h"
#include "gpuctld/host/mps_start.h"
#include "gpuctld/host/service_manager.h"
#include "gpuctld/manager/event_kinds.h"
#include "gpuctld/manager/service.h"
#include "gpuctld/protocol/listen_socket.h"
#include "gpuctld/protocol/varlink_server.h"
#include "sched/effective/fit_reserves.h"
#include "sched/kept_memory.h"

namespace gpuctl::daemon {

namespace {

namespace asio = boost::asio;

/// For the driver, with --check-config: its answer is not needed.
constexpr std::chrono::seconds kCheckPatience{10};

void log(const std::string& line) {
  static LineLog lines(STDERR_FILENO, "gpuctld: ");
  lines.write(line);
}

/// Each client costs four descriptors here; the soft limit of 1024 is for programs that use select(2). The table of
/// descriptors has its size from the start: where it grows while there is another thread (LetGo), the kernel lets this
/// one wait for all processors, 30 ms where they are busy.
void make_room_for_descriptors() {
  constexpr rlim_t kPerClient = 4;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  const auto last = static_cast<int>(std::min(limit.rlim_cur, kPerClient * kMaxConnections) - 1);
  const ipc::UniqueFd at_the_end(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, last));
}

/// Where one is closed a file of the daemon's own would take its place, and have what is written to the log.
void open_standard_descriptors() {
  int found = 0;
  while (found >= 0 && found <= STDERR_FILENO) found = ::open("/dev/null", O_RDWR);  // NOLINT: they stay open
  if (found > STDERR_FILENO) ::close(found);
}

/// Large blocks go back to the system as soon as they are free. By itself the C library would keep them in its heap
/// from the first on that is freed, between small ones. Then the memory of long messages of a moment stays with the
/// daemon.
void give_large_blocks_back() {
  constexpr int kLargeBytes = 128 << 10, kKeptAtTheEndBytes = 1 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kLargeBytes);
  ::mallopt(M_TRIM_THRESHOLD, kKeptAtTheEndBytes);
}

/// Keeps the state directory for this daemon alone until the process ends, in whatever way it ends.
Result<ipc::UniqueFd> lock_state(const std::string& directory) {
  std::error_code error;
  const std::filesystem::path above = std::filesystem::path(directory).parent_path();
  if (!above.empty()) std::filesystem::create_directories(above, error);
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
    return fail("cannot make the state directory " + directory + ": " + std::strerror(errno));
  if (const auto trusted = check_trusted_directory(directory, ::geteuid()); !trusted)
    return fail("cannot use the state directory " + trusted.error().message);
  const std::string file = directory + "/lock";
  ipc::UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd)
    return fail("cannot use the state directory " + directory + ": cannot open " + file + ": " + std::strerror(errno));
  if (!lock_soon(fd.get(), kDeadPatience)) return fail(directory + ": in use by another gpuctld");
  return fd;
}

/// Where what is used is kept; "": nowhere. No other user may be able to change it.
std::string usage_file(const Options& options) {
  const auto trusted = check_trusted_directory(options.usage, ::geteuid());
  if (trusted) return options.usage + "/usage.db";
  log("what is used is not kept: " + trusted.error().message);
  return "";
}

/// `file`: the daemon's own socket file, which is to be removed when the daemon ends in an orderly way.
Result<ipc::UniqueFd> find_listener(const Options& options, const DaemonOptions& settings,
                                    std::optional<SocketFile>& file) {
  if (!options.private_instance) {
    std::string problem;
    const int inherited = inherited_listener(problem);
    if (!problem.empty()) return fail("systemd: " + problem);
    if (inherited >= 0) return ipc::UniqueFd(inherited);
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(options.socket).parent_path(), ignored);
  }
  const unsigned usual_mode = options.private_instance ? 0600 : 0666;
  auto listener = listen_at(options.socket, settings.socket_mode.value_or(usual_mode), settings.socket_group);
  if (listener) file.emplace(options.socket);
  return listener;
}

/// Where a daemon that may use GPUs has its own MPS: beside its socket.
std::string mps_directory(const Options& options) {
  if (!options.mps_start_socket.empty()) return std::string(kServiceMps);
  if (!options.mps_control_socket.empty()) return "";  // it is not the user who could
  return std::filesystem::absolute(options.socket).string() + ".mps";
}

/// The GPUs that the configuration selects, if there are any to be seen.
std::vector<Gpu> gpus_to_check(const Config& config, bool software, const std::string& probe_socket) {
  asio::io_context context(1);
  SearchOptions search = search_for(software, probe_socket);
  search.timeout = kCheckPatience;
  std::vector<Gpu> gpus;
  const auto found = [&](std::vector<Gpu> devices) {
    auto selected = select_devices(std::move(devices), config.devices);
    if (!selected) return log(selected.error().message);
    gpus = std::move(*selected);
  };
  DeviceSearch devices(context, search, found, [&](const std::string&) { devices.stop(); });
  context.run();
  return gpus;
}

/// The exit status of --check-config, once the files are read: whether the slices are possible on some GPU. Says which
/// reserves, and which memory_min, do not fit those that are there.
int check_slices(const Config& config, bool software, const std::string& probe_socket) {
  const std::vector<Gpu> gpus = gpus_to_check(config, software, probe_socket);
  std::vector<sched::GpuSize> sizes;
  for (const Gpu& gpu : gpus) sizes.push_back(size_of(gpu));
  sched::SliceTree tree = sizes.empty() ? sched::SliceTree(sched::CapSM{kMaxSms}, ::geteuid())
                                        : sched::SliceTree(std::move(sizes), ::geteuid());
  std::map<std::string, std::string> configured;
  const auto applied = apply_config(config, true, ::geteuid(), configured, tree);
  if (!applied) return log(applied.error().message), 1;
  for (const Gpu& gpu : gpus) {
    const sched::SliceTree there = tree.on(size_of(gpu));
    for (const auto& [path, line] :
         sched::unfit_reserves(there.slices(), there.nodes(), sched::CapSM{std::min(gpu.sms, kMaxSms)},
                               "GPU " + std::to_string(gpu.index)))
      log(line);
    for (const auto& [path, line] :
         sched::unfit_memory(there.slices(), there.effective(), gpu.memory_bytes, "GPU " + std::to_string(gpu.index)))
      log(line);
  }
  return 0;
}

int run(int argc, char** argv) {
  int exit_status = -1;
  const Options options = parse_options(argc, argv, exit_status);
  if (exit_status >= 0) return exit_status;
  if (options.probe) {
    std::cout << driver_answer(kDriverLibrary) << std::flush;
    return 0;
  }
  if (options.look) {
    std::cout << gpu_users_answer(options.look_for.empty() ? kCudaDevice : options.look_for) << std::flush;
    return 0;
  }
  std::signal(SIGPIPE, SIG_IGN);
  if (options.mps_start) return become_mps(STDIN_FILENO, STDOUT_FILENO);
  if (options.limit_memory) {
    std::cout << limits_answer(read_limits_question(STDIN_FILENO), kNvmlLibrary) << std::flush;
    return 0;
  }
  if (options.mps_control) return answer_mps_command(STDIN_FILENO, STDOUT_FILENO);
  make_room_for_descriptors();
  give_large_blocks_back();

  ConfigOutcome outcome =
      read_config(options.config, options.config_required, options.strict ? Accepted::documented : Accepted::all);
  for (const std::string& note : outcome.notes) log(note);
  for (const std::string& note : links_in_joins(outcome.config)) log(note);
  for (const std::string& problem : outcome.problems) log(problem);
  if (!outcome.problems.empty()) return 1;
  const bool software = options.software_gpu || outcome.config.daemon.software_gpu;
  if (options.check_config) return check_slices(outcome.config, software, options.probe_socket);

  std::optional<SocketFile> socket_file;
  auto listener = find_listener(options, outcome.config.daemon, socket_file);
  if (!listener) return log(listener.error().message), 1;
  if (const auto pages = ipc::NewStub::can_be_sealed(); !pages) return log(pages.error().message), 1;
  const auto lock = lock_state(options.state);
  if (!lock) return log(lock.error().message), 1;

  ManagerOptions manager_options{.kept = {.state = options.state + "/state.json",
                                          .kernels = options.state + "/kernels.json",
                                          .isolation = options.state + "/isolation.json",
                                          .attached = options.state + "/attached.json"},
                                 .usage = usage_file(options),
                                 .config_file = options.config,
                                 .config_required = options.config_required,
                                 .probe_socket = options.probe_socket,
                                 .look_socket = options.look_socket,
                                 .limits = {.socket = options.limits_socket, .program = "/proc/self/exe"},
                                 .socket = std::filesystem::absolute(options.socket),
                                 .mps_directory = mps_directory(options),
                                 .mps_start_socket = options.mps_start_socket,
                                 .mps_control_socket = options.mps_control_socket,
                                 // The system's daemon has a user of its own, who is nobody to it.
                                 .root_uid = options.private_instance ? ::geteuid() : 0,
                                 .evict_storm = options.evict_storm,
                                 .notes = {}};
  // NVIDIA's library knows nothing of the software GPU.
  if (!software) manager_options.energy = {.socket = options.probe_socket, .program = "/proc/self/exe"};
  const auto journal = Journal::of(STDERR_FILENO);
  if (journal)
    manager_options.journal = [&journal](const ipc::Event& event, const std::string& line) {
      return journal->write(line, journal_fields(event));
    };
  asio::io_context context(1);
  const Service service(context, std::move(*listener), std::move(manager_options), std::move(outcome.config), software,
                        log);
  context.run();
  return service.exit_status();
}

}  // namespace

}  // namespace gpuctl::daemon

int main(int argc, char** argv) {
  try {
    gpuctl::daemon::open_standard_descriptors();
    return gpuctl::daemon::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "gpuctld: " << error.what() << "\n";
    return 1;
  }
}
