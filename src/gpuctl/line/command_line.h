// From argv to an exit status: global options, the verb, its help, and the one line an error is.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace gpuctl::cli {

/// Understands and carries out one command line. `arguments` is argv without argv[0]. Prints results to `out`, at most
/// one line about an error to `err`, and returns the exit status. `run` replaces the process and then does not return.
int run_command_line(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

/// Where `gpuctl run [OPTIONS] [--] PROGRAM ...` ends and the program's own command line begins: nothing from there on
/// is looked at. `arguments` is cut, what was cut off is returned (without a separating "--"). Other verbs: nothing.
std::vector<std::string> cut_program(std::vector<std::string>& arguments);

}  // namespace gpuctl::cli
