#include "sched/predictor/predictor.h"

#include <algorithm>
#include <boost/json/value.hpp>
#include <cmath>

namespace gpuctl::sched {

namespace {
constexpr double kRecent = 50;  // number of launches or evictions that a mean covers; FLEP profiles 50

double blend(double mean, double value, std::uint64_t count, double recent) {
  return mean + (value - mean) / std::min(static_cast<double>(count), recent);
}
}  // namespace

Time corrected_remaining(Time predicted, Time ran, std::uint64_t tasks_done, std::uint64_t tasks_total) {
  if (tasks_total == 0 || tasks_done >= tasks_total) return Time{0};
  const double done = static_cast<double>(tasks_done) / static_cast<double>(tasks_total);
  const double whole_predicted = static_cast<double>(predicted.count());
  if (tasks_done == 0) return predicted;
  const double whole_seen = static_cast<double>(ran.count()) / done;
  const double whole = (1 - done) * whole_predicted + done * whole_seen;
  return Time{std::llround(whole * (1 - done))};
}

std::uint32_t Predictor::id(std::string_view kernel) {
  const auto at = ids_.find(kernel);
  if (at != ids_.end()) return at->second;
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(kernels_.size()));
    kernels_.emplace_back();
  }
  const std::uint32_t id = free_.back();
  free_.pop_back();
  kernels_[id].name = kernel;
  kernels_[id].model.emplace();
  ids_.emplace(std::string(kernel), id);
  return id;
}

void Predictor::forget(std::uint32_t kernel) {
  if (get(kernel) == nullptr) return;
  ids_.erase(kernels_[kernel].name);
  kernels_[kernel] = {};
  free_.push_back(kernel);
}

Time Predictor::predict(std::uint32_t kernel, const LaunchShape& shape, Time fallback) const {
  const Kernel* k = get(kernel);
  return k == nullptr ? fallback : k->model->predict(shape).value_or(fallback);
}

Time Predictor::eviction(std::uint32_t kernel, Time fallback) const {
  const Kernel* k = get(kernel);
  return k == nullptr || k->evictions == 0 ? fallback : Time{std::llround(k->eviction_ns)};
}

std::span<const CurvePoint> Predictor::curve(std::uint32_t kernel, CapSM device) {
  Kernel* k = get(kernel);
  return k == nullptr ? std::span<const CurvePoint>{} : k->curve.filled(device);
}

void Predictor::learn(std::uint32_t kernel, const LaunchShape& shape, Time duration) {
  Kernel* k = get(kernel);
  if (k == nullptr || duration <= Time{0}) return;
  if (const auto predicted = k->model->predict(shape)) {
    const double off =
        std::abs(static_cast<double>((*predicted - duration).count())) / static_cast<double>(duration.count());
    k->error = blend(k->error, off, k->launches, kRecent);
  }
  ++k->launches;
  k->last = duration;
  k->model->learn(shape, duration);
}

void Predictor::learn_eviction(std::uint32_t kernel, Time cost) {
  Kernel* k = get(kernel);
  if (k == nullptr || cost < Time{0}) return;
  k->eviction_ns = blend(k->eviction_ns, static_cast<double>(cost.count()), ++k->evictions, kRecent);
}

void Predictor::learn_curve(std::uint32_t kernel, CapSM capsm, std::uint64_t block_tasks, Time duration) {
  Kernel* k = get(kernel);
  if (k == nullptr || block_tasks == 0) return;
  k->curve.learn(capsm, static_cast<double>(duration.count()) / static_cast<double>(block_tasks) * kCurveTasks);
}

std::vector<KernelKnowledge> Predictor::knowledge() const {
  std::vector<KernelKnowledge> all;
  for (const Kernel& k : kernels_)
    all.push_back({k.name,
                   k.launches,
                   k.error,
                   k.last,
                   Time{std::llround(k.eviction_ns)},
                   {k.curve.points().begin(), k.curve.points().end()}});
  return all;
}

boost::json::value Predictor::to_json() const {
  boost::json::array kernels;
  for (const Kernel& k : kernels_) {
    if (!k.model) continue;
    kernels.push_back({{"name", k.name},
                       {"launches", k.launches},
                       {"error", k.error},
                       {"last_ns", k.last.count()},
                       {"evictions", k.evictions},
                       {"eviction_ns", k.eviction_ns},
                       {"curve", k.curve.to_json()},
                       {"model", k.model->to_json()}});
  }
  return {{"version", 1}, {"kernels", kernels}};
}

Result<void> Predictor::from_json(const boost::json::value& state) {
  const boost::json::object* root = state.if_object();
  const boost::json::value* version = root ? root->if_contains("version") : nullptr;
  const boost::json::value* list = root ? root->if_contains("kernels") : nullptr;
  if (version == nullptr || *version != boost::json::value(1))
    return fail("predictor state: field \"version\" is not 1");
  if (list == nullptr || !list->is_array()) return fail("predictor state: field \"kernels\" is not a list");

  Predictor read;
  for (const boost::json::value& item : list->get_array()) {
    const boost::json::object* object = item.if_object();
    const boost::json::value* name = object ? object->if_contains("name") : nullptr;
    if (name == nullptr || !name->is_string()) return fail("predictor state: a kernel without a name");
    const std::string label = "predictor state: kernel \"" + std::string(name->get_string()) + "\": ";
    Kernel& k = read.kernels_[read.id(name->get_string())];
    bool good = true;
    const auto number = [&](const char* field) {
      const boost::json::value* v = object->if_contains(field);
      const double x = v != nullptr && v->is_number() ? v->to_number<double>() : std::nan("");
      if (!(x >= 0 && x <= 1e18)) good = false;
      return good ? x : 0;
    };
    k.launches = static_cast<std::uint64_t>(number("launches"));
    k.error = number("error");
    k.last = Time{std::llround(number("last_ns"))};
    k.evictions = static_cast<std::uint64_t>(number("evictions"));
    k.eviction_ns = number("eviction_ns");
    if (!good) return fail(label + "a number is missing or out of range");
    const boost::json::value* curve = object->if_contains("curve");
    if (curve == nullptr || !k.curve.from_json(*curve)) return fail(label + "field \"curve\"");
    const boost::json::value* model = object->if_contains("model");
    if (model == nullptr) return fail(label + "field \"model\"");
    if (const auto loaded = k.model->from_json(*model); !loaded) return fail(label + loaded.error().message);
  }
  *this = std::move(read);
  return {};
}

}  // namespace gpuctl::sched
