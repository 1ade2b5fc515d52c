// How well the programs of a slice are served, as people read it.
#pragma once

#include <string>
#include <vector>

#include "ipc/types.h"

namespace gpuctl::cli {

/// "2.41"; from 100 on without decimals, from 1000 on in short.
std::string format_slowdown(double ntt);

/// The output of `show --fairness`.
std::vector<std::string> fairness_lines(const ipc::Fairness& fairness);

/// The figures of the slice; null if it has none.
const ipc::Fairness* fairness_of(const std::vector<ipc::Fairness>& fairness, const std::string& slice);

}  // namespace gpuctl::cli
