// The ventricular muscle cell of Beeler and Reuter (1977): the voltage across its membrane and its calcium, driven by
// four currents whose six gates open and close with the voltage. Solved in adaptive steps with the embedded method of
// Bogacki and Shampine, orders 3 and 2. Included by the kernel myocyte and by its reference. Voltages are in mV, times
// in ms, currents in uA/cm^2, conductances in mS/cm^2, calcium in mol/l.
#pragma once

#include "kernels/problem/approximations.h"
#include "kernels/problem/rounded.h"

namespace gpuctl::bench {

enum MyocyteState { kVoltage, kCalcium, kFirstGate, kMyocyteStates = kFirstGate + 6 };
enum MyocyteGate { kGateX1, kGateM, kGateH, kGateJ, kGateD, kGateF, kMyocyteGates };

/// What differs from cell to cell.
struct MyocyteCell {
  float sodium;    ///< greatest conductance of the fast inward current
  float slow;      ///< of the slow inward current
  float stimulus;  ///< current during the first millisecond
  float voltage;   ///< at the start
};

/// Opening and closing rates of each gate: (c0 e^(c1 v) + c3 (V + c4)) / (e^(c5 v) + c6) with v = V + c2.
// clang-format off
BENCH_TABLE float kMyocyteRates[2 * kMyocyteGates][7] = {
    {0.0005f, 0.083f, 50, 0, 0, 0.057f, 1},   {0.0013f, -0.06f, 20, 0, 0, -0.04f, 1},
    {0, 0, 47, -1, 47, -0.1f, -1},            {40, -0.056f, 72, 0, 0, 0, 0},
    {0.126f, -0.25f, 77, 0, 0, 0, 0},         {1.7f, 0, 22.5f, 0, 0, -0.082f, 1},
    {0.055f, -0.25f, 78, 0, 0, -0.2f, 1},     {0.3f, 0, 32, 0, 0, -0.1f, 1},
    {0.095f, -0.01f, -5, 0, 0, -0.072f, 1},   {0.07f, -0.017f, 44, 0, 0, 0.05f, 1},
    {0.012f, -0.008f, 28, 0, 0, 0.15f, 1},    {0.0065f, -0.02f, 30, 0, 0, -0.2f, 1},
};
/// At rest.
BENCH_TABLE float kMyocyteRestingGates[kMyocyteGates] = {0.0057f, 0.011f, 0.988f, 0.975f, 0.003f, 1};
// clang-format on

inline constexpr float kMyocyteStimulusEnd = 1.0f;
inline constexpr float kMyocyteShortestStep = 0x1p-12f;  ///< taken however great its error is
inline constexpr float kMyocyteLongestStep = 0x1p-1f;

/// V, but not so near to a voltage where a formula becomes 0 / 0 that its digits cancel.
BENCH_BOTH float away_from(float singular, float voltage) {
  constexpr float kDistance = 0x1p-8f;
  const float distance = subtract(voltage, singular);
  return -kDistance < distance && distance < kDistance ? add(singular, kDistance) : voltage;
}

BENCH_BOTH float gate_rate(const float* c, float voltage) {
  const float v = add(voltage, c[2]);
  const float above = multiply_add(c[3], add(voltage, c[4]), multiply(c[0], approximate_exp(multiply(c[1], v))));
  return divide(above, add(approximate_exp(multiply(c[5], v)), c[6]));
}

/// The potassium current that does not depend on time.
BENCH_BOTH float potassium_current(float voltage) {
  const float v = add(voltage, 85.0f);
  const float w = add(voltage, 53.0f);
  const float outward = divide(multiply(4.0f, subtract(approximate_exp(multiply(0.04f, v)), 1.0f)),
                               add(approximate_exp(multiply(0.08f, w)), approximate_exp(multiply(0.04f, w))));
  const float u = add(away_from(-23.0f, voltage), 23.0f);
  const float inward = divide(multiply(0.2f, u), subtract(1.0f, approximate_exp(multiply(-0.04f, u))));
  return multiply(0.35f, add(outward, inward));
}

/// The derivatives by time of a cell's state.
BENCH_CALLED void myocyte_slopes(const MyocyteCell& cell, float time, const float* state, float* slopes) {
  const float voltage = state[kVoltage];
  const float* gates = state + kFirstGate;
  const float gate_voltage = away_from(-47.0f, voltage);
  for (int gate = 0; gate < kMyocyteGates; ++gate) {
    const float opening = gate_rate(kMyocyteRates[2 * gate], gate_voltage);
    const float closing = gate_rate(kMyocyteRates[2 * gate + 1], gate_voltage);
    slopes[kFirstGate + gate] =
        subtract(multiply(opening, subtract(1.0f, gates[gate])), multiply(closing, gates[gate]));
  }

  const float x1_now = divide(multiply(0.8f, subtract(approximate_exp(multiply(0.04f, add(voltage, 77.0f))), 1.0f)),
                              approximate_exp(multiply(0.04f, add(voltage, 35.0f))));
  const float cube = multiply(multiply(gates[kGateM], gates[kGateM]), gates[kGateM]);
  const float open = multiply(cube, multiply(gates[kGateH], gates[kGateJ]));
  const float sodium = multiply(multiply_add(cell.sodium, open, 0.003f), subtract(voltage, 50.0f));
  const float reversal = multiply_add(-13.0287f, approximate_log(state[kCalcium]), -82.3f);
  const float slow = multiply(multiply(cell.slow, multiply(gates[kGateD], gates[kGateF])), subtract(voltage, reversal));
  const float stimulus = time < kMyocyteStimulusEnd ? cell.stimulus : 0.0f;
  const float outward = multiply_add(x1_now, gates[kGateX1], potassium_current(voltage));
  slopes[kVoltage] = subtract(stimulus, add(outward, add(sodium, slow)));  // 1 uF/cm^2
  slopes[kCalcium] = multiply_add(-1e-7f, slow, multiply(0.07f, subtract(1e-7f, state[kCalcium])));
}

/// How far a cell was followed.
struct MyocyteProgress {
  float state[kMyocyteStates];
  float time, step;
  unsigned steps;  ///< those taken again included
};

BENCH_BOTH void myocyte_at_rest(const MyocyteCell& cell, MyocyteProgress& at) {
  at.state[kVoltage] = cell.voltage;
  at.state[kCalcium] = 2e-7f;
  for (int gate = 0; gate < kMyocyteGates; ++gate) at.state[kFirstGate + gate] = kMyocyteRestingGates[gate];
  at.time = 0.0f;
  at.step = 0x1p-6f;
  at.steps = 0;
}

/// Takes a step of a cell that is not at `end` yet.
BENCH_BOTH void myocyte_step(const MyocyteCell& cell, float end, MyocyteProgress& at) {
  float slopes[4][kMyocyteStates];
  float next[kMyocyteStates];
  ++at.steps;
  const float left = subtract(end, at.time);
  const float h = at.step < left ? at.step : left;
  for (int stage = 0; stage < 4; ++stage) {
    for (int i = 0; i < kMyocyteStates; ++i) {
      float slope = 0.0f;
      if (stage == 1) slope = multiply(0.5f, slopes[0][i]);
      if (stage == 2) slope = multiply(0.75f, slopes[1][i]);
      if (stage == 3) {
        slope = multiply_add(2.0f / 9, slopes[0][i],
                             multiply_add(1.0f / 3, slopes[1][i], multiply(4.0f / 9, slopes[2][i])));
      }
      next[i] = multiply_add(h, slope, at.state[i]);
    }
    const float part = stage == 0 ? 0.0f : stage == 1 ? 0.5f : stage == 2 ? 0.75f : 1.0f;
    myocyte_slopes(cell, multiply_add(part, h, at.time), next, slopes[stage]);
  }
  // The greatest error of a state, compared with what is tolerated.
  float worst = 0.0f;
  for (int i = 0; i < kMyocyteStates; ++i) {
    const float difference = multiply_add(
        -5.0f / 72, slopes[0][i],
        multiply_add(1.0f / 12, slopes[1][i], multiply_add(1.0f / 9, slopes[2][i], multiply(-0.125f, slopes[3][i]))));
    const float error = multiply(h, difference < 0.0f ? -difference : difference);
    const float tolerated = i == kVoltage ? 0x1p-6f : i == kCalcium ? 1e-10f : 0x1p-12f;
    const float ratio = divide(error, tolerated);
    worst = ratio > worst ? ratio : worst;
  }
  if (worst > 1.0f && h > kMyocyteShortestStep) {
    at.step = multiply(0.5f, h);
    return;
  }
  at.time = h < left ? add(at.time, h) : end;
  for (int i = 0; i < kMyocyteStates; ++i) at.state[i] = next[i];
  if (worst < 0.1f && at.step < kMyocyteLongestStep) at.step = multiply(2.0f, at.step);
}

/// Follows a cell up to `end`, from rest. Returns the number of steps.
BENCH_BOTH unsigned simulate_myocyte(const MyocyteCell& cell, float end, float* state) {
  MyocyteProgress at;
  myocyte_at_rest(cell, at);
  while (at.time < end) myocyte_step(cell, end, at);
  for (int i = 0; i < kMyocyteStates; ++i) state[i] = at.state[i];
  return at.steps;
}

}  // namespace gpuctl::bench
