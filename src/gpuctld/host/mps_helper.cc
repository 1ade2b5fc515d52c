#include "gpuctld/host/mps_helper.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/one_line.h"
#include "base/read_write.h"
#include "gpuctld/host/mps.h"
#include "gpuctld/host/mps_control.h"
#include "gpuctld/host/mps_start.h"

namespace gpuctl::daemon {

namespace {

/// The longest command has 38 characters, and up to 18 before it.
constexpr std::size_t kMostCommand = 64;
constexpr std::string_view kDone = "ok\n", kFailed = "failed: ";

struct MpsCommand {
  std::string_view verb;
  int pids;
};
constexpr std::array<MpsCommand, 3> kMpsCommands{
    {{"get_server_list", 0}, {"get_client_list", 1}, {"terminate_client", 2}}};

/// Takes " PID" from the front of the text.
bool take_pid(std::string_view& text) {
  if (!text.starts_with(' ')) return false;
  std::int32_t pid = 0;
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), pid);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc{} && pid > 0;
}

/// Takes "@NAME " from the front of the text; "": it is not there.
std::string_view take_name(std::string_view& text) {
  const std::size_t space = text.find(' ');
  if (!text.starts_with('@') || space == text.npos || !is_mps_name(text.substr(1, space - 1))) return "";
  const std::string_view name = text.substr(1, space - 1);
  text.remove_prefix(space + 1);
  return name;
}

Result<std::string> run_mps_command(const std::string& text) {
  if (const auto allowed = check_mps_command(text); !allowed) return allowed.error();
  std::string_view rest = text;
  const std::string_view name = take_name(rest);
  const std::string command(rest), program = mps_control_program();
  const std::string directory =
      name.empty() ? mps_pipe_directory() : std::string(kServiceMps) + "/" + std::string(name);
  // In /tmp any user can make pipes that look like those of MPS.
  if (!mps_process_in(directory, "/proc", ::geteuid()))
    return fail(directory + ": no MPS serves there that root or this process's user started");
  std::optional<Result<std::string>> heard;
  boost::asio::io_context context(1);
  const auto child = start_mps_control(context, program, directory, command,
                                       [&heard](const Result<std::string>& output) { heard = output; });
  if (!child) return child.error();
  context.run_for(kMpsDeadline);
  if (heard) return std::move(*heard);
  (*child)->kill();
  return fail(no_mps_answer(program, kMpsDeadline));
}

}  // namespace

std::string read_mps_command(int in) {
  std::string text;
  read_pieces(in, [&text](std::string_view piece) {
    text += piece;
    return text.size() <= kMostCommand && text.find('\n') == text.npos;
  });
  return text.substr(0, std::min(text.find('\n'), kMostCommand));
}

Result<void> check_mps_command(std::string_view whole) {
  std::string_view command = whole;
  if (!take_name(command).empty() && command == "quit") return {};
  for (const auto& [verb, pids] : kMpsCommands) {
    std::string_view rest = command;
    if (!rest.starts_with(verb)) continue;
    rest.remove_prefix(verb.size());
    bool right = true;
    for (int i = 0; i < pids && right; ++i) right = take_pid(rest);
    if (right && rest.empty()) return {};
  }
  return fail(
      "'" + one_line(std::string(whole)) +
      "' is no command for MPS that gpuctld gives: get_server_list, get_client_list PID, terminate_client PID PID, "
      "each behind @NAME too, and @NAME quit");
}

std::string to_mps_answer(const Result<std::string>& output) {
  if (!output) return std::string(kFailed) + one_line(output.error().message) + "\n";
  const bool whole_lines = output->empty() || output->ends_with('\n');
  return *output + (whole_lines ? "" : "\n") + std::string(kDone);
}

Result<std::string> from_mps_answer(std::string text) {
  if (text == kDone || text.ends_with("\n" + std::string(kDone))) {
    text.resize(text.size() - kDone.size());
    return text;
  }
  if (!text.starts_with(kFailed) || !text.ends_with('\n'))
    return fail("the answer about MPS is missing or was cut off");
  return fail(one_line(text.substr(kFailed.size(), text.size() - kFailed.size() - 1)));
}

int answer_mps_command(int in, int out) {
  const Result<std::string> output = run_mps_command(read_mps_command(in));
  (void)write_all(out, to_mps_answer(output));
  return output ? 0 : 1;
}

}  // namespace gpuctl::daemon
