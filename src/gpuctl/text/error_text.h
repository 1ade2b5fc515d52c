// Error replies as one line for a person.
#pragma once

#include <string>

#include "ipc/message.h"

namespace gpuctl::cli {

/// "slice 'ls' does not exist" for io.gpuctl.NoSuchSlice and so on; an unknown error is shown by name with its
/// parameters. Always one line without trailing newline. `reply.error` must not be empty.
std::string error_text(const ipc::Reply& reply);

}  // namespace gpuctl::cli
