// Which files programs run, where a slice takes programs in by that. Only who may look into all processes sees it, and
// the daemon may not. So `gpuctld --exe` looks, as root behind a socket of the service manager. It takes numbers of
// processes from the daemon, and tells it what each of them runs and nothing else.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "gpuctld/protocol/process.h"

namespace gpuctl::daemon {

/// Processes that one question may name.
inline constexpr std::size_t kMostExes = 64;

/// "START PATH" of the process, as a line behind its number, for each of "PID PID ...", and a line "ok" at the end. One
/// of which nothing is known has no line. What is not a list of at most kMostExes numbers has the answer "".
std::string exes_answer(std::string_view asked, const std::string& proc = kProc);
/// The file that this very process runs, as the answer says; "": it does not say, or was cut off.
std::string exe_in_answer(std::string_view answer, const ProcessIdentity& process);

/// gpuctld --exe: reads a line from `in`, and writes the answer to `out`. Returns the exit status of the program.
int answer_exes(int in, int out);

/// Asks for several programs at once, and one question after the other: each is a process that the service manager
/// starts. Everything is called on the thread that runs the io_context.
class ExeSearch {
 public:
  /// "": it is not known what the program runs.
  using Found = std::function<void(const std::string& exe)>;

  struct Pace {
    std::chrono::milliseconds pause{50};        ///< from an answer to the next question
    std::chrono::milliseconds patience{1'000};  ///< a program waits no longer than 2 s for the daemon at its start
  };

  /// `socket`: where `gpuctld --exe` answers; "": it is looked here, which finds what the daemon's user may see.
  ExeSearch(boost::asio::io_context& context, std::string socket, Pace pace);
  /// Calls `found` once, later, unless forget() comes first. `who`: each waits for one program.
  void find(const void* who, const ProcessIdentity& process, Found found);
  void forget(const void* who);
  /// Nothing is called any more.
  void stop();
  /// Whether the latest question had an answer.
  bool sees() const { return sees_; }

 private:
  struct Waiting {
    ProcessIdentity process;
    Found found;
    bool asked = false;
  };
  void ask();
  void send();
  void read();
  void hear(bool whole);

  std::string socket_;
  Pace pace_;
  boost::asio::local::stream_protocol::socket connection_;
  boost::asio::steady_timer timer_;
  std::map<const void*, Waiting> waiting_;
  std::string text_;   ///< the question, then the answer
  bool asks_ = false;  ///< a question is under way, or the pause after it
  bool sees_ = true;
  bool stopped_ = false;
};

}  // namespace gpuctl::daemon
