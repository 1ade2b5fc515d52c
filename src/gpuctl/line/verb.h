// A verb of the command line: one file cmd_*.cc and one row of the table in verb.cc.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "gpuctl/text/failure.h"

namespace gpuctl::cli {

/// What the global options and the surroundings say.
struct Context {
  std::string socket;                ///< path of the daemon's socket
  bool json = false;                 ///< print JSON instead of text
  std::vector<std::string> command;  ///< `run`: the program and its arguments, untouched
  std::ostream& out;
  bool out_is_terminal = false;  ///< out is a terminal that understands ANSI sequences
};

/// Does the work after the command line was understood; returns the exit status.
using Action = std::function<Outcome<int>(Context&)>;

struct Verb {
  const char* name;
  const char* summary;  ///< for `gpuctl --help`
  const char* example;  ///< for `gpuctl VERB --help`
  /// Declares arguments and options; the action owns the variables they are parsed into.
  Action (*declare)(CLI::App& app);
};

/// All verbs in the order of the help.
std::span<const Verb> verbs();

Action declare_create_slice(CLI::App& app);
Action declare_delete_slice(CLI::App& app);
Action declare_set(CLI::App& app);
Action declare_list(CLI::App& app);
Action declare_show(CLI::App& app);
Action declare_run(CLI::App& app);
Action declare_top(CLI::App& app);
Action declare_kill(CLI::App& app);
Action declare_explain(CLI::App& app);
Action declare_rewrite(CLI::App& app);
Action declare_status(CLI::App& app);
Action declare_monitor(CLI::App& app);
Action declare_simulate(CLI::App& app);

}  // namespace gpuctl::cli
