// A verb of the command line: one file in verbs/ and one row of the table in verb.cc.
#pragma once

#include <functional>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "gpuctl/line/arguments.h"
#include "gpuctl/text/failure.h"

namespace gpuctl::cli {

/// The values of the global options, and the surroundings.
struct Context {
  std::string socket;                ///< path of the daemon's socket
  bool json = false;                 ///< print JSON instead of text
  std::vector<std::string> command;  ///< `run`: the program and its arguments, untouched
  std::ostream& out;
  std::ostream& err;
  bool out_is_terminal = false;  ///< out is a terminal that understands ANSI sequences
  std::size_t width = 0;         ///< columns of the terminal that out is; 0: it is none
};

/// Does the work after the command line was parsed; returns the exit status.
using Action = std::function<Outcome<int>(Context&)>;

struct Verb {
  const char* name;
  const char* summary;  ///< for `gpuctl --help`
  const char* example;  ///< for `gpuctl VERB --help`
  /// Declares arguments and options. The action owns the variables into which they are parsed.
  Action (*declare)(Arguments& arguments);
};

/// All verbs in the order of the help.
std::span<const Verb> verbs();

Action declare_create_slice(Arguments& arguments);
Action declare_delete_slice(Arguments& arguments);
Action declare_set(Arguments& arguments);
Action declare_apply(Arguments& arguments);
Action declare_save(Arguments& arguments);
Action declare_list(Arguments& arguments);
Action declare_show(Arguments& arguments);
Action declare_freeze(Arguments& arguments);
Action declare_thaw(Arguments& arguments);
Action declare_move(Arguments& arguments);
Action declare_run(Arguments& arguments);
Action declare_mount(Arguments& arguments);
Action declare_top(Arguments& arguments);
Action declare_kill(Arguments& arguments);
Action declare_events(Arguments& arguments);
Action declare_usage(Arguments& arguments);
Action declare_explain(Arguments& arguments);
Action declare_advise(Arguments& arguments);
Action declare_forget_kernels(Arguments& arguments);
Action declare_rewrite(Arguments& arguments);
Action declare_cdi(Arguments& arguments);
Action declare_status(Arguments& arguments);
Action declare_doctor(Arguments& arguments);
Action declare_k8s(Arguments& arguments);
Action declare_monitor(Arguments& arguments);
Action declare_simulate(Arguments& arguments);

}  // namespace gpuctl::cli
