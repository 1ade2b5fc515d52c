#include "gpuctld/manager/manager.h"

#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstring>

#include "gpuctld/clock.h"
#include "gpuctld/config/trusted_file.h"
#include "gpuctld/host/mps.h"

namespace gpuctl::daemon {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

/// Lines about a damaged state file.
constexpr std::size_t kMostNotes = 20;
/// Of the file of kernels: many times what KernelKnowledge keeps.
constexpr std::size_t kMostKernelBytes = 256u << 20;

/// The devices that [[device]] selects.
Result<std::vector<Gpu>> select(std::vector<Gpu> devices, const std::vector<DeviceSelector>& selectors) {
  if (selectors.empty()) return devices;
  std::vector<Gpu> selected;
  for (const DeviceSelector& selector : selectors) {
    const auto found = std::find_if(devices.begin(), devices.end(), [&](const Gpu& gpu) {
      return selector.uuid.empty() ? gpu.index == selector.index : same_uuid(gpu.uuid, selector.uuid);
    });
    if (found == devices.end()) return fail(selector.where + ": device: no such GPU in this machine");
    const bool twice =
        std::any_of(selected.begin(), selected.end(), [&](const Gpu& gpu) { return gpu.index == found->index; });
    if (twice) return fail(selector.where + ": device: selected twice");
    selected.push_back(*found);
  }
  return selected;
}

/// Restores the slices that the file has, and returns what the configuration said about them. If anything is left out,
/// the file is copied first, because it will be written anew.
Result<std::map<std::string, std::string>> restore(const std::string& file, sched::SliceTree& tree,
                                                   const Manager::Log& log) {
  auto loaded = load_state(file);
  if (!loaded) return fail(loaded.error().message + "; gpuctld does not start, so that no slice in it is lost");
  std::vector<std::string>& notes = loaded->left_out;
  restore_slices(loaded->state, tree, notes);
  for (std::size_t i = 0; i < std::min(notes.size(), kMostNotes); ++i) log(file + ": " + notes[i]);
  if (notes.size() > kMostNotes) log(file + ": " + std::to_string(notes.size() - kMostNotes) + " more like these");
  if (!notes.empty()) {
    if (const auto copied = replace_file(file + ".bad", loaded->text); !copied) return copied.error();
    log(file + ": as it was found, it is kept as " + file + ".bad");
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

/// Empties an eventfd that another process may have made blocking.
void drain(int eventfd) {
  std::uint64_t count = 0;
  const iovec into{&count, sizeof count};
  // Offset -1 means the current position. A kernel without RWF_NOWAIT for eventfds gets a plain read.
  if (::preadv2(eventfd, &into, 1, -1, RWF_NOWAIT) < 0 && errno == EOPNOTSUPP)
    (void)!::read(eventfd, &count, sizeof count);
}

}  // namespace

Result<std::unique_ptr<Manager>> Manager::create(asio::io_context& context, ManagerOptions options,
                                                 std::vector<Gpu> devices, Config config, Log log) {
  auto selected = select(std::move(devices), config.devices);
  if (!selected) return selected.error();
  if (selected->empty()) return fail("no GPU to manage");
  std::uint32_t fewest = selected->front().sms;
  for (const Gpu& gpu : *selected) fewest = std::min(fewest, gpu.sms);
  sched::SliceTree tree(sched::CapSM{fewest}, options.root_uid);

  std::map<std::string, std::string> configured;
  if (!options.state_file.empty()) {
    auto restored = restore(options.state_file, tree, log);
    if (!restored) return restored.error();
    configured = std::move(*restored);
  }
  if (auto applied = apply_config(config, false, configured, tree); !applied) return applied.error();
  std::unique_ptr<Manager> manager(new Manager(context, std::move(options), std::move(config), std::move(*selected),
                                               std::move(tree), std::move(configured), std::move(log)));
  manager->save();
  manager->load_kernels();
  manager->expect_holders();
  return manager;
}

Manager::Manager(asio::io_context& context, ManagerOptions options, Config config, std::vector<Gpu> devices,
                 sched::SliceTree tree, std::map<std::string, std::string> configured, Log log)
    : context_(context),
      options_(std::move(options)),
      config_(std::move(config)),
      configured_(std::move(configured)),
      log_(std::move(log)),
      scheduler_(std::move(devices), std::move(tree), conditions()),
      state_keeper_(context, options_.state_file, log_),
      holdings_(scheduler_, options_.attached_file, log_),
      returning_(context, scheduler_, log_, [this] { on_freed(); }),
      budgets_(options_.root_uid, kBudgetOfUser, budget_of_all()),
      mps_(context),
      departed_(context),
      tick_timer_(context),
      storm_timer_(context),
      started_ns_(now_ns()) {}

/// What holds for all devices now. MPS may start and stop. That matters to programs that start afterwards, and their
/// arrival makes the daemon look. With a storm of evictions all kernels must be preemptible from the start, not only
/// from its first wave on.
Conditions Manager::conditions() const {
  return {.time_sliced = !mps_active(),
          .sets_time_slices = config_.daemon.time_slices,
          .always_preemptible = config_.daemon.always_preemptible || options_.evict_storm.count() > 0,
          .deadline = config_.daemon.evict_deadline,
          .longest_block_task = config_.daemon.longest_block_task};
}

Manager::~Manager() {
  stop();
}

void Manager::serve(int listener) {
  server_ = std::make_unique<VarlinkServer>(
      context_, listener, budgets_,
      VarlinkServer::Handler{[this](Session& session, const ipc::Call& request) { return call(session, request); },
                             [this](Session& session) { on_closed(session); },
                             [this](std::uint32_t uid) { on_refused(uid); }});
  if (options_.evict_storm.count() > 0) arm_storm();
}

std::vector<std::string> Manager::reload() {
  ConfigOutcome outcome = read_config(options_.config_file, options_.config_required);
  if (!outcome.problems.empty()) return outcome.problems;
  sched::SliceTree tree = scheduler_.tree();
  auto configured = configured_;
  if (auto applied = apply_config(outcome.config, true, configured, tree); !applied) return {applied.error().message};
  configured_ = std::move(configured);
  config_ = std::move(outcome.config);
  change_tree(std::move(tree));
  return {};
}

void Manager::stop() {
  if (stopped_) return;
  stopped_ = true;
  state_keeper_.stop();
  save_kernels();
  tick_timer_.cancel();
  storm_timer_.cancel();
  mps_.stop();
  for (const auto& ending : endings_) ending->cancel();
  endings_.clear();
  departed_.stop();
  returning_.stop();
  if (server_) server_->stop();
}

void Manager::change_tree(sched::SliceTree tree) {
  scheduler_.set_tree(std::move(tree), conditions(), now_ns());
  faults_.keep([this](const std::string& slice) { return scheduler_.tree().find(slice) != nullptr; });
  arm_tick();
  save();
}

void Manager::save() {
  state_keeper_.save(current_state(scheduler_.tree(), configured_));
}

void Manager::load_kernels() {
  if (options_.kernels_file.empty()) return;
  const auto text = read_trusted_file(options_.kernels_file, Writers::owner, ::geteuid(), kMostKernelBytes);
  if (!text) return log_(text.error().message + "; kernels are learnt anew");
  if (!*text) return;
  error_code broken;
  const boost::json::value value = boost::json::parse(**text, broken);
  const auto loaded = broken ? Result<void>(fail("not JSON")) : scheduler_.knowledge().from_json(value);
  if (!loaded) log_(options_.kernels_file + ": " + loaded.error().message + "; kernels are learnt anew");
}

void Manager::save_kernels() {
  kernels_saved_ns_ = now_ns();
  if (options_.kernels_file.empty() || !scheduler_.knowledge().take_changed()) return;
  const auto saved =
      replace_file(options_.kernels_file, boost::json::serialize(scheduler_.knowledge().to_json()) + "\n");
  if (!saved) log_("what was learnt about kernels would not survive a restart: " + saved.error().message);
}

/// Counts what programs of the daemon before may still be using, and records what those of this one may.
void Manager::expect_holders() {
  if (options_.attached_file.empty()) return;
  const auto holdings = load_holdings(options_.attached_file);
  if (!holdings) log_(holdings.error().message + "; what programs hold is not known until they come back");
  holdings_.begin();
  if (holdings) returning_.expect(*holdings, now_ns());
}

void Manager::on_freed() {
  holdings_.note_gone();
  if (members_.empty()) holdings_.tidy(now_ns(), true);
  arm_tick();
}

void Manager::Member::wait_for_kick() {
  kick.async_wait(asio::posix::stream_descriptor::wait_read, [self = shared_from_this()](error_code error) {
    if (error || self->gone) return;
    drain(self->kick.native_handle());
    const bool in_time = self->manager.on_kick(self->client.identity().uid);
    self->resting = ++self->kicks >= kKicksPerTick || !in_time;
    if (!self->resting) return self->wait_for_kick();
    self->manager.anybody_rests_ = true;
    self->manager.arm_tick();
  });
}

void Manager::Member::wait_for_exit() {
  exit.async_wait(asio::posix::stream_descriptor::wait_read, [self = shared_from_this()](error_code error) {
    if (!error && !self->gone) self->session.close();
  });
}

void Manager::look(std::uint64_t now_ns) {
  const bool changed = scheduler_.update(now_ns);
  pace_.looked(changed, std::chrono::nanoseconds(daemon::now_ns() - now_ns));
}

/// False if the user's programs have woken the daemon too often.
bool Manager::on_kick(std::uint32_t uid) {
  const std::uint64_t began = now_ns();
  look(began);
  arm_tick();
  const std::uint64_t now = now_ns();
  return budgets_.woke(uid, std::chrono::nanoseconds(now - began), now);
}

/// Frees what the session's client held before anything else is served.
void Manager::on_closed(Session& session) {
  scheduler_.forget_reader(&session, now_ns());
  const auto found = members_.find(&session);
  if (found == members_.end()) return;
  const std::shared_ptr<Member> member = std::move(found->second);
  members_.erase(found);
  member->gone = true;
  error_code ignored;
  member->kick.close(ignored);
  ipc::UniqueFd pidfd(member->exit.is_open() ? member->exit.release() : -1);
  if (stopped_) return;
  departed_.keep(scheduler_.remove(member->client, now_ns()), std::move(pidfd));
  on_freed();
}

void Manager::on_refused(std::uint32_t uid) {
  log_of(uid, "a connection of user " + std::to_string(uid) + " is closed: this user, or all users, have too many");
}

void Manager::log_of(std::uint32_t uid, const std::string& line) {
  const auto left_out = budgets_.log_line(uid, now_ns());
  if (!left_out) return;
  if (*left_out > 0)
    log_(std::to_string(*left_out) + " lines about programs of user " + std::to_string(uid) + " were left out");
  log_(line);
}

/// Makes the next tick come soon enough for what the clients do.
void Manager::arm_tick() {
  if (stopped_ || members_.empty()) return;
  const std::chrono::nanoseconds wait = std::min<std::chrono::nanoseconds>(
      pace_.wait(scheduler_.waiting(), scheduler_.busy()), anybody_rests_ ? kBusyTick : kIdleTick);
  const std::chrono::steady_clock::time_point again{
      std::chrono::nanoseconds(std::min<std::uint64_t>(scheduler_.again_ns(), INT64_MAX))};
  const auto at = std::min(std::chrono::steady_clock::now() + wait, again);
  if (tick_armed_ && tick_at_ <= at) return;
  tick_armed_ = true;
  tick_at_ = at;
  tick_timer_.expires_at(at);
  tick_timer_.async_wait([this](error_code error) {
    if (error || stopped_) return;
    tick_armed_ = false;
    tick();
  });
}

void Manager::tick() {
  const std::uint64_t now = now_ns();
  look(now);
  anybody_rests_ = false;
  for (const auto& [session, member] : members_) {
    member->kicks = 0;
    if (std::exchange(member->resting, false)) member->wait_for_kick();
  }
  for (Client* client : scheduler_.check_deadlines(now)) handle_disobedience(*client);
  if (std::chrono::nanoseconds(now - kernels_saved_ns_) >= kSaveKernelsEvery) save_kernels();
  holdings_.tidy(now);
  arm_tick();
}

void Manager::handle_disobedience(Client& client) {
  const std::string who = "process " + std::to_string(client.identity().pid) + " (" + client.identity().command +
                          ", slice " + client.slice() + ")";
  const bool stop = config_.daemon.on_disobey == OnDisobey::stop;
  log_of(client.identity().uid, who + " has not given back SMs within its deadline" + (stop ? ": it is stopped" : ""));
  if (!stop) return;
  for (const auto& [session, member] : members_)
    if (&member->client == &client) end({member}, {.signal = SIGKILL, .timeout = {}}, [](const auto&) {});
}

void Manager::arm_storm() {
  const double mean = static_cast<double>(options_.evict_storm.count());
  const double wait = random_.exponential(mean);
  storm_timer_.expires_after(std::chrono::microseconds(static_cast<std::int64_t>(std::min(wait, 20.0 * mean))));
  storm_timer_.async_wait([this](error_code error) {
    if (error || stopped_) return;
    scheduler_.storm(random_, now_ns());
    arm_storm();
  });
}

}  // namespace gpuctl::daemon
