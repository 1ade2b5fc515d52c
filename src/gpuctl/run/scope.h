// `gpuctl run --scope`: systemd-run makes a scope, enters it and becomes this program again, which becomes the program.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpuctl::cli {

struct ScopePlan {
  std::string unit;     ///< its name, without ".scope"
  bool of_user = true;  ///< the user's own systemd makes it, not that of the system
  /// The systemd-run that is there may put variables in place of their names where nothing else is said.
  bool may_expand = false;
  std::string self;                  ///< this program
  std::string socket;                ///< as it is given, or known
  std::optional<std::string> slice;  ///< if it is given
  bool quiet = false;
  std::vector<std::string> command;  ///< the program and its arguments
};

/// The command line, which begins with the name of the tool.
std::vector<std::string> scope_command(const ScopePlan& plan);

/// One that makes such a scope, and ends at once: whether there can be one. Who becomes the tool is not there any more
/// to say that it failed.
std::vector<std::string> scope_trial(const ScopePlan& plan);

/// A name that no other scope has: that of a program that has ended may be there as long as its children.
std::string scope_name();

/// Why no scope can be made here; "": nothing is known. `runtime`: XDG_RUNTIME_DIR.
std::string scope_obstacle(bool of_user, const std::string& runtime, const std::string& booted = "/run/systemd/system");

/// Whether some argument would become another one, if variables were put in place of their names.
bool has_variable(const std::vector<std::string>& command);

/// Whether the tool that says this of its version has an option for that: systemd 254 and later.
bool may_expand(std::string_view version);

}  // namespace gpuctl::cli
