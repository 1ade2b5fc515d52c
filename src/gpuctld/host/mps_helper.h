// gpuctld --mps-control: gives one command to MPS's control program, for a daemon whose user MPS does not obey. MPS
// lets only root, and the user who started it, terminate clients. This program runs as root then, and the daemon does
// not.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace gpuctl::daemon {

/// An error, one line, unless the command is `get_server_list`, `get_client_list PID` or `terminate_client PID PID`,
/// with one space between two words. A PID is a positive decimal number. "@NAME " before it means an MPS that `gpuctld
/// --mps-start` started (mps_start.h), which can also be told `quit`.
Result<void> check_mps_command(std::string_view command);

/// The first line, without its end. It is cut where it is longer than any command.
std::string read_mps_command(int in);

/// What the program writes: the control program's output and a line "ok", or a line "failed: " with the reason.
std::string to_mps_answer(const Result<std::string>& output);

/// The reverse. "ok" comes last, so an answer that was cut off is an error.
Result<std::string> from_mps_answer(std::string text);

/// Reads a line from the descriptor `in`, has the control program do this command, and writes the answer to `out`.
/// Returns the exit status of the program: 1 after a failure. Waits for the line without end, and for the control
/// program as long as kMpsDeadline. The caller keeps both descriptors. Uses no other thread, and no loop of the
/// caller's.
int answer_mps_command(int in, int out);

}  // namespace gpuctl::daemon
