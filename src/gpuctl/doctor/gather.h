// Looks at this machine, and at a program, for `gpuctl doctor`. Changes nothing.
#pragma once

#include "gpuctl/doctor/findings.h"
#include "gpuctl/line/verb.h"

namespace gpuctl::cli {

/// Takes some tenths of a second: it starts /bin/true with the library, nvidia-smi and gpuctld --check-config.
MachineSeen see_machine(const Context& context);

ProgramSeen see_program(const Context& context, std::int64_t pid);

}  // namespace gpuctl::cli
