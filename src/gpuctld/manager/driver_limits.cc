#include "gpuctld/manager/driver_limits.h"

#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "gpuctld/config/state_file.h"
#include "gpuctld/config/trusted_file.h"
#include "ipc/fields.h"
#include "ipc/message.h"

namespace gpuctl::daemon {

namespace json = boost::json;
using std::chrono::steady_clock;

namespace {

constexpr std::size_t kMostLimitsFile = 16u << 20;

}  // namespace

bool DriverLimits::Group::is_ours() const {
  return std::ranges::any_of(gpus, &OnGpu::ours);
}

DriverLimits::DriverLimits(boost::asio::io_context& context, std::vector<std::string> uuids, std::string file,
                           Hooks hooks, Pace pace)
    : uuids_(std::move(uuids)), file_(std::move(file)), hooks_(std::move(hooks)), pace_(pace), timer_(context) {
  load();
  if (!groups_.empty()) wait(pace_.after_restart);
}

void DriverLimits::look_soon() {
  if (!waits_ && !asks_) wait(std::chrono::milliseconds(0));
}

void DriverLimits::stop() {
  stopped_ = true;
  timer_.cancel();
}

void DriverLimits::wait(std::chrono::milliseconds pause) {
  if (stopped_ || absent_) return;
  waits_ = true;
  timer_.expires_after(pause);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error || stopped_) return;
    waits_ = false;
    look();
  });
}

void DriverLimits::look() {
  follow();
  ask_next();
}

/// What each group is to have now. One that has no program any more keeps what it has while it is there: others of its
/// processes may use the GPU.
void DriverLimits::follow() {
  std::vector<sched::GroupedProgram> programs = hooks_.programs();
  std::erase_if(programs, [](const auto& program) { return !is_cgroup_path(program.cgroup); });
  std::set<std::string_view> used;
  for (const sched::GroupedProgram& program : programs)
    for (std::string_view path = program.cgroup; path.size() > 1; path = path.substr(0, path.rfind('/')))
      used.insert(path);
  std::vector<sched::GroupedProgram> idle;
  for (auto place = groups_.begin(); place != groups_.end();) {
    auto& [cgroup, group] = *place;
    const bool busy = used.contains(cgroup);
    if (!busy && (!group.is_ours() || !hooks_.exists(cgroup))) {
      place = groups_.erase(place);  // with the group its limit is gone
      continue;
    }
    for (OnGpu& gpu : group.gpus) {
      gpu.stale |= busy && !group.busy;
      gpu.wanted = {};
    }
    group.busy = busy;
    if (!busy) idle.push_back({cgroup, group.slice});
    ++place;
  }
  used.clear();
  programs.insert(programs.end(), idle.begin(), idle.end());
  for (auto& [cgroup, of] : sched::groups_of_slices(hooks_.slices(), programs)) {
    const std::vector<sched::DriverLimit> limits = hooks_.limits(of.slice, of.programs);
    const auto found = groups_.find(cgroup);
    if (found == groups_.end() && std::ranges::none_of(limits, &sched::DriverLimit::limits)) continue;
    Group& group = groups_[cgroup];
    if (found == groups_.end()) group.busy = true;
    group.slice = of.slice;
    group.gpus.resize(uuids_.size());
    for (std::size_t i = 0; i < limits.size(); ++i) group.gpus[i].wanted = limits[i];
  }
  for (auto& [cgroup, group] : groups_)
    if (std::ranges::none_of(group.gpus, &OnGpu::differs)) group.problem.clear();
  save();
}

/// Each in its turn, the one after the last first.
void DriverLimits::ask_next() {
  const auto now = steady_clock::now();
  const auto due = [&](const Groups::value_type& entry) {
    return std::ranges::any_of(entry.second.gpus, [&](const OnGpu& gpu) { return gpu.due(entry.second.again <= now); });
  };
  auto next = std::find_if(groups_.upper_bound(last_), groups_.end(), due);
  if (next == groups_.end()) next = std::ranges::find_if(groups_, due);
  if (next == groups_.end() || !hooks_.anybody()) return;
  const auto& [cgroup, group] = *next;
  last_ = cgroup;
  GroupLimits question{.cgroup = cgroup, .gpus = {}};
  std::vector<std::size_t> asked;
  for (std::size_t i = 0; i < group.gpus.size() && asked.size() < kMostGpusAtOnce; ++i) {
    const OnGpu& gpu = group.gpus[i];
    if (!gpu.due(group.again <= now)) continue;
    question.gpus.push_back({.uuid = uuids_[i], .limit = gpu.wanted, .first = !gpu.ours});
    asked.push_back(i);
  }
  asks_ = true;
  hooks_.ask(question, [this, question, asked](const Result<std::vector<std::string>>& outcomes) {
    asks_ = false;
    if (stopped_) return;
    if (outcomes && outcomes->empty()) {
      absent_ = true;
      groups_.clear();
      return;
    }
    if (const auto found = groups_.find(question.cgroup); found != groups_.end())
      hear(found->second, question, asked, outcomes);
    wait(pace_.rest);
  });
}

/// `asked`: the indices of the question's GPUs.
void DriverLimits::hear(Group& group, const GroupLimits& question, const std::vector<std::size_t>& asked,
                        const Result<std::vector<std::string>>& outcomes) {
  group.problem.clear();
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const std::string why = !outcomes              ? outcomes.error().message
                            : i < outcomes->size() ? (*outcomes)[i]
                                                   : "no answer for this GPU";
    OnGpu& gpu = group.gpus[asked[i]];
    if (!why.empty()) {
      group.problem = why;
      gpu.failed = question.gpus[i].limit;
      continue;
    }
    gpu.told = question.gpus[i].limit;
    gpu.ours = gpu.told.limits();
    gpu.stale = false;
    gpu.failed.reset();
  }
  save();
  if (group.problem.empty()) return;
  group.again = steady_clock::now() + pace_.again;
  if (std::exchange(logged_, group.problem) != group.problem)
    hooks_.log("the driver does not limit the memory of control group " + question.cgroup + " for slice " +
               group.slice + ", the library alone does: " + group.problem);
}

std::optional<std::uint64_t> DriverLimits::of(const std::string& slice, std::size_t gpu) const {
  std::optional<std::uint64_t> most;
  for (const auto& [cgroup, group] : groups_)
    if (group.slice == slice && group.gpus[gpu].ours) most = std::max(most.value_or(0), group.gpus[gpu].told.hard);
  return most;
}

std::optional<std::string> DriverLimits::problem() const {
  const auto found = std::ranges::find_if(groups_, [](const auto& entry) { return !entry.second.problem.empty(); });
  if (found == groups_.end()) return std::nullopt;
  return "slice " + found->second.slice +
         ": the driver does not limit the memory of its control group, the library alone does: " +
         found->second.problem;
}

/// What the daemon before had set is ours, whatever the limits are.
void DriverLimits::load() {
  if (file_.empty()) return;
  const auto text = read_trusted_file(file_, Writers::owner, ::geteuid(), kMostLimitsFile);
  if (!text || !*text) return text ? void() : hooks_.log(text.error().message);
  boost::system::error_code broken;
  const json::value value = json::parse(**text, broken);
  if (broken || !value.is_object()) return hooks_.log(file_ + ": not an object in JSON");
  ipc::Fields fields(value.as_object());
  Groups groups;
  for (ipc::Fields& one : fields.objects("groups")) {
    Group& group = groups[one.text("cgroup")];
    group.slice = one.text("slice");
    group.gpus.resize(uuids_.size());
    for (const std::string& uuid : one.texts("gpus"))
      if (const auto found = std::ranges::find(uuids_, uuid); found != uuids_.end())
        group.gpus[static_cast<std::size_t>(found - uuids_.begin())] = {
            .wanted = {}, .told = {}, .ours = true, .stale = true};
  }
  if (!fields.ok()) return hooks_.log(file_ + ": " + fields.error().message);
  std::erase_if(groups, [](const auto& entry) { return !is_cgroup_path(entry.first) || !entry.second.is_ours(); });
  groups_ = std::move(groups);
  saved_ = **text;
}

void DriverLimits::save() {
  if (file_.empty()) return;
  json::array groups;
  for (const auto& [cgroup, group] : groups_) {
    json::array gpus;
    for (std::size_t i = 0; i < group.gpus.size(); ++i)
      if (group.gpus[i].ours) gpus.emplace_back(uuids_[i]);
    if (!gpus.empty())
      groups.push_back(json::object{{"cgroup", cgroup}, {"slice", group.slice}, {"gpus", std::move(gpus)}});
  }
  std::string text = groups.empty() ? "" : ipc::to_text(json::object{{"groups", std::move(groups)}}) + "\n";
  if (text == saved_) return;
  if (text.empty()) {
    ::unlink(file_.c_str());
  } else if (const auto written = replace_file(file_, text); !written) {
    hooks_.log("which limits of the driver's are gpuctl's would not survive a restart: " + written.error().message);
  }
  saved_ = std::move(text);  // a failure is said once
}

}  // namespace gpuctl::daemon
