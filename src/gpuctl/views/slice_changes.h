// What a change did to slices, or would do.
#pragma once

#include <boost/json/object.hpp>

#include "gpuctl/line/verb.h"

namespace gpuctl::cli {

/// Of verbs that change slices.
inline constexpr const char* kCheckHelp = "Change nothing; say what would change, or what is against it";

/// Prints the `changes` of a reply, a line for each slice; `dry_run`: nothing was changed.
Outcome<int> print_changes(Context& context, const boost::json::object& reply, bool dry_run);

}  // namespace gpuctl::cli
