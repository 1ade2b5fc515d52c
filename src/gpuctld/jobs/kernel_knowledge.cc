#include "gpuctld/jobs/kernel_knowledge.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <charconv>
#include <cmath>

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

template <class Launch>
sched::LaunchShape shape_of(const Launch& launch) {
  return {.blocks = static_cast<double>(launch.total),
          .threads = static_cast<double>(launch.threads),
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

Time KernelKnowledge::predict(const ipc::Head& launch, std::uint32_t sms) const {
  const Time tasks = from_tasks(launch, sms), fallback = tasks > Time{0} ? tasks : kUnknownDuration;
  const auto found = kernels_.find(launch.kernel);
  return found == kernels_.end() ? fallback : predictor_.predict(found->second.id, shape_of(launch), fallback);
}

bool KernelKnowledge::knows_duration(std::uint64_t kernel) const {
  const auto found = kernels_.find(kernel);
  return found != kernels_.end() && found->second.launches > 0;
}

Time KernelKnowledge::eviction(std::uint64_t kernel) const {
  const auto found = kernels_.find(kernel);
  return found == kernels_.end() ? kUnknownEviction : predictor_.eviction(found->second.id, kUnknownEviction);
}

KernelKnowledge::Kernel* KernelKnowledge::find_or_add(std::uint64_t hash) {
  const auto found = kernels_.find(hash);
  if (found != kernels_.end()) return &found->second;
  if (kernels_.size() >= kMaxLearntKernels) return nullptr;
  Kernel& kernel = kernels_[hash];
  kernel.id = predictor_.id(to_key(hash));
  ++unnamed_;
  return &kernel;
}

std::uint32_t KernelKnowledge::id(std::uint64_t kernel) const {
  const auto found = kernels_.find(kernel);
  return found == kernels_.end() ? kNoId : found->second.id;
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
Time KernelKnowledge::alone(const ipc::Record& launch, std::uint32_t sms,
                            const std::optional<GrantHistory::Held>& held) {
  if (is_original(launch)) return alone_in_original_form(launch, sms);
  if (is_whole(launch)) return Time{static_cast<std::int64_t>(launch.done_ns - launch.start_ns)};
  if (!held) return from_tasks(launch, sms);
  const auto capsm = static_cast<std::uint32_t>(std::lround(held->capsm));
  return Time{std::llround(at_work_ns(launch, *held) * speed(id(launch.kernel), capsm, usable(launch, sms), sms))};
}

/// A launch that was confined to some SMs counts as scaling, unless the persistent form of its kernel was seen not to
/// scale.
Time KernelKnowledge::alone_in_original_form(const ipc::Record& launch, std::uint32_t sms) {
  if (launch.done_ns <= launch.start_ns) return Time{0};
  const std::uint32_t confined = launch.evictions & 0xffff;
  const double speed = confined == 0 ? 1 : this->speed(id(launch.kernel), confined, usable(launch, sms), sms);
  return Time{std::llround(static_cast<double>(launch.done_ns - launch.start_ns) * speed)};
}

Time KernelKnowledge::learn(const ipc::Record& launch, std::uint32_t sms,
                            const std::optional<GrantHistory::Held>& held) {
  if (launch.done_ns > launch.start_ns && launch.done_ns - launch.start_ns >= kLongestLaunchNs) return Time{0};
  if (held) {
    // First, because with this point the curve may tell how long the launch takes alone.
    if (Kernel* known = find_or_add(launch.kernel)) learn_curve(*known, launch, *held);
    changed_ = true;
  }
  const Time took = alone(launch, sms, held);
  if (took <= Time{0} || took >= Time{kLongestLaunchNs}) return Time{0};
  Kernel* kernel = find_or_add(launch.kernel);
  if (kernel == nullptr) return took;
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

void KernelKnowledge::name(const std::string& module, const std::string& name) {
  const auto found = kernels_.find(ipc::kernel_hash(module, name));
  if (found == kernels_.end() || !found->second.name.empty()) return;
  found->second.name = name;
  found->second.module = module;
  --unnamed_;
  changed_ = true;
}

std::string KernelKnowledge::name_of(std::uint64_t kernel) const {
  const auto found = kernels_.find(kernel);
  return found == kernels_.end() ? std::string() : found->second.name;
}

std::vector<ipc::KernelDurations> KernelKnowledge::list() const {
  const std::vector<sched::KernelKnowledge> known = predictor_.knowledge();
  std::vector<ipc::KernelDurations> result;
  for (const auto& [hash, kernel] : kernels_) {
    const sched::KernelKnowledge& learnt = known[kernel.id];
    std::vector<ipc::KernelPoint> curve;
    for (const sched::CurvePoint& point : learnt.curve)
      curve.push_back({static_cast<std::int64_t>(point.capsm.count),
                       static_cast<double>(point.whole.count()) / sched::kCurveTasks / 1000});
    result.push_back({.name = kernel.name.empty() ? to_key(hash) : kernel.name,
                      .module = kernel.module,
                      .launches = static_cast<std::int64_t>(kernel.launches),
                      .predicted_us = kernel.predicted_ns / 1000,
                      .observed_us = kernel.mean_ns / 1000,
                      .error = learnt.error,
                      .evict_us = static_cast<double>(learnt.eviction.count()) / 1000,
                      .curve = std::move(curve)});
  }
  std::sort(result.begin(), result.end(),
            [](const auto& a, const auto& b) { return a.name != b.name ? a.name < b.name : a.module < b.module; });
  return result;
}

json::value KernelKnowledge::to_json() const {
  json::array names;
  for (const auto& [hash, kernel] : kernels_)
    names.push_back({{"key", to_key(hash)},
                     {"name", ipc::to_utf8(kernel.name)},
                     {"module", ipc::to_utf8(kernel.module)},
                     {"launches", static_cast<std::int64_t>(kernel.launches)},
                     {"mean_ns", kernel.mean_ns},
                     {"predicted_ns", kernel.predicted_ns}});
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
    std::uint64_t hash = 0;
    const auto [end, problem] = std::from_chars(key.data(), key.data() + key.size(), hash, 16);
    if (problem != std::errc{} || end != key.data() + key.size() || key.size() != 16)
      item.complain("key", "is not 16 hexadecimal digits");
    if (!fields.ok() || read.kernels_.size() >= kMaxLearntKernels) break;
    Kernel& kernel = read.kernels_[hash];
    kernel.id = read.predictor_.id(key);
    kernel.name = item.text("name");
    kernel.module = item.text("module");
    if (kernel.name.empty()) ++read.unnamed_;
    kernel.launches = static_cast<std::uint64_t>(item.integer("launches", 0));
    kernel.mean_ns = item.number("mean_ns");
    kernel.predicted_ns = item.number("predicted_ns");
  }
  if (!fields.ok()) return fields.error();
  *this = std::move(read);
  return {};
}

}  // namespace gpuctl::daemon
