#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "kernels/particles/myocyte_model.h"

namespace gpuctl::bench::myocyte {
namespace {

using State = std::array<double, kMyocyteStates>;

constexpr MyocyteCell kCell = {4.0f, 0.09f, 40.0f, -84.5f};

double rate(const float* c, double voltage) {
  const double v = voltage + c[2];
  return (c[0] * std::exp(c[1] * v) + c[3] * (voltage + c[4])) / (std::exp(c[5] * v) + c[6]);
}

/// The model written down a second time, in doubles.
State slopes_of(double time, const State& s) {
  const auto [v, calcium, x1, m, h, j, d, f] = s;
  State slopes;
  for (std::size_t gate = 0; gate < kMyocyteGates; ++gate) {
    const double y = s[kFirstGate + gate];
    slopes[kFirstGate + gate] = rate(kMyocyteRates[2 * gate], v) * (1 - y) - rate(kMyocyteRates[2 * gate + 1], v) * y;
  }
  const double k1 =
      0.35 * (4 * (std::exp(0.04 * (v + 85)) - 1) / (std::exp(0.08 * (v + 53)) + std::exp(0.04 * (v + 53))) +
              0.2 * (v + 23) / (1 - std::exp(-0.04 * (v + 23))));
  const double x1_current = x1 * 0.8 * (std::exp(0.04 * (v + 77)) - 1) / std::exp(0.04 * (v + 35));
  const double sodium = (kCell.sodium * m * m * m * h * j + 0.003) * (v - 50);
  const double slow = kCell.slow * d * f * (v + 82.3 + 13.0287 * std::log(calcium));
  slopes[kVoltage] = (time < 1 ? kCell.stimulus : 0) - (k1 + x1_current + sodium + slow);
  slopes[kCalcium] = -1e-7 * slow + 0.07 * (1e-7 - calcium);
  return slopes;
}

/// Many small steps of the midpoint rule.
State simulate_in_doubles(double end) {
  constexpr double kStep = 1e-3;
  State state = {kCell.voltage, 2e-7};
  for (std::size_t gate = 0; gate < kMyocyteGates; ++gate) state[kFirstGate + gate] = kMyocyteRestingGates[gate];
  for (long n = 0; n < std::lround(end / kStep); ++n) {
    const double time = static_cast<double>(n) * kStep;
    State middle = state;
    const State first = slopes_of(time, state);
    for (std::size_t i = 0; i < middle.size(); ++i) middle[i] += kStep / 2 * first[i];
    const State second = slopes_of(time + kStep / 2, middle);
    for (std::size_t i = 0; i < state.size(); ++i) state[i] += kStep * second[i];
  }
  return state;
}

TEST(Myocyte, FollowsTheModelInDoubles) {
  for (const float end : {0.5f, 1.0f, 2.0f, 10.0f, 50.0f}) {
    float state[kMyocyteStates];
    simulate_myocyte(kCell, end, state);
    const State exact = simulate_in_doubles(end);
    EXPECT_NEAR(state[kVoltage], exact[kVoltage], 0.03) << end;
    EXPECT_NEAR(state[kCalcium], exact[kCalcium], 1e-9) << end;
    for (int i = kFirstGate; i < kMyocyteStates; ++i) EXPECT_NEAR(state[i], exact[i], 1e-3) << end << " " << i;
  }
}

// The cell fires within two milliseconds, stays up for a quarter of a second and comes back to rest.
TEST(Myocyte, FiresAndRecovers) {
  const auto voltage_after = [](float end) {
    float state[kMyocyteStates];
    simulate_myocyte(kCell, end, state);
    return state[kVoltage];
  };
  EXPECT_GT(voltage_after(2), 10);
  EXPECT_GT(voltage_after(200), -20);
  EXPECT_LT(voltage_after(400), -75);
}

// Formulas that become 0 / 0 at one voltage have a limit there.
TEST(Myocyte, HasNoGaps) {
  for (const float singular : {-47.0f, -23.0f}) {
    std::array<float, kMyocyteStates> state = {singular, 2e-7f, 0.1f, 0.2f, 0.5f, 0.5f, 0.1f, 0.9f};
    std::array<float, kMyocyteStates> there;
    std::array<float, kMyocyteStates> beside;
    myocyte_slopes(kCell, 2, state.data(), there.data());
    state[kVoltage] += 0.05f;
    myocyte_slopes(kCell, 2, state.data(), beside.data());
    for (std::size_t i = 0; i < there.size(); ++i) {
      EXPECT_NEAR(there[i], beside[i], 0.02 * std::abs(beside[i]) + 1e-3) << singular << " " << i;
    }
  }
}

}  // namespace
}  // namespace gpuctl::bench::myocyte
