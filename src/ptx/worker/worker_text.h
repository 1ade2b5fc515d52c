// The worker's text for a kernel. Its template is worker.ptx.in and the *.ptx.in beside it, from which the build makes
// an array of fragments (embed_worker.py says how a template is written).
#pragma once

#include <string>
#include <string_view>

#include "ptx/worker/shape.h"

namespace gpuctl::ptx::pass {

/// A module with one entry, `worker`. `args`: the name of the kernel's LaunchArgs parameter.
std::string worker_text(const WorkerShape& shape, std::string_view args);

}  // namespace gpuctl::ptx::pass
