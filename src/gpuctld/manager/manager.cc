#include "gpuctld/manager/manager.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "gpuctld/clients/kept_to_earlier.h"
#include "gpuctld/clock.h"
#include "gpuctld/config/state.h"
#include "gpuctld/config/trusted_file.h"
#include "gpuctld/host/mps.h"
#include "gpuctld/manager/event_kinds.h"
#include "gpuctld/protocol/timed.h"

namespace gpuctl::daemon {

namespace asio = boost::asio;

namespace {

/// Lines about a state file that is damaged, or of an earlier version.
constexpr std::size_t kMostNotes = 20;

/// Restores the slices that the file has, and returns what the configuration said about them. If anything is left out,
/// the file is copied first, because it will be written anew.
Result<std::map<std::string, std::string>> restore(const std::string& file, sched::SliceTree& tree,
                                                   const Manager::Log& log) {
  auto loaded = load_state(file);
  if (!loaded) return fail(loaded.error().message + "; gpuctld does not start, so that no slice in it is lost");
  const auto log_some = [&](const std::vector<std::string>& lines) {
    for (std::size_t i = 0; i < std::min(lines.size(), kMostNotes); ++i) log(file + ": " + lines[i]);
    if (lines.size() > kMostNotes) log(file + ": " + std::to_string(lines.size() - kMostNotes) + " more like these");
  };
  restore_slices(loaded->state, tree, loaded->left_out);
  log_some(loaded->notes);
  log_some(loaded->left_out);
  if (!loaded->left_out.empty()) {
    const auto copy = keep_aside(file, loaded->text);
    if (!copy) return copy.error();
    log(file + ": as it was found, it is kept as " + *copy);
  }
  return std::move(loaded->state.configured);
}

/// For users other than root together. Each client takes four descriptors here; some are left for root.
Budget budget_of_all() {
  constexpr rlim_t kLeft = 256, kPerClient = 4;
  Budget budget = kBudgetOfAll;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    budget.connections =
        std::min<std::size_t>(budget.connections, (limit.rlim_cur - std::min(limit.rlim_cur, kLeft)) / kPerClient);
  return budget;
}

/// How often it is looked how much memory slices hold.
constexpr std::uint64_t kSeeMemoryEveryNs = 100'000'000;

/// A program that gives SMs back too late is told of so often.
constexpr std::uint64_t kTellDisobedienceEveryNs = 60'000'000'000;

std::vector<std::string> uuids_of(const std::vector<Gpu>& gpus) {
  std::vector<std::string> uuids;
  for (const Gpu& gpu : gpus) uuids.push_back(gpu.uuid);
  return uuids;
}

/// Most of what a wake-up takes is not measured: the loop's own work. In calls.
constexpr double kCostOfWakeUp = 0.25;

}  // namespace

Result<std::unique_ptr<Manager>> Manager::create(asio::io_context& context, ManagerOptions options,
                                                 std::vector<Gpu> devices, Config config, Log log) {
  const std::size_t there = devices.size();
  auto selected = select_devices(std::move(devices), config.devices);
  if (!selected) return selected.error();
  if (selected->empty()) return fail("no GPU to manage");
  options.leaves_out_gpus = selected->size() < there;
  std::vector<sched::GpuSize> sizes;
  for (const Gpu& gpu : *selected) sizes.push_back(size_of(gpu));
  sched::SliceTree tree(std::move(sizes), options.root_uid);

  std::map<std::string, std::string> configured;
  if (!options.kept.state.empty()) {
    auto restored = restore(options.kept.state, tree, log);
    if (!restored) return restored.error();
    configured = std::move(*restored);
  }
  if (auto applied = apply_config(config, false, options.root_uid, configured, tree); !applied) return applied.error();
  std::unique_ptr<Manager> manager(new Manager(context, std::move(options), config.daemon, std::move(*selected),
                                               std::move(tree), std::move(configured), std::move(log)));
  manager->kept_.begin(now_ns());
  manager->log_unfit();
  return manager;
}

Manager::Manager(asio::io_context& context, ManagerOptions options, const DaemonOptions& daemon,
                 std::vector<Gpu> devices, sched::SliceTree tree, std::map<std::string, std::string> configured,
                 Log log)
    : context_(context),
      options_(std::move(options)),
      log_(std::move(log)),
      scheduler_(std::move(devices), std::move(tree), with_storm(daemon), !mps_active()),
      kept_(context, scheduler_, options_.kept, std::move(configured), log_, [this] { on_freed(); }),
      budgets_(options_.root_uid, kBudgetOfUser, budget_of_all()),
      limits_helper_(context, options_.limits),
      attached_(context, scheduler_,
                {.woken = [this](std::uint32_t uid, const auto& drain) { return on_kick(uid, drain); },
                 .rests = [this] { arm_tick(); }}),
      pages_(context),
      queues_(context),
      mps_(context,
           {options_.mps_directory, options_.socket, options_.mps_start_socket,
            options_.mps_start_socket.empty() ? "" : options_.mps_control_socket},
           log_),
      ends_(
          context, options_.mps_control_socket,
          [this](std::uint32_t uid, const std::string& line) { log_of(uid, line); },
          [this](std::int32_t pid) { attached_.open_grants(pid); }),
      driver_limits_(context, uuids_of(scheduler_.devices()), limits_hooks(), options_.limits_pace),
      ticker_(context, scheduler_, {.tick = [this] { tick(); }, .looked = [this] { arm_tick(); }}),
      telling_(context),
      usage_(context, options_.usage, log_),
      keeping_(context),
      energy_watch_(context, options_.energy, [this](const std::vector<Gpu>& gpus) { share_energy(gpus); }),
      unmanaged_watch_(
          context, options_.look_socket, [this](const std::vector<GpuUser>& users) { return tell_unmanaged(users); },
          options_.look_pace),
      started_ns_(now_ns()) {
  if (const bool time_sliced = look_at_mps(); time_sliced != scheduler_.time_sliced())
    scheduler_.set_time_sliced(time_sliced, now_ns());
  mps_there_ = mps_.serves();
  slices_with_mps_ = slices_with_mps();
}

/// With a storm of evictions all kernels must be preemptible from the start, not only from its first wave on.
DaemonOptions Manager::with_storm(DaemonOptions daemon) const {
  daemon.always_preemptible |= options_.evict_storm.count() > 0;
  return daemon;
}

Manager::~Manager() {
  stop();
}

void Manager::serve(int listener, std::vector<HandedOver> connections) {
  server_ = std::make_unique<VarlinkServer>(
      context_, listener, budgets_,
      VarlinkServer::Handler{[this](Session& session, const ipc::Call& request) { return call(session, request); },
                             [this](Session& session) { on_closed(session); },
                             [this](std::uint32_t uid) { on_refused(uid); }});
  server_->adopt(std::move(connections));
  unmanaged_watch_.begin();
  if (options_.evict_storm.count() > 0) ticker_.begin_storm(options_.evict_storm);
}

std::vector<std::string> Manager::reload() {
  ConfigOutcome outcome = read_config(options_.config_file, options_.config_required);
  for (const std::string& note : outcome.notes) log_(note);
  for (const std::string& note : links_in_joins(outcome.config)) log_(note);
  if (!outcome.problems.empty()) return outcome.problems;
  sched::SliceTree tree = scheduler_.tree();
  auto configured = kept_.configured();
  if (auto applied = apply_config(outcome.config, true, options_.root_uid, configured, tree); !applied)
    return {applied.error().message};
  for (const std::string& line : kept_to_earlier_max(scheduler_.tree(), tree, scheduler_.clients())) log_(line);
  kept_.set_configured(std::move(configured));
  if (outcome.config.daemon.software_gpu != scheduler_.options().software_gpu)
    log_("software_gpu is another one now, which counts once gpuctld is started anew");
  change(std::move(tree), with_storm(outcome.config.daemon), std::nullopt);
  unmanaged_watch_.look_now();
  log_unfit();
  return {};
}

void Manager::log_unfit() {
  for (const std::string& line : scheduler_.unfit_reserves()) log_(line);
}

void Manager::stop() {
  if (ticker_.stopped()) return;
  ticker_.stop();
  scheduler_.lift_quotas(now_ns());
  telling_.cancel();
  unmanaged_watch_.stop();
  keeping_.cancel();
  energy_watch_.stop();
  driver_limits_.stop();
  limits_helper_.stop();
  ends_.stop();
  attached_.stop();
  queues_.stop();
  mps_.stop();
  kept_.stop(now_ns());
  keep_usage();
  usage_.stop();
  if (server_) server_->stop();
}

void Manager::change(sched::SliceTree tree, const DaemonOptions& daemon, std::optional<std::uint32_t> by) {
  const bool time_sliced = look_at_mps();  // which takes time; a decision counts from when it is begun
  const sched::SliceTree before = scheduler_.set_all(std::move(tree), daemon, time_sliced, now_ns());
  look_at_mps();
  const auto exists = [this](const std::string& slice) { return scheduler_.tree().find(slice) != nullptr; };
  ends_.faults().keep(exists);
  ends_.ended().keep(exists);
  kept_.keep_moved(exists);
  std::erase_if(memory_counts_, [&](const auto& entry) { return !exists(entry.first); });
  std::erase_if(memory_on_, [&](const auto& entry) { return !exists(entry.first); });
  std::erase_if(joules_, [&](const auto& entry) { return !exists(entry.first); });
  std::erase_if(sm_seconds_, [&](const auto& entry) { return !exists(entry.first); });
  arm_tick();
  kept_.save_slices();
  driver_limits_.look_soon();
  tell_changes(before.slices(), by);
}

/// MPS may start and stop, which matters to programs that start afterwards. So their arrival makes the daemon look.
/// Whether programs take turns that are not isolated.
bool Manager::look_at_mps() {
  const MpsChoice choice = scheduler_.options().mps;
  const bool needed = std::ranges::any_of(scheduler_.devices(), &Gpu::needs_mps);
  mps_.manage(choice == MpsChoice::manage || (choice == MpsChoice::unset && needed));
  scheduler_.share_by(mps_.ours() ? kSharedMps : "");
  return !mps_.serves();
}

void Manager::on_freed() {
  kept_.note_gone(attached_.empty(), now_ns());
  arm_tick();
}

/// False if the user has taken too much of the daemon's time. To drain an eventfd takes time for each who watches it.
bool Manager::on_kick(std::uint32_t uid, const std::function<void()>& drain) {
  {
    const Timed timed(budgets_, uid);
    drain();
    budgets_.charge(uid, kCostOfWakeUp, 0, now_ns());
  }
  ticker_.look_soon();
  return budgets_.wait(uid, now_ns()).count() == 0;
}

/// Frees what the session's client held before anything else is served.
void Manager::on_closed(Session& session) {
  if (const Attached::Member* member = attached_.find(session); member != nullptr)
    for (const Client::Slot& slot : member->client.slots())
      if (slot.device >= 0) see_memory_of(static_cast<std::size_t>(slot.device));
  scheduler_.forget_reader(&session, now_ns());
  events_.forget(session);
  asked_ends_.erase(&session);
  told_isolated_.erase(&session);
  triggers_.erase(&session);
  pages_.forget(session);
  queues_.leave(session);
  servers_.leave(session);
  mps_.forget(&session);
  std::optional<ipc::Event> left;
  if (const Attached::Member* member = attached_.find(session); member != nullptr && member->program) {
    const std::vector<ipc::ClientUsage> usage = member->client.describe().usage;
    ends_.ended().add(member->client.slice(), member->client.take_counts());
    left = event_of("left", member->client, counts_text(usage));
  }
  if (!attached_.leave(session, now_ns())) return;
  on_freed();
  driver_limits_.look_soon();
  if (left) happened(*left, who(*left) + " left slice " + left->slice + ": " + left->text);
  note_mps_use();
}

void Manager::on_refused(std::uint32_t uid) {
  log_of(uid, "a connection of user " + std::to_string(uid) + " is closed: this user, or all users, have too many");
}

void Manager::log_of(std::uint32_t uid, const std::string& line, const ipc::Event* event) {
  const auto left_out = budgets_.log_line(uid, now_ns());
  if (!left_out) return;
  if (*left_out > 0)
    log_(std::to_string(*left_out) + " lines about programs of user " + std::to_string(uid) + " were left out");
  if (event == nullptr || !options_.journal || !options_.journal(*event, line)) log_(line);
}

void Manager::arm_tick() {
  for (const auto& [mps, us] : scheduler_.server_us()) servers_.write(mps, us, now_ns());
  if (!attached_.empty()) ticker_.arm(attached_.any_rests());
}

void Manager::note_mps_use() {
  std::map<std::string, std::uint32_t> users;
  for (const Client& client : scheduler_.clients()) users.emplace(client.mps, client.identity().uid);
  mps_.note_use(users);
}

DriverLimits::Hooks Manager::limits_hooks() {
  return {.slices = [this]() -> const sched::Slices& { return scheduler_.tree().slices(); },
          .programs = [this] { return attached_.grouped(); },
          .limits = [this](const std::string& slice, std::size_t programs) { return limits_of(slice, programs); },
          .id_of = id_of_cgroup,
          .anybody = [this] { return has_unified_cgroups() && limits_helper_.is_there(); },
          .ask = [this](const GroupLimits& wanted,
                        LimitsHelper::Done done) { limits_helper_.ask(wanted, std::move(done)); },
          .log = log_};
}

/// What the driver is to keep such a control group to on each GPU.
std::vector<std::uint64_t> Manager::limits_of(const std::string& slice, std::size_t programs) const {
  const sched::Slices& slices = scheduler_.tree().slices();
  const auto index = static_cast<std::size_t>(std::distance(slices.begin(), slices.find(slice)));
  std::vector<std::uint64_t> limits;
  for (const sched::Effective& there : scheduler_.effective_on_each(index))
    limits.push_back(sched::driver_limit(there.memory_max, programs, size_of(scheduler_.devices()[limits.size()])));
  return limits;
}

void Manager::tick() {
  const std::uint64_t now = now_ns();
  ticker_.look(now);
  attached_.wake_resting(now);
  for (const Client* client : scheduler_.check_deadlines(now)) handle_disobedience(*client);
  kept_.tick(now);
  if (now >= saw_memory_ns_ + kSeeMemoryEveryNs) see_memory();
  tell_swaps(now);
  look_around(now);
  arm_tick();
}

Manager::MemoryOn& Manager::memory_on(const std::string& slice, std::size_t device) {
  std::vector<MemoryOn>& on = memory_on_[slice];
  on.resize(scheduler_.devices().size());
  return on[device];
}

void Manager::see_memory() {
  saw_memory_ns_ = now_ns();
  for (std::size_t device = 0; device < scheduler_.devices().size(); ++device) see_memory_of(device);
}

/// Sees how much memory slices hold now: who looks later is told the most of that.
void Manager::see_memory_of(std::size_t device) {
  const std::vector<std::uint64_t> held = scheduler_.memory_held(device);
  for (auto bytes = held.begin(); const auto& [path, slice] : scheduler_.tree().slices()) {
    const std::uint64_t now = *bytes++;
    if (now == 0) continue;
    std::uint64_t& peak = memory_on(path, device).peak;
    peak = std::max(peak, now);
  }
}

/// The log has each time, the events one in a minute: a program may be late again and again.
void Manager::tell_disobedience(const Client& client, const std::string& line) {
  const Attached::Members members = attached_.all_of(client.identity().pid);
  const auto member = std::ranges::find(members, &client, [](const auto& one) { return &one->client; });
  const std::uint64_t now = now_ns();
  const bool was_told = member != members.end() && (*member)->disobeyed_told_ns != 0 &&
                        now < (*member)->disobeyed_told_ns + kTellDisobedienceEveryNs;
  if (member == members.end() || was_told) return log_of(client.identity().uid, line);
  (*member)->disobeyed_told_ns = now;
  happened(event_of("disobeyed", client, "it has not given back SMs within its deadline; others have them now"), line);
}

void Manager::handle_disobedience(const Client& client) {
  const bool stop = scheduler_.options().on_disobey == OnDisobey::stop;
  const ipc::Event killed = event_of("killed", client, "it has not given back SMs within its deadline; with SIGKILL");
  const std::string line = who_in_slice(killed) + " has not given back SMs within its deadline";
  if (!stop) return tell_disobedience(client, line);
  happened(killed, line + ": it is stopped");
  auto program = attached_.program_of(client);
  if (!program) return;
  program->pipe_directory = pipe_directory_of(client);
  std::vector<Ends::Program> programs;
  programs.push_back(std::move(*program));
  // Nobody is told. It is the program's own user whose budget of lines that takes.
  (void)ends_.end(std::move(programs), {.signal = SIGKILL, .timeout = {}}, client.identity().uid, [](const auto&) {});
}

}  // namespace gpuctl::daemon
