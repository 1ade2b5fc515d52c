#include "gpuctld/jobs/kernel_knowledge.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <charconv>
#include <cmath>
#include <ranges>
#include <utility>

#include "gpuctld/clients/client.h"
#include "ipc/fields.h"
#include "ipc/message.h"

namespace gpuctl::daemon {

namespace json = boost::json;
using sched::Time;

namespace {

constexpr int kVersion = 1;
// What a client reports to have taken longer is not learnt.
constexpr std::uint64_t kLongestLaunchNs = 3'600'000'000'000;
/// A launch is a point of its kernel's curve if the most SMs that it had are at most this many times the fewest, ...
constexpr std::uint32_t kSteady = 2;
/// ... and if, when that number changed, it ran so long that the few block-tasks during a change do not matter.
constexpr std::uint64_t kSettledNs = 1'000'000;
/// After this many unsteady launches in a row the last one is a point all the same. Otherwise a long kernel whose
/// neighbours come and go would never be known. The mean of its SMs is right if the kernel scales, and if it does not
/// matter how many it has.
constexpr std::uint32_t kUnsteady = 4;

std::string to_key(std::uint64_t hash) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string key(16, '0');
  for (std::size_t i = key.size(); hash != 0; hash /= 16) key[--i] = kDigits[hash % 16];
  return key;
}

/// The name of a user's kernel in the predictor and in the file. Root's are named as all were in earlier versions.
std::string to_key(std::uint32_t uid, std::uint64_t hash) {
  return to_key(hash) + (uid == 0 ? "" : "@" + std::to_string(uid));
}

/// False if the text is no such name.
bool from_key(std::string_view key, std::uint32_t& uid, std::uint64_t& hash) {
  const std::string_view digits = key.substr(0, 16);
  const auto [hash_end, hash_problem] = std::from_chars(digits.data(), digits.data() + digits.size(), hash, 16);
  if (hash_problem != std::errc{} || digits.size() != 16 || hash_end != digits.data() + 16) return false;
  uid = 0;
  if (key.size() == 16) return true;
  const auto [end, problem] = std::from_chars(key.data() + 17, key.data() + key.size(), uid);
  return key[16] == '@' && problem == std::errc{} && end == key.data() + key.size() && uid != 0;
}

template <class Launch>
sched::LaunchShape shape_of(const Launch& launch) {
  return {.blocks = static_cast<double>(launch.total),
          .threads = static_cast<double>(launch.threads),
          .input_bytes = 1024.0 * launch.input_kib,
          .shared_bytes = static_cast<double>(launch.shared)};
}

/// Duration on the whole device, from the time that a worker takes for one block-task; 0 if unknown. For a launch that
/// was evicted the client knows that time from its workers as it saw them come and go, or from one worker, whose SM may
/// have been full or its own. So this is for launches of which nothing better is known.
template <class Launch>
Time from_tasks(const Launch& launch, std::uint32_t sms) {
  const std::uint64_t workers = std::min<std::uint64_t>(launch.total, std::uint64_t{launch.per_sm} * sms);
  return Time{std::llround(static_cast<double>(launch.total) * launch.task_ns / static_cast<double>(workers))};
}

bool is_whole(const ipc::Record& launch) {
  return (launch.evictions & ipc::kWholeDevice) != 0 && launch.done_ns > launch.start_ns;
}

bool is_original(const ipc::Record& launch) {
  return (launch.evictions & ipc::kOriginalForm) != 0;
}

/// How long the launch was at work while it had SMs. About half the time of an eviction is waiting: first its workers
/// leave, and work on without a grant; then they come back, and it has a grant but they do not work yet. The second
/// part is the longer.
double at_work_ns(const ipc::Record& launch, const GrantHistory::Held& held) {
  const std::uint64_t away = (launch.evictions & 0xffff) > 0 ? launch.evict_ns / 2 : 0;
  return static_cast<double>(held.ns - std::min(away, held.ns / 2));
}

/// The number of SMs that the launch can fill.
std::uint32_t usable(const ipc::Record& launch, std::uint32_t sms) {
  return std::clamp((launch.total + launch.per_sm - 1) / launch.per_sm, 1u, sms);
}

}  // namespace

const KernelKnowledge::Kernel* KernelKnowledge::find(std::uint32_t uid, std::uint64_t hash) const {
  const auto found = kernels_.find({uid, hash});
  return found == kernels_.end() ? nullptr : &found->second;
}

Time KernelKnowledge::predict(std::uint32_t uid, const ipc::Head& launch, std::uint32_t sms) const {
  const Time tasks = from_tasks(launch, sms), fallback = tasks > Time{0} ? tasks : kUnknownDuration;
  const Kernel* kernel = find(uid, launch.kernel);
  return kernel == nullptr ? fallback : predictor_.predict(kernel->id, shape_of(launch), fallback);
}

bool KernelKnowledge::knows_duration(std::uint32_t uid, std::uint64_t kernel) const {
  const Kernel* found = find(uid, kernel);
  return found != nullptr && found->launches > 0;
}

Time KernelKnowledge::eviction(std::uint32_t uid, std::uint64_t kernel) const {
  const Kernel* found = find(uid, kernel);
  return found == nullptr ? kUnknownEviction : predictor_.eviction(found->id, kUnknownEviction);
}

KernelKnowledge::Kernel& KernelKnowledge::find_or_add(std::uint32_t uid, std::uint64_t hash) {
  const auto found = kernels_.find({uid, hash});
  if (found != kernels_.end()) {
    auto& recent = users_.at(uid).recent;
    recent.splice(recent.end(), recent, found->second.place);
    return found->second;
  }
  make_room(uid);
  return add(uid, hash);
}

KernelKnowledge::Kernel& KernelKnowledge::add(std::uint32_t uid, std::uint64_t hash) {
  User& user = users_[uid];
  Kernel& kernel = kernels_[{uid, hash}];
  kernel.id = predictor_.id(to_key(uid, hash));
  kernel.place = user.recent.insert(user.recent.end(), hash);
  ++user.unnamed;
  return kernel;
}

void KernelKnowledge::make_room(std::uint32_t uid) {
  const auto own = users_.find(uid);
  if (own != users_.end() && own->second.recent.size() >= kMaxLearntKernelsOfUser) {
    drop(uid, own->second.recent.front());
  } else if (kernels_.size() >= kMaxLearntKernels) {
    const auto most = std::ranges::max_element(users_, {}, [](const auto& user) { return user.second.recent.size(); });
    drop(most->first, most->second.recent.front());
  }
}

void KernelKnowledge::drop(std::uint32_t uid, std::uint64_t hash) {
  const auto found = kernels_.find({uid, hash});
  const auto user = users_.find(uid);
  user->second.unnamed -= found->second.name.empty();
  const std::size_t text = found->second.name.size() + found->second.module.size();
  user->second.text -= text;
  text_ -= text;
  user->second.recent.erase(found->second.place);
  if (user->second.recent.empty()) users_.erase(user);
  predictor_.forget(found->second.id);
  kernels_.erase(found);
  changed_ = true;
}

std::size_t KernelKnowledge::forget(std::optional<std::uint32_t> uid) {
  std::vector<Key> keys;
  for (const auto& [key, kernel] : kernels_)
    if (!uid || key.first == *uid) keys.push_back(key);
  for (const auto& [user, hash] : keys) drop(user, hash);
  return keys.size();
}

bool KernelKnowledge::wants_names(std::uint32_t uid) const {
  const auto found = users_.find(uid);
  return found != users_.end() && found->second.unnamed > 0;
}

std::uint32_t KernelKnowledge::id(std::uint32_t uid, std::uint64_t kernel) const {
  const Kernel* found = find(uid, kernel);
  return found == nullptr ? kNoId : found->id;
}

std::span<const sched::CurvePoint> KernelKnowledge::curve(std::uint32_t id, std::uint32_t sms) {
  return predictor_.curve(id, sched::CapSM{sms});
}

double KernelKnowledge::speed(std::uint32_t id, std::uint32_t granted, std::uint32_t usable, std::uint32_t sms) {
  if (granted >= usable) return 1;
  if (granted == 0) return 0;
  const std::span<const sched::CurvePoint> points = curve(id, sms);
  if (points.empty()) return static_cast<double>(granted) / usable;
  return sched::time_with(points, sched::CapSM{usable}) / sched::time_with(points, sched::CapSM{granted});
}

/// Learns a point of the kernel's curve. If the grant changed too much, its mean says little.
void KernelKnowledge::learn_curve(Kernel& kernel, const ipc::Record& launch, const GrantHistory::Held& held) {
  if (held.most != held.least && held.ns < kSettledNs) return;
  if (held.most > kSteady * held.least && ++kernel.unsteady < kUnsteady) return;
  kernel.unsteady = 0;
  const auto capsm = static_cast<std::uint32_t>(std::lround(held.capsm));
  predictor_.learn_curve(kernel.id, sched::CapSM{capsm}, launch.total, Time{static_cast<std::int64_t>(held.ns)});
}

/// Duration on the whole device; 0 if unknown.
Time KernelKnowledge::alone(std::uint32_t uid, const ipc::Record& launch, std::uint32_t sms,
                            const std::optional<GrantHistory::Held>& held) {
  if (is_original(launch)) return alone_in_original_form(uid, launch, sms);
  if (is_whole(launch)) return Time{static_cast<std::int64_t>(launch.done_ns - launch.start_ns)};
  if (!held) return from_tasks(launch, sms);
  const auto capsm = static_cast<std::uint32_t>(std::lround(held->capsm));
  return Time{std::llround(at_work_ns(launch, *held) * speed(id(uid, launch.kernel), capsm, usable(launch, sms), sms))};
}

/// A launch that was confined to some SMs counts as scaling, unless the persistent form of its kernel was seen not to
/// scale.
Time KernelKnowledge::alone_in_original_form(std::uint32_t uid, const ipc::Record& launch, std::uint32_t sms) {
  if (launch.done_ns <= launch.start_ns) return Time{0};
  const std::uint32_t confined = launch.evictions & 0xffff;
  const double speed = confined == 0 ? 1 : this->speed(id(uid, launch.kernel), confined, usable(launch, sms), sms);
  return Time{std::llround(static_cast<double>(launch.done_ns - launch.start_ns) * speed)};
}

Time KernelKnowledge::learn(std::uint32_t uid, const ipc::Record& launch, std::uint32_t sms,
                            const std::optional<GrantHistory::Held>& held) {
  if (launch.done_ns > launch.start_ns && launch.done_ns - launch.start_ns >= kLongestLaunchNs) return Time{0};
  if (held) {
    // First, because with this point the curve may tell how long the launch takes alone.
    learn_curve(find_or_add(uid, launch.kernel), launch, *held);
    changed_ = true;
  }
  const Time took = alone(uid, launch, sms, held);
  if (took <= Time{0} || took >= Time{kLongestLaunchNs}) return Time{0};
  Kernel* kernel = &find_or_add(uid, launch.kernel);
  changed_ = true;
  const sched::LaunchShape shape = shape_of(launch);
  const auto ns = static_cast<double>(took.count());
  kernel->predicted_ns = static_cast<double>(predictor_.predict(kernel->id, shape, Time{0}).count());
  kernel->mean_ns += (ns - kernel->mean_ns) / static_cast<double>(++kernel->launches);
  predictor_.learn(kernel->id, shape, took);
  if (const std::uint32_t evictions = launch.evictions & 0xffff; evictions > 0 && !is_original(launch))
    predictor_.learn_eviction(kernel->id,
                              Time{static_cast<std::int64_t>(std::min(launch.evict_ns / evictions, kLongestLaunchNs))});
  return took;
}

void KernelKnowledge::name(std::uint32_t uid, const std::string& module, const std::string& name) {
  const auto found = kernels_.find({uid, ipc::kernel_hash(module, name)});
  if (found == kernels_.end() || name.empty() || !found->second.name.empty()) return;
  give_name(uid, found->second, name, module);
  changed_ = true;
}

/// What it is called by may be cut; its number is that of the whole name. The kernel may be dropped to make room.
void KernelKnowledge::give_name(std::uint32_t uid, Kernel& kernel, std::string name, std::string module) {
  for (std::string* text : {&name, &module})
    if (text->size() > kMaxKernelText) *text = ipc::to_utf8(text->substr(0, kMaxKernelText));
  User& user = users_.at(uid);
  user.unnamed -= !name.empty();
  user.text += name.size() + module.size();
  text_ += name.size() + module.size();
  kernel.name = std::move(name);
  kernel.module = std::move(module);
  while (user.text > kMaxLearntTextOfUser) drop(uid, user.recent.front());
  while (text_ > kMaxLearntText) {
    const auto most = std::ranges::max_element(users_, {}, [](const auto& one) { return one.second.text; });
    drop(most->first, most->second.recent.front());
  }
}

std::pair<std::string, std::string> KernelKnowledge::name_of(std::uint32_t uid, std::uint64_t kernel) const {
  const Kernel* found = find(uid, kernel);
  return found == nullptr ? std::pair<std::string, std::string>() : std::pair(found->name, found->module);
}

std::string KernelKnowledge::key_of(std::uint64_t kernel) {
  return to_key(kernel);
}

std::vector<ipc::KernelDurations> KernelKnowledge::list() const {
  const std::vector<sched::KernelKnowledge> known = predictor_.knowledge();
  std::vector<ipc::KernelDurations> result;
  for (const auto& [key, kernel] : kernels_) {
    const sched::KernelKnowledge& learnt = known[kernel.id];
    std::vector<ipc::KernelPoint> curve;
    for (const sched::CurvePoint& point : learnt.curve)
      curve.push_back({static_cast<std::int64_t>(point.capsm.count),
                       static_cast<double>(point.whole.count()) / sched::kCurveTasks / 1000});
    result.push_back({.name = kernel.name.empty() ? to_key(key.second) : kernel.name,
                      .module = kernel.module,
                      .launches = static_cast<std::int64_t>(kernel.launches),
                      .predicted_us = kernel.predicted_ns / 1000,
                      .observed_us = kernel.mean_ns / 1000,
                      .error = learnt.error,
                      .evict_us = static_cast<double>(learnt.eviction.count()) / 1000,
                      .curve = std::move(curve),
                      .uid = key.first,
                      .key = to_key(key.second)});
  }
  std::sort(result.begin(), result.end(),
            [](const auto& a, const auto& b) { return a.name != b.name ? a.name < b.name : a.module < b.module; });
  return result;
}

json::value KernelKnowledge::to_json() const {
  json::array names;
  for (const auto& [uid, user] : users_) {
    for (const std::uint64_t hash : user.recent) {
      const Kernel& kernel = *find(uid, hash);
      names.push_back({{"key", to_key(uid, hash)},
                       {"name", ipc::to_utf8(kernel.name)},
                       {"module", ipc::to_utf8(kernel.module)},
                       {"launches", static_cast<std::int64_t>(kernel.launches)},
                       {"mean_ns", kernel.mean_ns},
                       {"predicted_ns", kernel.predicted_ns}});
    }
  }
  return {{"version", kVersion}, {"kernels", names}, {"predictor", predictor_.to_json()}};
}

Result<void> KernelKnowledge::from_json(const json::value& state) {
  if (!state.is_object()) return fail("not a JSON object");
  ipc::Fields fields(state.as_object());
  if (fields.integer("version") != kVersion && fields.ok()) fields.complain("version", "is not 1");
  KernelKnowledge read;
  const json::value* predictor = state.as_object().if_contains("predictor");
  if (predictor == nullptr) return fail("predictor: is missing");
  if (auto loaded = read.predictor_.from_json(*predictor); !loaded) return loaded.error();
  for (ipc::Fields& item : fields.objects("kernels")) {
    const std::string key = item.text("key");
    std::uint32_t uid = 0;
    std::uint64_t hash = 0;
    if (!from_key(key, uid, hash)) item.complain("key", "is not 16 hexadecimal digits, with @ and a user or without");
    if (!fields.ok() || read.kernels_.size() >= kMaxLearntKernels) break;
    if (read.find(uid, hash) != nullptr) continue;
    read.make_room(uid);
    Kernel& kernel = read.add(uid, hash);
    kernel.launches = static_cast<std::uint64_t>(item.integer("launches", 0));
    kernel.mean_ns = item.number("mean_ns");
    kernel.predicted_ns = item.number("predicted_ns");
    read.give_name(uid, kernel, item.text("name"), item.text("module"));
  }
  if (!fields.ok()) return fields.error();
  *this = std::move(read);
  return {};
}

}  // namespace gpuctl::daemon
