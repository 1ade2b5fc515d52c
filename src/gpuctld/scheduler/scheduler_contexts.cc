// Which programs share a context of the GPU: those that are not isolated, by MPS, and those of an isolated slice, by
// the MPS of that slice. Each context is decided by itself, and contexts take turns.
#include <algorithm>
#include <utility>

#include "base/plural.h"
#include "gpuctld/grants/time_slices.h"
#include "gpuctld/host/mps_places.h"
#include "gpuctld/scheduler/scheduler.h"
#include "sched/effective/levels.h"

namespace gpuctl::daemon {

namespace {

static_assert(sched::kLevels == ipc::kBandsApart);

/// The band that stands for these levels on a GPU that has so many.
ipc::PriorityBand band_of(const sched::LevelRange& levels) {
  for (std::uint32_t count = 1; count <= sched::kLevels; ++count)
    for (std::uint32_t rank = 0; rank < count; ++rank)
      if (rank * sched::kLevels / count == levels.first && (rank + 1) * sched::kLevels / count == levels.end())
        return {rank, count};
  return {levels.first, sched::kLevels};
}

}  // namespace

void Scheduler::renew_context(std::size_t device, const std::string& mps, std::vector<DeviceGrants::Member> members) {
  auto found = contexts_[device].find(mps);
  if (found == contexts_[device].end())
    found = contexts_[device]
                .emplace(mps, SliceContext{DeviceGrants(devices_[device].sms), nodes_of_context(device, top_of(mps))})
                .first;
  found->second.grants.renew(std::move(members), {.options = &options_});
}

/// The slice whose MPS that is, isolated or, while programs are still in it, formerly so; "": it is gone.
std::string Scheduler::top_of(const std::string& mps) const {
  const auto& slices = tree_.slices();
  const auto has_its_name = [&](const auto& entry) { return MpsPlaces::name_of(entry.first) == mps; };
  for (const auto& entry : slices)  // most have no name to be made
    if (entry.second.isolated && sched::topmost_isolated(slices, entry.first) == entry.first && has_its_name(entry))
      return entry.first;
  const auto former = std::ranges::find_if(slices, has_its_name);
  return former == slices.end() ? "" : former->first;
}

std::vector<sched::NodeInput> Scheduler::nodes_of_context(std::size_t device, const std::string& top) const {
  const auto& slices = tree_on(device).slices();
  const auto found = slices.find(top);
  if (found == slices.end()) return nodes_on_[device];
  const auto index = static_cast<std::size_t>(std::distance(slices.begin(), found));
  std::vector<sched::NodeInput> nodes =
      sched::nodes_within(slices, fixed_nodes(device), index, sched::CapSM{sms_[device]});
  keep_for_targets(device, index, nodes);
  throttle(device, nodes);
  return nodes;
}

/// SMs are kept for slices with a target where their programs are: within the isolated slice `top`, or, 0, where all
/// programs are that are not isolated.
void Scheduler::keep_for_targets(std::size_t device, std::size_t top, std::vector<sched::NodeInput>& nodes) const {
  std::vector<sched::WithTarget> slices = controls_[device].slices();
  std::erase_if(slices, [&](const sched::WithTarget& slice) {
    if (top == 0) return effective_[slice.node].isolated;
    bool within = false;
    sched::each_up_to_root(nodes, slice.node, [&](std::size_t above) { within |= above == top; });
    return !within;
  });
  sched::keep_for(nodes, slices);
}

/// The MPS of an isolated slice in which the client is; "": none. A program that says it is in the MPS of a slice in
/// which it is not has a context of its own, as far as is known. So has one that was moved out of that slice, although
/// it stays in its MPS: within that nothing is due to slices outside.
std::string Scheduler::mps_of_slice(const Client& client) const {
  const bool within = client.isolated && !client.mps.empty() && MpsPlaces::is_for(client.mps, client.slice());
  return within ? client.mps : "";
}

void Scheduler::find_contexts() {
  for (Client& client : clients_)
    client.context = is_apart(client) ? std::optional(mps_of_slice(client)) : std::nullopt;
}

bool Scheduler::would_need_form_within(std::size_t slice, const std::string& top) const {
  if (effective_[slice].ruler >= 0 || recorder_.wanted()) return true;
  for (std::size_t device = 0; device < grants_.size(); ++device) {
    const sched::CappedClient comes{.node = static_cast<std::uint32_t>(slice)};
    const DeviceConditions where{.options = &options_};
    const auto context = contexts_[device].find(MpsPlaces::name_of(top));
    const bool there = context != contexts_[device].end();
    const DeviceGrants none(sms_[device]);
    const auto nodes = there ? context->second.nodes : nodes_of_context(device, top);
    if ((there ? context->second.grants : none).would_be_in_force(nodes, comes, where) != InForce::nothing) return true;
  }
  return false;
}

std::vector<ipc::PriorityBand> Scheduler::bands() const {
  std::vector<sched::NodeInput> nodes = nodes_;
  const std::vector<std::int32_t> raised = sched::raise_levels(nodes, levels_above());
  std::map<std::optional<std::string>, std::vector<sched::LevelClient>> of_context;
  for (const Client& client : clients_)
    of_context[client.context].push_back({client.node, priority_of(client) + raised[client.node]});
  std::map<std::optional<std::string>, std::vector<sched::LevelRange>> levels;
  for (const auto& [context, clients] : of_context) levels[context] = sched::levels_of(nodes, clients);
  std::map<std::optional<std::string>, std::size_t> next;
  std::vector<ipc::PriorityBand> bands;
  for (const Client& client : clients_) {
    const std::size_t place = next[client.context]++;
    const bool alone = client.context && client.context->empty();
    bands.push_back(alone ? ipc::PriorityBand{} : band_of(levels[client.context][place]));
  }
  return bands;
}

/// Gathers the clients of each device, and what follows for each from the tree alone.
void Scheduler::gather_members() {
  std::uint32_t node = 0;
  std::map<std::string_view, std::uint32_t> node_of;
  for (const auto& [path, slice] : tree_.slices()) node_of[path] = node++;
  for (Client& client : clients_) client.node = node_of.at(client.slice());
  find_contexts();
  inhabited_.assign(nodes_.size(), false);
  for (const Client& client : clients_)
    if (!client.context) sched::each_up_to_root(nodes_, client.node, [this](std::size_t n) { inhabited_[n] = true; });

  std::vector<std::optional<sched::WithTarget>> pauses;
  for (const sched::LatencyControl& control : controls_) pauses.push_back(control.pauses());
  std::vector<std::vector<DeviceGrants::Member>> members(grants_.size());  // isolated ones last
  const std::vector<ipc::PriorityBand> bands = this->bands();
  for (auto band = bands.begin(); Client & client : clients_) {
    Terms terms{.priority = priority_of(client), .band = *band++, .memory_max = {}};
    for (std::size_t slot = 0; slot < client.slots().size(); ++slot)
      if (const int device = client.slots()[slot].device; device >= 0) {
        const auto at = static_cast<std::size_t>(device);
        terms.held = pauses[at] && sched::can_be_paused(nodes_, client.node, *pauses[at], controls_[at].slices());
        terms.memory_max = effective_on(at)[client.node].memory_max;
        // What is kept for some is a limit for all. Its own is then in the account by asking too.
        if (keeps_memory(at))
          terms.memory_max = std::min(terms.memory_max.value_or(devices_[at].memory_bytes), devices_[at].memory_bytes);
        terms.memory_high = effective_on(at)[client.node].memory_high.has_value();
        members[at].push_back({&client, slot, terms});
      }
  }
  for (std::size_t device = 0; device < grants_.size(); ++device) {
    add_time_slices(device, members[device]);
    std::map<std::optional<std::string>, std::vector<DeviceGrants::Member>> of_context;
    for (DeviceGrants::Member& member : members[device]) of_context[member.client->context].push_back(member);
    members[device] = std::move(of_context[std::nullopt]);
    isolated_[device].renew(std::move(of_context[""]), {.time_sliced = true, .options = &options_});
    std::erase_if(contexts_[device], [&](const auto& entry) { return !of_context.contains(entry.first); });
    for (auto& [mps, of_slice] : of_context)
      if (mps && !mps->empty()) renew_context(device, *mps, std::move(of_slice));
    const bool time_sliced = time_sliced_ && devices_[device].needs_mps();
    grants_[device].renew(std::move(members[device]), {.time_sliced = time_sliced, .options = &options_});
  }
}

/// By MPS server, "" for programs in none: how long turns may last at most, by node. A server's turns are not short for
/// the sake of a slice whose programs are in it: they would be short for those too.
std::map<std::string, Scheduler::LongestTurns> Scheduler::longest_turns(std::size_t device,
                                                                        std::span<const DeviceGrants::Member> members,
                                                                        std::span<const std::string> mps) const {
  std::map<std::string, std::vector<sched::WithTarget>> slices;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto [served, is_new] = slices.try_emplace(mps[i]);
    if (is_new) served->second = controls_[device].slices();
    if (mps[i].empty()) continue;
    sched::each_up_to_root(nodes_, members[i].client->node, [&its = served->second](std::size_t node) {
      const auto own = std::ranges::find(its, node, &sched::WithTarget::node);
      if (own != its.end()) own->rungs[static_cast<std::size_t>(sched::Dial::turns)] = 0;
    });
  }
  std::map<std::string, LongestTurns> longest;
  for (const auto& [server, its] : slices) longest[server] = sched::longest_turns(fixed_nodes(device), its);
  return longest;
}

/// Programs in MPS have no time slices of their own: their channel groups are the server's.
void Scheduler::add_time_slices(std::size_t device, std::vector<DeviceGrants::Member>& members) {
  for (auto& [mps, us] : server_us_) us.resize(grants_.size()), us[device] = 0;
  server_us_[kSharedMps].resize(grants_.size());
  const bool all_take_turns = time_sliced_ && devices_[device].needs_mps();
  const bool any = all_take_turns ||
                   std::ranges::any_of(members, [](const auto& member) { return member.client->context.has_value(); });
  if (!options_.time_slices || !any) return;
  std::vector<TimeShare> programs;
  std::vector<std::uint32_t*> servers;  // null: it has turns of its own
  std::map<std::string, std::int32_t> numbers;
  std::vector<std::string> mps;  // of each member; "": none
  for (const DeviceGrants::Member& member : members)
    mps.push_back(member.client->context.value_or(all_take_turns ? "" : kSharedMps));
  const auto longest = longest_turns(device, members, mps);
  for (std::size_t i = 0; i < members.size(); ++i) {
    const DeviceGrants::Member& member = members[i];
    TimeShare program{.node = member.client->node,
                      .priority = member.terms.priority,
                      .often = member.client->slots()[member.slot].often,
                      .longest = longest.at(mps[i])[member.client->node]};
    servers.push_back(nullptr);
    if (!mps[i].empty()) {
      const auto server = server_us_.try_emplace(mps[i], grants_.size()).first;
      servers.back() = &server->second[device];
      program.server = numbers.try_emplace(mps[i], static_cast<std::int32_t>(numbers.size())).first->second;
    }
    programs.push_back(program);
  }
  const std::vector<std::uint32_t> slices =
      time_slices(fixed_nodes(device), programs, static_cast<std::uint32_t>(options_.second_time_slice.count()));
  for (std::size_t i = 0; i < members.size(); ++i)
    (servers[i] != nullptr ? *servers[i] : members[i].terms.time_slice_us) = slices[i];
}

std::vector<std::string> Scheduler::isolation_lags(std::string_view slice) const {
  std::map<std::string_view, std::size_t> lagging;
  for (const Client& client : clients_)
    if (!client.stands_in && client.isolated != effective_[client.node].isolated &&
        (slice.empty() || sched::in_or_below(client.slice(), slice)))
      ++lagging[client.slice()];
  std::vector<std::string> lines;
  for (auto own = effective_.begin(); const auto& [path, settings] : tree_.slices()) {
    const bool isolated = own++->isolated;
    const auto found = lagging.find(path);
    if (found == lagging.end()) continue;
    const bool one = found->second == 1;
    lines.push_back("slice " + path + " is " + std::string(sched::isolation_name(isolated)) + ": " +
                    std::to_string(found->second) + (one ? " program" : " programs") +
                    " of it started before that and " +
                    (isolated ? (one ? "shares" : "share") + std::string(" a context with others")
                              : (one ? "has" : "have") + std::string(" a context apart")) +
                    " until " + (one ? "it starts" : "they start") + " again");
  }
  return lines;
}

std::vector<std::string> Scheduler::left_out_of_mps() const {
  std::map<std::string, std::size_t> by_users, late;
  for (const Client& client : clients_)
    if (!client.isolated && is_apart(client)) ++(client.keeps_mps ? by_users : late)[client.slice()];
  std::vector<std::string> lines;
  const auto say = [&](const std::map<std::string, std::size_t>& found, const std::string& why) {
    for (const auto& [path, programs] : found)
      lines.push_back("slice " + path + ": " + plural(static_cast<std::int64_t>(programs), "program") +
                      " of it outside of gpuctld's MPS, by turns with those in it, " + why);
  };
  say(by_users, "as CUDA_MPS_PIPE_DIRECTORY was set");
  say(late, "as it did not run or served another user when they started");
  return lines;
}

}  // namespace gpuctl::daemon
