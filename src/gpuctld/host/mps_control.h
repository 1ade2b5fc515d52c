// Ends the work of clients of CUDA MPS in good order, through MPS's control program. A client that is killed while it
// has work on the GPU can take the MPS server, and so all its other clients, with it; `terminate_client` takes the work
// away first. The program is told one command a run, on its standard input, and nothing here waits for it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpuctld/host/child_program.h"

namespace gpuctl::daemon {

/// Without progress for so long, MPS is given up.
inline constexpr std::chrono::milliseconds kMpsDeadline{2000};
/// The server has ended the work when `terminate_client` returns; so long it may go on naming the client.
inline constexpr std::chrono::milliseconds kMpsListedFor{500};
inline constexpr std::chrono::milliseconds kMpsLookEvery{20};

/// The process ids in an answer of the control program, one a line. Other lines are passed over.
std::vector<std::int32_t> pids_in(std::string_view answer);

class MpsControl {
 public:
  struct Place {
    std::string program;         ///< of the control program
    std::string pipe_directory;  ///< where it finds its daemon
    std::chrono::milliseconds deadline = kMpsDeadline;
  };
  struct Outcome {
    enum { terminated, not_listed, failed } what;
    std::string reason;  ///< of a failure, one line
  };
  using Done = std::function<void(std::int32_t pid, const Outcome& outcome)>;

  explicit MpsControl(boost::asio::io_context& context) : context_(context), timer_(context) {}
  ~MpsControl() { stop(); }

  /// Terminates the work of these processes, one after the other, and after what was asked for before. `done` is called
  /// once for each, as soon as it is known, never from here.
  void terminate(Place place, std::vector<std::int32_t> pids, Done done);

  /// Ends the program that runs, and forgets what was asked for. Nobody is told.
  void stop();

 private:
  struct Task {
    Place place;
    std::vector<std::int32_t> pids;  ///< not answered yet
    Done done;
  };
  struct Listed {
    std::int32_t server, client;
  };
  using Next = std::function<void(const std::string& output)>;

  void begin();
  void run(const std::string& command, Next next);
  void list_clients();
  void terminate_next();
  void wait_until_gone(Listed client, std::string said, std::chrono::steady_clock::time_point since);
  void answer(std::int32_t pid, Outcome outcome);
  void fail_all(const std::string& reason);
  void restart_deadline();
  void end_task();

  boost::asio::io_context& context_;
  boost::asio::steady_timer timer_;  ///< the deadline
  std::optional<boost::asio::steady_timer> pause_;
  std::deque<Task> tasks_;  ///< the first is under way, if begun_
  bool begun_ = false;
  std::vector<std::int32_t> servers_;  ///< not asked yet
  std::deque<Listed> listed_;          ///< to be terminated
  std::shared_ptr<ChildProgram> child_;
  std::uint64_t generation_ = 0;  ///< counts tasks: what is late belongs to an earlier one
};

}  // namespace gpuctl::daemon
