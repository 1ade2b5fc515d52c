#include "sched/predictor/ridge.h"

#include <algorithm>
#include <boost/json/value.hpp>
#include <cmath>

namespace gpuctl::sched {

namespace {
constexpr double kMemory = 1000;     // launches after which an old one has faded to 1 / e
constexpr double kPenalty = 0.001;   // of the squared standardized slopes, per launch: a thousandth of the variance
constexpr double kConstant = 1e-12;  // relative variance below which a feature counts as constant
constexpr double kFarthest = 10;     // never predict more than this many times what was seen
}  // namespace

void RidgeModel::learn(const LaunchShape& shape, Time duration) {
  const auto features = shape.features();
  Vector x;
  std::copy(features.begin(), features.end(), x.begin());
  x.back() = static_cast<double>(std::max(duration, Time{1}).count());
  for (const double v : x)
    if (!std::isfinite(v)) return;

  const std::optional<Time> known = predict(shape);
  least_ = least_ == 0 ? x.back() : std::min(least_, x.back());
  most_ = std::max(most_, x.back());
  const double expected = known ? std::clamp(static_cast<double>(known->count()), least_, most_) : x.back();
  const double weight = 1 / (expected * expected);

  const double fade = 1 - 1 / kMemory;
  launches_ = launches_ * fade + 1;
  weight_ = weight_ * fade + weight;
  Vector before, after;
  for (std::size_t i = 0; i < kVariables; ++i) {
    before[i] = x[i] - mean_[i];
    mean_[i] += before[i] * weight / weight_;
    after[i] = x[i] - mean_[i];
  }
  for (std::size_t i = 0; i < kVariables; ++i)
    for (std::size_t j = 0; j < kVariables; ++j) moment_[i][j] = moment_[i][j] * fade + weight * before[i] * after[j];
  solved_ = false;
}

// Solves (R + penalty I) b = r by Cholesky. R holds the correlations among the features that vary, r theirs with the
// duration.
void RidgeModel::solve() const {
  solved_ = true;
  slope_.fill(0);
  constexpr std::size_t y = kVariables - 1;
  const double sy = std::sqrt(std::max(moment_[y][y], 0.0));
  if (sy == 0) return;
  std::array<std::size_t, LaunchShape::kFeatures> used;
  std::size_t n = 0;
  Vector s{};
  for (std::size_t i = 0; i < y; ++i) {
    if (moment_[i][i] <= kConstant * weight_ * mean_[i] * mean_[i] || moment_[i][i] <= 0) continue;
    s[i] = std::sqrt(moment_[i][i]);
    used[n++] = i;
  }
  std::array<std::array<double, LaunchShape::kFeatures>, LaunchShape::kFeatures> l{};
  std::array<double, LaunchShape::kFeatures> b{};
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = i == j ? 1 + kPenalty : moment_[used[i]][used[j]] / (s[used[i]] * s[used[j]]);
      for (std::size_t k = 0; k < j; ++k) sum -= l[i][k] * l[j][k];
      l[i][j] = i == j ? std::sqrt(std::max(sum, kPenalty)) : sum / l[j][j];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    b[i] = moment_[used[i]][y] / (s[used[i]] * sy);
    for (std::size_t k = 0; k < i; ++k) b[i] -= l[i][k] * b[k];
    b[i] /= l[i][i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= l[k][i] * b[k];
    b[i] /= l[i][i];
  }
  for (std::size_t i = 0; i < n; ++i) slope_[used[i]] = b[i] * sy / s[used[i]];
}

std::optional<Time> RidgeModel::predict(const LaunchShape& shape) const {
  if (launches_ == 0) return std::nullopt;
  if (!solved_) solve();
  const auto features = shape.features();
  double ns = mean_.back();
  for (std::size_t i = 0; i < features.size(); ++i) ns += slope_[i] * (features[i] - mean_[i]);
  if (!std::isfinite(ns)) ns = mean_.back();
  ns = std::clamp(ns, std::max(least_ / kFarthest, 1.0), most_ * kFarthest);
  return Time{std::llround(ns)};
}

boost::json::value RidgeModel::to_json() const {
  boost::json::array mean, moment;
  for (const double v : mean_) mean.emplace_back(v);
  for (const Vector& row : moment_)
    for (const double v : row) moment.emplace_back(v);
  return {{"launches", launches_}, {"weight", weight_},  {"mean", mean},
          {"moment", moment},      {"least_ns", least_}, {"most_ns", most_}};
}

Result<void> RidgeModel::from_json(const boost::json::value& state) {
  const auto number = [](const boost::json::value* v) {
    return v != nullptr && v->is_number() ? v->to_number<double>() : std::nan("");
  };
  const boost::json::object* object = state.if_object();
  if (object == nullptr) return fail("model: not an object");
  RidgeModel read;
  if (object->contains("weight") && !object->contains("launches")) {  // of a daemon whose launches all weighed alike
    *this = read;
    return {};
  }
  read.launches_ = number(object->if_contains("launches"));
  read.weight_ = number(object->if_contains("weight"));
  read.least_ = number(object->if_contains("least_ns"));
  read.most_ = number(object->if_contains("most_ns"));
  if (!(read.launches_ >= 0 && read.launches_ <= kMemory + 1)) return fail("model: field \"launches\"");
  if (!(read.weight_ >= 0 && read.weight_ <= read.launches_)) return fail("model: field \"weight\"");
  if (!(read.least_ >= 0 && read.least_ <= read.most_)) return fail("model: fields \"least_ns\" and \"most_ns\"");
  const auto fill = [&](const char* name, std::size_t size, auto store) {
    const boost::json::value* field = object->if_contains(name);
    const boost::json::array* items = field ? field->if_array() : nullptr;
    if (items == nullptr || items->size() != size) return false;
    for (std::size_t i = 0; i < size; ++i) {
      const double v = number(&(*items)[i]);
      if (!std::isfinite(v)) return false;
      store(i, v);
    }
    return true;
  };
  if (!fill("mean", kVariables, [&](std::size_t i, double v) { read.mean_[i] = v; }))
    return fail("model: field \"mean\"");
  if (!fill("moment", kVariables * kVariables,
            [&](std::size_t i, double v) { read.moment_[i / kVariables][i % kVariables] = v; }))
    return fail("model: field \"moment\"");
  *this = read;
  return {};
}

}  // namespace gpuctl::sched
