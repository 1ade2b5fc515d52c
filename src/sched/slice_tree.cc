#include "sched/slice_tree.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/limit_text.h"
#include "base/plural.h"
#include "sched/apply_change.h"
#include "sched/joins.h"
#include "sched/policy.h"

namespace gpuctl::sched {

namespace {

using Code = SliceError::Code;

SliceError error(Code code, std::string_view path) {
  return {.code = code, .path = std::string(path), .field = {}, .reason = {}};
}

SliceError invalid(std::string_view path, std::string field, std::string reason) {
  return {
      .code = Code::invalid_value, .path = std::string(path), .field = std::move(field), .reason = std::move(reason)};
}

SliceError busy(std::string_view path, std::size_t clients, std::int64_t children) {
  SliceError busy = error(Code::slice_busy, path);
  busy.clients = static_cast<std::int64_t>(clients);
  busy.children = children;
  return busy;
}

SliceError unfit(std::string_view path, CapSM asked, CapSM available) {
  SliceError unfit = error(Code::reserve_does_not_fit, path);
  unfit.asked = asked.count;
  unfit.available = available.count;
  return unfit;
}

/// The slice with the change; an error names the slice.
SliceResult<Slice> applied(std::string_view path, const Slice& slice, const SliceChange& change) {
  auto wanted = apply_change(slice, change);
  if (wanted) return wanted;
  SliceError error = wanted.error();
  error.path = path;
  return error;
}

/// The error with the GPU on which it is one.
SliceError there_is(SliceError error, const GpuSize& gpu) {
  error.gpu = gpu.index;
  if (error.code == Code::invalid_value) error.reason += " on GPU " + std::to_string(gpu.index);
  return error;
}

bool same_amounts(const Slice& a, const Slice& b) {
  return a.reserve == b.reserve && a.max == b.max;
}

SliceError above_max(std::string_view path, const Slice& there, const GpuSize& gpu) {
  return there_is(
      invalid(path, "reserve",
              "reserve " + std::to_string(there.reserve.count) + " is above max " + std::to_string(there.max.count)),
      gpu);
}

bool name_character(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
}

bool valid_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameLength && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(), name_character);
}

bool changes_only_policy(const SliceChange& change) {
  SliceChange only;
  only.policy = change.policy;
  return change.policy.has_value() && change == only;
}

}  // namespace

const char* bad_path(std::string_view path) {
  std::size_t depth = 1;
  for (std::size_t slash; (slash = path.find('/')) != path.npos; ++depth, path.remove_prefix(slash + 1))
    if (!valid_name(path.substr(0, slash))) return "names between slashes are 1 to 64 of A-Z a-z 0-9 _ . -";
  if (!valid_name(path)) return "names between slashes are 1 to 64 of A-Z a-z 0-9 _ . -";
  return depth > kMaxSliceDepth ? "at most 8 levels" : nullptr;
}

SliceTree::SliceTree(CapSM capacity, std::uint32_t owner_uid, std::uint32_t owner_gid) : capacity_(capacity) {
  make_root(owner_uid, owner_gid);
}

SliceTree::SliceTree(std::vector<GpuSize> gpus, std::uint32_t owner_uid, std::uint32_t owner_gid)
    : capacity_(std::ranges::max(gpus, {}, &GpuSize::sms).sms), gpus_(std::move(gpus)) {
  make_root(owner_uid, owner_gid);
}

void SliceTree::make_root(std::uint32_t owner_uid, std::uint32_t owner_gid) {
  Slice root;
  root.reserve = capacity_;
  root.reserve_mode = ReserveMode::strict;
  root.policy = &policies().front();
  root.owner_uid = owner_uid;
  root.owner_gid = owner_gid;
  slices_.emplace("/", root);
}

/// A slice that is to be created; not admitted yet.
SliceResult<Slice> SliceTree::fresh(std::string_view path, const SliceChange& change, const Caller& caller) const {
  if (find(path) != nullptr) return error(Code::slice_exists, path);
  if (const char* reason = bad_path(path)) return invalid(path, "path", reason);
  const std::string_view parent = parent_path(path);
  if (find(parent) == nullptr) return error(Code::no_such_slice, parent);
  if (!may_change_below(parent, caller)) return error(Code::permission_denied, path);
  if (auto room = has_room(path, caller); !room) return room.error();
  Slice slice;
  slice.policy = &policies().front();
  slice.owner_uid = caller.uid;
  return allowed(path, slice, applied(path, slice, change), caller);
}

/// Whose programs are in a slice is for those to say who own the root: it takes them from where they would be.
SliceResult<Slice> SliceTree::allowed(std::string_view path, const Slice& now, SliceResult<Slice> wanted,
                                      const Caller& caller) const {
  if (wanted && wanted->join != now.join && !may_change_below("/", caller)) return error(Code::permission_denied, path);
  return wanted;
}

/// A slice that is to be changed; not admitted yet. The root's reserve stays the whole GPU, whatever its max.
SliceResult<Slice> SliceTree::changed(std::string_view path, const SliceChange& change, const Caller& caller) const {
  const Slice* found = find(path);
  if (found == nullptr) return error(Code::no_such_slice, path);
  const bool root = path == "/";
  const std::string_view authority = root || changes_only_policy(change) ? path : parent_path(path);
  if (!may_change_below(authority, caller)) return error(Code::permission_denied, path);
  if (!root) return allowed(path, *found, applied(path, *found, change), caller);
  for (const SliceSetting& setting : kSliceSettings)
    if (!setting.on_root && is_given(setting, change))
      return invalid(path, std::string(setting.name), "cannot be set on the root: it is the whole GPU");
  Slice now = *found;
  now.reserve = {};
  auto wanted = applied(path, now, change);
  if (wanted) wanted->reserve = capacity_;
  return wanted;
}

SliceResult<void> SliceTree::create(std::string_view path, const SliceChange& change, const Caller& caller) {
  const auto wanted = fresh(path, change, caller);
  if (!wanted) return wanted.error();
  if (auto admitted = admit(path, {}, *wanted); !admitted) return admitted.error();
  if (auto admitted = admit_memory(path, {}, *wanted); !admitted) return admitted.error();
  if (auto alone = named_once(path, *wanted); !alone) return alone.error();
  slices_.emplace(path, *wanted);
  return {};
}

SliceResult<void> SliceTree::change(std::string_view path, const SliceChange& change, const Caller& caller) {
  const auto wanted = changed(path, change, caller);
  if (!wanted) return wanted.error();
  Slice& now = slices_.find(path)->second;
  if (auto admitted = admit(path, now, *wanted); !admitted) return admitted.error();
  if (auto admitted = admit_memory(path, now, *wanted); !admitted) return admitted.error();
  if (auto alone = named_once(path, *wanted); !alone) return alone.error();
  now = *wanted;
  return {};
}

bool SliceTree::changes_nothing(std::string_view path, const SliceChange& change) const {
  const Slice* now = find(path);
  if (now == nullptr) return false;
  const auto wanted = changed(path, change, Caller{});
  return wanted && *wanted == *now;
}

void SliceTree::isolate(std::string_view path, bool isolated) {
  const auto found = slices_.find(path);
  if (found != slices_.end() && found->second.isolated_by_auto) found->second.isolated = isolated;
}

SliceResult<void> SliceTree::apply(std::span<const Edit> edits, const Caller& caller, CapSM capacity, std::size_t& at) {
  SliceTree all = *this;
  for (at = 0; at < edits.size(); ++at) {
    const auto& [path, change] = edits[at];
    if (all.changes_nothing(path, *change)) continue;
    SliceChange rest = *change, policy;
    std::swap(rest.policy, policy.policy);
    const bool only_policy = all.changes_nothing(path, rest);
    const auto wanted = all.find(path) == nullptr ? all.fresh(path, *change, caller)
                                                  : all.changed(path, only_policy ? policy : *change, caller);
    if (!wanted) return wanted.error();
    all.slices_.insert_or_assign(std::string(path), *wanted);
  }
  if (auto admitted = all.admit_all(edits, capacity, *this, at); !admitted) return admitted.error();
  for (at = 0; capacity == capacity_ && at < edits.size(); ++at) {
    const Slice* was = find(edits[at].path);
    const auto kept = all.admit_memory(edits[at].path, was == nullptr ? Slice() : *was, *all.find(edits[at].path));
    if (!kept) return kept.error();
  }
  if (any_named_twice(all.slices_))
    for (at = 0; at < edits.size(); ++at)
      if (auto alone = all.named_once(edits[at].path, *all.find(edits[at].path)); !alone) return alone.error();
  *this = std::move(all);
  return {};
}

SliceResult<void> SliceTree::named_once(std::string_view path, const Slice& wanted) const {
  if (std::string reason = named_twice(slices_, path, wanted.join); !reason.empty())
    return invalid(path, "join", std::move(reason));
  return {};
}

SliceResult<void> SliceTree::may_remove(std::string_view path, const Caller& caller) const {
  if (find(path) == nullptr) return error(Code::no_such_slice, path);
  if (path == "/") return invalid(path, "path", "the root cannot be deleted");
  if (!may_change_below(parent_path(path), caller)) return error(Code::permission_denied, path);
  return {};
}

SliceResult<void> SliceTree::remove(std::string_view path, std::size_t clients, const Caller& caller) {
  if (auto may = may_remove(path, caller); !may) return may.error();
  std::int64_t children = 0;
  for (const auto& [other, slice] : slices_) children += other != "/" && parent_path(other) == path;
  if (children != 0 || clients != 0) return busy(path, clients, children);
  slices_.erase(slices_.find(path));
  return {};
}

SliceResult<void> SliceTree::remove_all(std::string_view path, std::size_t clients, const Caller& caller) {
  if (auto may = may_remove(path, caller); !may) return may.error();
  if (clients != 0) return busy(path, clients, 0);
  std::erase_if(slices_, [top = std::string(path)](const auto& entry) { return in_or_below(entry.first, top); });
  return {};
}

SliceResult<void> SliceTree::may_join(std::string_view path, const Caller& caller) const {
  if (find(path) == nullptr) return error(Code::no_such_slice, path);
  if (path != "/" && !may_change_below(path, caller)) return error(Code::permission_denied, path);
  return {};
}

const Slice* SliceTree::find(std::string_view path) const {
  const auto found = slices_.find(path);
  return found == slices_.end() ? nullptr : &found->second;
}

SliceTree SliceTree::on(const GpuSize& gpu) const {
  const Slice& root = *find("/");
  SliceTree tree({gpu}, root.owner_uid, root.owner_gid);
  tree.slices_ = on_gpu(slices_, gpu);
  tree.slices_.find("/")->second.reserve = gpu.sms;
  return tree;
}

std::vector<Effective> SliceTree::effective() const {
  if (gpus_.empty() || !differ_by_gpu(slices_)) return effective_settings(slices_);
  std::vector<Effective> most;
  for (const GpuSize& gpu : gpus_) {
    const std::vector<Effective> there = effective_settings(on(gpu).slices_);
    if (most.empty()) most = there;
    for (std::size_t n = 0; n < most.size(); ++n) {
      most[n].reserve = std::max(most[n].reserve, there[n].reserve);
      most[n].max = std::max(most[n].max, there[n].max);
      most[n].seen |= there[n].seen;
      most[n].memory_min = std::max(most[n].memory_min, there[n].memory_min);
      most[n].memory_max = greater_limit(most[n].memory_max, there[n].memory_max);
      most[n].memory_high = greater_limit(most[n].memory_high, there[n].memory_high);
    }
  }
  return most;
}

std::vector<NodeInput> SliceTree::nodes(std::span<const Effective> effective) const {
  std::vector<NodeInput> nodes;
  nodes.reserve(slices_.size());
  for (const auto& [path, slice] : slices_) {
    const Effective& own = effective[nodes.size()];
    const bool lapses = own.reserve_mode == ReserveMode::active && own.reserve > CapSM{};
    nodes.push_back({.parent = own.parent,
                     .reserve = own.reserve,
                     .strict = own.reserve_mode == ReserveMode::strict,
                     .hold = lapses ? own.reserve_hold : std::chrono::milliseconds{},
                     .kept_with_parent = lapses && own.kept_with_parent,
                     .max = own.max,
                     .has_quota = has_quota(slice),
                     .weight = slice.weight,
                     .priority = own.priority,
                     .policy = slice.policy});
  }
  return nodes;
}

bool SliceTree::may_change_below(std::string_view path, const Caller& caller) const {
  if (caller.uid == 0) return true;
  for (;; path = parent_path(path)) {
    const Slice* slice = find(path);
    if (slice != nullptr && (slice->owner_uid == caller.uid ||
                             (slice->owner_gid != kNobody && std::find(caller.gids.begin(), caller.gids.end(),
                                                                       slice->owner_gid) != caller.gids.end())))
      return true;
    if (path == "/") return false;
  }
}

/// That owner answers for all that is below it, even if it is given on: nobody can use up what another one may have.
std::optional<SliceOwner> SliceTree::given_to(std::string_view path) const {
  const auto owner_of = [](const Slice& slice) { return SliceOwner{slice.owner_uid, slice.owner_gid}; };
  const SliceOwner root = owner_of(*find("/"));
  std::optional<SliceOwner> topmost;
  while (path != "/") {
    path = parent_path(path);
    if (const Slice* const above = find(path); above != nullptr && owner_of(*above) != root) topmost = owner_of(*above);
  }
  return topmost;
}

SliceResult<void> SliceTree::has_room(std::string_view path, const Caller& caller) const {
  const auto too_many = [&](std::size_t most, const char* whose) {
    return invalid(path, "path", "too many slices: " + std::string(whose) + " at most " + std::to_string(most));
  };
  if (may_change_below("/", caller)) {
    if (slices_.size() >= kMaxSlices) return too_many(kMaxSlices, "there may be");
    return {};
  }
  if (slices_.size() >= kMaxSlices - kSlicesKeptForRoot)
    return too_many(kMaxSlices - kSlicesKeptForRoot, "users other than root may fill the tree up to");
  const auto owner = given_to(path);
  const auto below =
      std::ranges::count_if(slices_, [&](const auto& entry) { return owner && given_to(entry.first) == owner; });
  if (static_cast<std::size_t>(below) >= kMaxSlicesPerOwner)
    return too_many(kMaxSlicesPerOwner, "below what a user owns there may be");
  return {};
}

/// Whether the amounts of SMs, or of memory, of `slice`, which is to be at `path`, have to fit the GPU: its programs
/// see it, and it is among those that have the most of it, or the slice names it. What others name decides nothing for
/// it.
bool SliceTree::has_to_fit(std::string_view path, const Slice& slice, const GpuSize& gpu, AmountOf of) const {
  const auto is_seen = [&](const GpuSize& any) {
    return on_gpu(slice, any).seen && (path == "/" || sees(slices_, parent_path(path), any));
  };
  if (!is_seen(gpu)) return false;
  const auto has = [&](const GpuSize& any) { return of == AmountOf::bytes ? any.memory : any.sms.count; };
  return names_gpu(slice, gpu, of) ||
         std::ranges::none_of(gpus_, [&](const GpuSize& other) { return has(other) > has(gpu) && is_seen(other); });
}

SliceResult<void> SliceTree::admit(std::string_view path, const Slice& now, const Slice& wanted) const {
  if (gpus_.empty() || (!differs_by_gpu(wanted) && !differ_by_gpu(slices_))) return admit_on(path, now, wanted);
  for (const GpuSize& gpu : gpus_) {
    const Slice there = on_gpu(wanted, gpu), before = on_gpu(now, gpu);
    if (!has_to_fit(path, wanted, gpu, AmountOf::sms) || same_amounts(there, before)) continue;
    if (path != "/" && there.reserve > there.max) return above_max(path, there, gpu);
    if (auto admitted = on(gpu).admit_on(path, before, there); !admitted) return there_is(admitted.error(), gpu);
  }
  return {};
}

/// Whether the reserves above and below still fit when `path` goes from `now` to `wanted`.
SliceResult<void> SliceTree::admit_on(std::string_view path, const Slice& now, const Slice& wanted) const {
  const CapSM below = reserved_by_children(path, {});
  if (path == "/") {
    if (wanted.max < below)
      return invalid(path, "max", "below the " + plural(below.count, "SM") + " that its children reserve");
    return {};
  }
  if (wanted.reserve < below)
    return invalid(path, "reserve", "below the " + plural(below.count, "SM") + " that its children reserve");
  if (wanted.reserve <= now.reserve) return {};
  const std::string_view parent = parent_path(path);
  const Slice& above = *find(parent);
  const CapSM bound = std::min(above.reserve, above.max), taken = reserved_by_children(parent, path);
  const CapSM available = bound > taken ? bound - taken : CapSM{};
  if (wanted.reserve > available) return unfit(path, wanted.reserve, available);
  return {};
}

/// Whether the memory that is kept for slices above and below still fits when `path` goes from `now` to `wanted`: on
/// each GPU where that changes, and that has to fit it.
SliceResult<void> SliceTree::admit_memory(std::string_view path, const Slice& now, const Slice& wanted) const {
  if (path == "/") return {};
  const std::string_view parent = parent_path(path);
  const auto bytes = [](std::uint64_t count) { return size_text(static_cast<std::int64_t>(count)); };
  for (const GpuSize& gpu : gpus_.empty() ? std::vector<GpuSize>{{}} : gpus_) {
    const Slice before = on_gpu(now, gpu), there = on_gpu(wanted, gpu);
    if (!has_to_fit(path, wanted, gpu, AmountOf::bytes)) continue;
    const std::string where = gpus_.empty() ? "" : " of GPU " + std::to_string(gpu.index);
    const bool same = there.memory_min == before.memory_min && there.memory_max == before.memory_max;
    if (!same && there.memory_min > there.memory_max.value_or(there.memory_min))
      return invalid(path, "memory_min",
                     bytes(there.memory_min) + " is above memory_max " + bytes(*there.memory_max) + where);
    std::uint64_t below = 0, taken = 0;
    for (const auto& [other, slice] : slices_) {
      if (other == "/" || other == path) continue;
      const std::uint64_t kept = on_gpu(slice, gpu).memory_min;
      below += parent_path(other) == path ? kept : 0;
      taken += parent_path(other) == parent ? kept : 0;
    }
    if (there.memory_min < before.memory_min && there.memory_min < below)
      return invalid(path, "memory_min", "below the " + bytes(below) + where + " that its children keep");
    if (there.memory_min <= before.memory_min) continue;
    if (parent == "/" && gpu.memory == 0) continue;  // how much there is is not known
    const std::uint64_t most = parent == "/" ? gpu.memory : on_gpu(*find(parent), gpu).memory_min;
    const std::uint64_t left = most - std::min(most, taken);
    if (there.memory_min > left)
      return invalid(path, "memory_min",
                     bytes(there.memory_min) + " cannot be kept: " + bytes(left) + where + " is left");
  }
  return {};
}

/// `before`: the tree without the edits. Where amounts differ by GPU, those that an edit leaves as they are have not to
/// fit; and on no device in particular nothing is known of them.
SliceResult<void> SliceTree::admit_all(std::span<const Edit> edits, CapSM capacity, const SliceTree& before,
                                       std::size_t& at) const {
  if (gpus_.empty() || !differ_by_gpu(slices_)) return admit_all_on(edits, capacity, at);
  if (capacity != capacity_) return {};
  for (const GpuSize& gpu : gpus_) {
    std::vector<Edit> changed;
    std::vector<std::size_t> indices;
    std::set<std::string_view> paths;
    for (at = 0; at < edits.size(); ++at) {
      const std::string_view path = edits[at].path;
      const Slice& slice = *find(path);
      const Slice* const was = before.find(path);
      const Slice there = on_gpu(slice, gpu);
      const bool same = was != nullptr && same_amounts(there, on_gpu(*was, gpu));
      if (!paths.contains(parent_path(path)) && (same || !has_to_fit(path, slice, gpu, AmountOf::sms))) continue;
      if (path != "/" && there.reserve > there.max) return above_max(path, there, gpu);
      changed.push_back(edits[at]), indices.push_back(at), paths.insert(path);
    }
    std::size_t among = 0;
    if (changed.empty()) continue;
    if (auto admitted = on(gpu).admit_all_on(changed, gpu.sms, among); !admitted)
      return at = indices[among], there_is(admitted.error(), gpu);
  }
  return {};
}

/// What is too much is the fault of the first edit with which it no longer fits beside those before it and beside what
/// is not edited.
SliceResult<void> SliceTree::admit_all_on(std::span<const Edit> edits, CapSM capacity, std::size_t& at) const {
  std::map<std::string_view, CapSM> below;  // by path: what the children reserve that are not edited, then all so far
  std::set<std::string_view> edited;
  for (const Edit& edit : edits) edited.insert(edit.path);
  for (const auto& [path, slice] : slices_)
    if (path != "/" && !edited.contains(path)) below[parent_path(path)] += slice.reserve;
  const auto bound = [&](std::string_view path) {
    const Slice& slice = *find(path);
    return std::min(path == "/" ? capacity : slice.reserve, slice.max);
  };
  for (at = 0; at < edits.size(); ++at) {
    const std::string_view path = edits[at].path;
    if (const CapSM children = below[path]; bound(path) < children)
      return invalid(path, path == "/" ? "max" : "reserve",
                     "below the " + plural(children.count, "SM") + " that its children reserve");
    if (path == "/") continue;
    const CapSM reserve = find(path)->reserve, most = bound(parent_path(path));
    CapSM& taken = below[parent_path(path)];
    const CapSM available = most > taken ? most - taken : CapSM{};
    if (reserve > available) return unfit(path, reserve, available);
    taken += reserve;
  }
  return {};
}

CapSM SliceTree::reserved_by_children(std::string_view path, std::string_view except) const {
  CapSM sum;
  for (const auto& [other, slice] : slices_)
    if (other != path && in_or_below(other, path) && parent_path(other) == path && other != except)
      sum += slice.reserve;
  return sum;
}

}  // namespace gpuctl::sched
