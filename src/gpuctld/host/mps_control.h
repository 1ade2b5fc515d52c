// Ends the work of clients of CUDA MPS in good order, through MPS's control program. Killing a client that has work on
// the GPU can take down the MPS server and with it all other clients; `terminate_client` removes the work first. Each
// run of the control program gets one command, on its standard input, and nothing here blocks.
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

#include "base/result.h"
#include "gpuctld/host/child_program.h"
#include "gpuctld/host/helper_question.h"

namespace gpuctl::daemon {

/// MPS is given up after this time without progress.
inline constexpr std::chrono::milliseconds kMpsDeadline{2000};
/// The server has ended the work when `terminate_client` returns. It may go on naming the client for this long.
inline constexpr std::chrono::milliseconds kMpsListedFor{500};
inline constexpr std::chrono::milliseconds kMpsLookEvery{20};

/// The process ids in an answer of the control program, one a line. Other lines are ignored.
std::vector<std::int32_t> pids_in(std::string_view answer);

/// Whether it says that it does nothing for us, since another user started MPS. Its status is 0 all the same.
bool lacks_privileges(std::string_view answer);

/// Starts MPS's control program for one command, given without the end of its line. `done`: as for ChildProgram::start.
Result<std::shared_ptr<ChildProgram>> start_mps_control(boost::asio::io_context& context, const std::string& program,
                                                        const std::string& pipe_directory, const std::string& command,
                                                        ChildProgram::Done done);
/// The same by `gpuctld --mps-control`, which answers at that socket. `done`: has the control program's output.
Result<std::shared_ptr<HelperQuestion>> ask_mps_helper(boost::asio::io_context& context, const std::string& socket,
                                                       const std::string& command, HelperQuestion::Done done);
/// The reason where `asked` gave no answer in that time.
std::string no_mps_answer(const std::string& asked, std::chrono::milliseconds within);

/// Everything is called on the thread that runs the io_context.
class MpsControl {
 public:
  struct Place {
    std::string program;         ///< of the control program
    std::string pipe_directory;  ///< where it finds its daemon
    std::string socket;          ///< where `gpuctld --mps-control` runs it; "": MpsControl does
    std::chrono::milliseconds deadline = kMpsDeadline;
  };
  struct Outcome {
    enum { terminated, not_listed, failed } what;
    std::string reason;  ///< of a failure, one line
  };
  using Done = std::function<void(std::int32_t pid, const Outcome& outcome)>;

  explicit MpsControl(boost::asio::io_context& context) : context_(context), timer_(context) {}
  ~MpsControl() { stop(); }

  /// Terminates the work of these processes, one after the other, after all earlier requests. `done` is called once for
  /// each as soon as its outcome is known, never from within this call.
  void terminate(Place place, std::vector<std::int32_t> pids, Done done);

  /// Ends the running program, or hangs up, and forgets all requests. No `done` is called.
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
  using Heard = ChildProgram::Done;

  void begin();
  void run(const std::string& command, Next next);
  Result<void> start(const std::string& command, Heard heard);
  void list_clients();
  void terminate_next();
  void wait_until_gone(Listed client, std::string said, bool refused, std::chrono::steady_clock::time_point since);
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
  std::function<void()> give_up_;      ///< ends what runs; empty: nothing does
  std::uint64_t generation_ = 0;       ///< counts tasks; a late result belongs to an earlier one
};

}  // namespace gpuctl::daemon
