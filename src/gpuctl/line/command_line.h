// From argv to an exit status: global options, the verb, its help, and errors of one line.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace gpuctl::cli {

/// Parses and carries out one command line. `arguments` is argv without argv[0]. Prints results to `out` and, on an
/// error, one line to `err`; returns the exit status. `run` replaces the process and then does not return.
int run_command_line(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

/// Cuts `arguments` where `gpuctl run [OPTIONS] [--] PROGRAM ...` ends and the program's own command line begins, of
/// which nothing is parsed. Returns what was cut off (without a separating "--"). Other verbs: nothing.
std::vector<std::string> cut_program(std::vector<std::string>& arguments);

}  // namespace gpuctl::cli
