// One run of another program, from its start to its end, without blocking: its standard input and its output.
// Everything is called on the thread that runs the io_context.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "ipc/unique_fd.h"

namespace gpuctl::daemon {

/// The first line of what a program printed, cut where it is long, without characters that would make two lines of it.
std::string first_line(const std::string& text);

class ChildProgram : public std::enable_shared_from_this<ChildProgram> {
 public:
  /// The program's standard output and error, at most kMostOutput bytes; an error if its status is not 0.
  using Done = std::function<void(const Result<std::string>& output)>;
  static constexpr std::size_t kMostOutput = 64 * 1024;
  static constexpr std::size_t kMostInput = 4096;

  /// `environment`: NAME=VALUE, in place of variables of the same name. `done` is called once, later, unless kill()
  /// comes first.
  static Result<std::shared_ptr<ChildProgram>> start(boost::asio::io_context& context, const std::string& program,
                                                     const std::vector<std::string>& environment,
                                                     const std::string& input, Done done,
                                                     const std::vector<std::string>& arguments = {});
  ~ChildProgram();

  /// Ends the program and its children by SIGKILL.
  void kill();

 private:
  ChildProgram(boost::asio::io_context& context, std::string program, pid_t pid, ipc::UniqueFd pidfd,
               ipc::UniqueFd output, Done done);
  void wait_for_output();
  void wait_for_exit();
  bool read();
  void reap();

  std::string program_;
  pid_t pid_;  ///< 0: reaped
  boost::asio::posix::stream_descriptor exit_, output_;
  std::string text_;
  Done done_;
};

}  // namespace gpuctl::daemon
