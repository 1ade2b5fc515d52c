// What the replies say beside: of slices as they are set, and of MPS.
#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>

#include "base/limit_text.h"
#include "base/plural.h"
#include "base/quota_text.h"
#include "gpuctld/host/mps.h"
#include "gpuctld/manager/manager.h"
#include "sched/place_notes.h"

namespace gpuctl::daemon {

namespace {

/// The driver gives memory in pieces of this size.
constexpr std::uint64_t kLeastAllocated = 2 << 20;
/// Says whether slices decide how long a turn on the GPU lasts.
const char* turns(ipc::TimeSlice found) {
  switch (found) {
    case ipc::TimeSlice::in_force:
      return "by the slices' priorities, reserves and weights, as gpuctld has set it";
    case ipc::TimeSlice::refused:
      return "as the driver has it; it refused to be told by programs";
    case ipc::TimeSlice::no_groups:
      return "as the driver has it; its channel groups were not seen in any program";
    case ipc::TimeSlice::not_tried:
      break;
  }
  return "by the slices' priorities, reserves and weights if the driver can do that; no program has tried yet";
}

/// What is odd in an amount for one GPU.
void note_of_gpu(const PerGpu::One& one, bool bytes, std::span<const Gpu> gpus, std::vector<std::string>& lines) {
  const auto is_named = [&](const Gpu& gpu) { return one.names(gpu.index, gpu.uuid); };
  const auto named = std::ranges::find_if(gpus, is_named);
  if (named == gpus.end())
    return lines.push_back("there is no GPU " + one.gpu + " here: what is set for it has no effect");
  if (const auto count = std::ranges::count_if(gpus, is_named); count > 1)
    lines.push_back(one.gpu + " begins the UUIDs of " + std::to_string(count) +
                    " GPUs: what is set for it is so on each");
  const std::uint64_t has = bytes ? named->memory_bytes : named->sms;
  if (one.amount.per_cent || one.amount.lifted || static_cast<std::uint64_t>(one.amount.number) <= has) return;
  const auto text = [&](std::uint64_t number) {
    return bytes ? size_text(static_cast<std::int64_t>(number)) : plural(static_cast<std::int64_t>(number), "SM");
  };
  lines.push_back(text(static_cast<std::uint64_t>(one.amount.number)) + " is more than GPU " +
                  std::to_string(named->index) + " has, which is " + text(has));
}

/// GPUs that `setting` has twice, by different names. Of their amounts the first counts (PerGpu::find, quota_on).
void note_of_twice(std::string_view setting, std::span<const std::string> names, std::span<const Gpu> gpus,
                   std::vector<std::string>& lines) {
  for (const Gpu& gpu : gpus) {
    std::vector<std::string> found;
    std::ranges::copy_if(names, std::back_inserter(found),
                         [&](const std::string& name) { return names_gpu(name, gpu.index, gpu.uuid); });
    if (found.size() < 2) continue;
    std::string line = std::string(setting) + " names GPU " + std::to_string(gpu.index) + " as " + found.front();
    for (const std::string& name : std::span(found).subspan(1)) line += " and as " + name;
    lines.push_back(line + ": what it has as " + found.front() + " counts");
  }
}

}  // namespace

/// What may not be expected of these slices as they are set now.
std::vector<std::string> Manager::notes_about(std::span<const std::string> paths) const {
  std::vector<std::string> notes = scheduler_.unfit_reserves(paths);
  const auto add = [&](const std::vector<std::string>& lines) {
    notes.insert(notes.end(), lines.begin(), lines.end());
  };
  if (paths.empty()) add(scheduler_.isolation_lags());
  for (const std::string& path : paths) add(scheduler_.isolation_lags(path));
  const auto isolated = [&](const std::string& path) {
    const sched::Slice* slice = scheduler_.tree().find(path);
    return slice != nullptr && slice->isolated;
  };
  if (const auto line = why_not_isolated(); line && std::ranges::any_of(paths, isolated)) notes.push_back(*line);
  add(odd_settings(scheduler_.tree(), paths));
  return notes;
}

/// Why a slice is isolated in vain, if one is.
std::optional<std::string> Manager::why_not_isolated() const {
  const auto gpu = std::ranges::find_if(scheduler_.devices(), &Gpu::exclusive);
  if (gpu == scheduler_.devices().end() || std::ranges::none_of(scheduler_.effective(), &sched::Effective::isolated))
    return std::nullopt;
  return "GPU " + std::to_string(gpu->index) +
         " is in compute mode EXCLUSIVE_PROCESS, which lets no program run beside MPS: isolated slices are shared "
         "(nvidia-smi "
         "-c DEFAULT)";
}

/// What becomes of programs that no slice takes in, where that is not what a reader of default_slice may think.
std::optional<std::string> Manager::about_default_slice() const {
  const std::string& path = scheduler_.options().default_slice;
  if (path.empty())
    return "programs in no slice are refused (default_slice = \"none\" in gpuctl.toml)" +
           std::string(scheduler_.tree().find("none") == nullptr ? "" : "; the slice none is not meant by that");
  if (scheduler_.tree().find(path) != nullptr) return std::nullopt;
  return "there is no slice " + path + ", which default_slice in gpuctl.toml names: what no slice takes in is in /";
}

/// Who says how long the turns of the MPS server last beside isolated programs. Empty where there are none.
std::optional<std::string> Manager::about_server_turns() {
  const bool asked =
      std::ranges::any_of(scheduler_.server_us().at(kSharedMps), [](std::uint32_t us) { return us != 0; });
  const bool none = std::ranges::none_of(scheduler_.devices(), &Gpu::needs_mps) && !servers_.any(kSharedMps);
  if (!asked || none) return std::nullopt;
  const std::string what = "turns of the MPS server beside isolated programs: ";
  if (!servers_.any(kSharedMps))
    return what + "as long as the driver has it, since " +
           (mps_.ours() ? "the library in its server has not asked" : "somebody else started this MPS");
  return what + turns(servers_.work(kSharedMps));
}

/// Where programs run side by side by MPS alone: who has it, and what does not go.
std::vector<std::string> Manager::about_mps() {
  if (std::ranges::none_of(scheduler_.devices(), &Gpu::needs_mps) && !mps_.manages()) return {};
  std::vector<std::string> lines;
  if (mps_.ours()) {
    lines.push_back("MPS is in " + mps_.directory_of(kSharedMps) +
                    ": gpuctld started it, and leads programs of slices there");
  } else if (mps_active()) {
    if (mps_.manages())
      lines.push_back("MPS is in " + mps_pipe_directory() +
                      ": somebody else started it, so gpuctld starts none, and does not set how long its turns last");
  } else {
    const std::string trouble = mps_.trouble();
    if (mps_.manages() && trouble.empty())
      lines.push_back("MPS is started for the first program of a slice, with which others then run side by side");
    else
      lines.push_back("MPS is not active: programs take turns on the whole GPU and do not run side by side" +
                      (mps_.manages() ? "; " + trouble : ""));
    lines.push_back(std::string("how long a turn lasts, whatever the kernel: ") +
                    (scheduler_.options().time_slices ? turns(scheduler_.time_slices_work())
                                                      : "as the driver has it (time_slices = false in gpuctl.toml)"));
  }
  return lines;
}

/// That of all slices that are not isolated, and those of isolated ones for which somebody has asked.
std::optional<std::vector<ipc::Mps>> Manager::describe_mps() {
  if (std::ranges::none_of(scheduler_.devices(), &Gpu::needs_mps) && !mps_.manages()) return std::nullopt;
  const auto state = [this](const std::string& name) {
    if (mps_.runs(name)) return "ours";
    if (name == kSharedMps && mps_active()) return "others";
    return !mps_.manages() ? "none" : mps_.trouble(name).empty() ? "ready" : "failed";
  };
  std::map<std::string, std::int64_t, std::less<>> programs;
  for (const Client& client : scheduler_.clients())
    if (!pipe_directory_of(client).empty()) ++programs[client.mps.empty() ? kSharedMps : client.mps];
  std::vector<ipc::Mps> all{{.slice = {}, .state = state(kSharedMps), .programs = programs[kSharedMps]}};
  const auto& slices = scheduler_.tree().slices();
  for (std::size_t index = 0; const auto& [path, slice] : slices) {
    if (!scheduler_.effective()[index++].isolated || sched::topmost_isolated(slices, path) != path) continue;
    if (const std::string name = MpsPlaces::name_of(path); !mps_.directory_of(name).empty())
      all.push_back({.slice = path, .state = state(name), .programs = programs[name]});
  }
  return all;
}

/// What is odd in the devices that programs of the slice are to see.
void Manager::note_of_devices(const sched::SliceTree& tree, const std::string& path,
                              std::vector<std::string>& lines) const {
  const auto& gpus = scheduler_.devices();
  for (const std::string& name : tree.find(path)->devices)
    note_of_gpu({.gpu = name, .amount = {.lifted = true}}, false, gpus, lines);
  const auto hidden = [&](const std::string& slice, const Gpu& gpu) {
    return !sched::sees(tree.slices(), slice, size_of(gpu));
  };
  if (std::ranges::all_of(gpus, [&](const Gpu& gpu) { return hidden(path, gpu); }))
    lines.push_back("programs that start in " + path + " see no GPU");
  const auto sees_more = [&](const Client& client) {
    return !client.stands_in && sched::in_or_below(client.slice(), path) &&
           std::ranges::any_of(client.slots(),
                               [&](const Client::Slot& slot) { return hidden(client.slice(), gpus[slot.device]); });
  };
  if (const auto count = std::ranges::count_if(scheduler_.clients(), sees_more); count > 0)
    lines.push_back(plural(count, "program") + " in " + path + (count == 1 ? " sees" : " see") +
                    " GPUs that it has no more, until started again");
}

/// What is set for the slice and has no effect, or another one than may be expected.
std::vector<std::string> Manager::odd_settings_of(const sched::SliceTree& tree, const std::string& path) const {
  std::vector<std::string> lines;
  const sched::Slice* slice = tree.find(path);
  if (slice == nullptr) return lines;
  const auto& gpus = scheduler_.devices();
  note_of_devices(tree, path, lines);
  std::set<std::string> in_quota;
  for (const auto& [setting, text] : {std::pair("quota", slice->quota), {"burst", slice->burst}}) {
    const std::vector<std::string> names = gpus_of_quota(text);
    note_of_twice(setting, names, gpus, lines);
    in_quota.insert(names.begin(), names.end());
  }
  for (const std::string& name : in_quota) note_of_gpu({.gpu = name, .amount = {.lifted = true}}, false, gpus, lines);
  if (!sched::has_quota(*slice) && slice->burst != kNoQuota)
    lines.push_back("burst " + slice->burst + " has no effect without a quota");
  if (path == "/") return lines;
  for (const auto& [setting, amounts, bytes] : {std::tuple("reserve", &slice->reserve_per_gpu, false),
                                                {"max", &slice->max_per_gpu, false},
                                                {"memory_min", &slice->memory_min_per_gpu, true},
                                                {"memory_max", &slice->memory_max_per_gpu, true},
                                                {"memory_high", &slice->memory_high_per_gpu, true}}) {
    std::vector<std::string> names;
    for (const PerGpu::One& one : amounts->list()) {
      if (one.gpu.empty()) continue;
      note_of_gpu(one, bytes, gpus, lines);
      names.push_back(one.gpu);
    }
    note_of_twice(setting, names, gpus, lines);
  }
  const std::uint32_t sms = std::ranges::max(gpus, {}, &Gpu::sms).sms;
  const std::uint64_t memory = std::ranges::max(gpus, {}, &Gpu::memory_bytes).memory_bytes;
  if (slice->max != sched::kUnlimitedCapSM && slice->max.count > sms)
    lines.push_back("max " + std::to_string(slice->max.count) + " limits nothing: no GPU here has more than " +
                    std::to_string(sms) + " SMs");
  const auto size = [](std::uint64_t bytes) { return size_text(static_cast<std::int64_t>(bytes)); };
  for (const auto& [name, bytes] : {std::pair("memory_max", slice->memory_max), {"memory_high", slice->memory_high}})
    if (bytes && *bytes < kLeastAllocated)
      lines.push_back(std::string(name) + " " + size(*bytes) + " is less than any program allocates; say 16G for GiB");
  if (slice->memory_max && *slice->memory_max > memory)
    lines.push_back("memory_max " + size(*slice->memory_max) + " limits nothing: no GPU here has more than " +
                    size(memory));
  if (const std::uint64_t most = std::min(slice->memory_max.value_or(memory), memory);
      slice->memory_high && *slice->memory_high >= most)
    lines.push_back("memory_high " + size(*slice->memory_high) + " lets nothing wait: there is no more than " +
                    size(most));
  return lines;
}

/// Of several each line says of which it is.
std::vector<std::string> Manager::odd_settings(const sched::SliceTree& tree, std::span<const std::string> paths) const {
  std::vector<std::string> all;
  for (const std::string& path : paths)
    for (const std::string& line : odd_settings_of(tree, path))
      all.push_back(paths.size() == 1 ? line : "slice " + path + ": " + line);
  std::ranges::move(sched::place_notes(tree.slices(), paths), std::back_inserter(all));
  return all;
}

}  // namespace gpuctl::daemon
