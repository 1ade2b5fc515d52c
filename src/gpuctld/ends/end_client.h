// Ends a program without harm to others: first its work on the GPU, if MPS runs, then a signal, then SIGKILL. The next
// step is a pure decision; the rest is a pidfd and a timer.
#pragma once

#include <signal.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "gpuctld/host/mps_control.h"
#include "gpuctld/protocol/process.h"
#include "ipc/types.h"
#include "ipc/unique_fd.h"

namespace gpuctl::daemon {

/// How long a program may take to end after its signal; then it is killed.
inline constexpr std::chrono::milliseconds kEndTimeout{2000}, kLongestEndTimeout{60'000};
/// A process that still exists this long after SIGKILL waits in the kernel, perhaps for the GPU. It is not waited for.
inline constexpr std::chrono::milliseconds kKilledWithin{2000};

struct EndOrder {
  int signal = SIGTERM;
  std::chrono::milliseconds timeout = kEndTimeout;
};

/// What happened so far.
struct EndProgress {
  enum class Mps { not_active, to_ask, asked, answered } mps = Mps::not_active;
  int sent = 0;                                 ///< the latest signal; 0: none
  std::chrono::steady_clock::duration since{};  ///< since `sent` was sent
  bool refused = false;                         ///< a signal could not be sent
  bool ended = false;
};

enum class EndStep { ask_mps, send_signal, send_kill, wait, finish };

EndStep next_step(const EndOrder& order, const EndProgress& progress);

/// How long EndStep::wait lasts at most, from the latest signal on.
std::chrono::milliseconds patience(const EndOrder& order, int sent);

/// "SIGTERM"; "signal 99" for a signal without a name. The reverse takes the names of signals that end a program, with
/// or without "SIG", in upper or lower case; it is empty for others.
std::string signal_name(int signal);
std::optional<int> ending_signal(std::string_view name);
inline constexpr char kEndingSignals[] = "TERM, HUP, INT, QUIT, ABRT, USR1, USR2 or KILL";

/// One program that is being ended. Keeps itself alive until that is done.
class Ending : public std::enable_shared_from_this<Ending> {
 public:
  using Log = std::function<void(const std::string&)>;
  using Done = std::function<void(const ipc::EndedClient&)>;

  /// Asked before each signal.
  using Check = std::function<MaySignal()>;

  /// `who` has everything except the outcome. `done` is called once, later, unless cancel() comes first.
  static std::shared_ptr<Ending> create(boost::asio::io_context& context, ipc::UniqueFd pidfd, ipc::EndedClient who,
                                        EndOrder order, Check check, Log log, Done done);

  /// Called once, after SIGKILL was sent: from then on the program itself does nothing.
  void on_killed(std::function<void()> killed) { killed_ = std::move(killed); }

  /// Begins. If MPS is active, the caller must tell mps_answered() what became of the program's work.
  void start(bool mps_active);
  void mps_answered(const MpsControl::Outcome& outcome);
  /// Somebody wants its end once more: the signal is sent too, and its time is over no later than this order says.
  void again(EndOrder order);

  /// Stops before the end.
  void cancel();

  bool over() const { return !done_; }
  std::int32_t pid() const { return static_cast<std::int32_t>(result_.pid); }

 private:
  Ending(boost::asio::io_context& context, ipc::EndedClient who, EndOrder order, Check check, Log log, Done done)
      : exit_(context),
        timer_(context),
        result_(std::move(who)),
        order_(order),
        check_(std::move(check)),
        log_(std::move(log)),
        done_(std::move(done)) {}
  void step();
  void send(int signal);
  void finish();
  std::string who() const;

  boost::asio::posix::stream_descriptor exit_;  ///< pidfd
  boost::asio::steady_timer timer_;
  ipc::EndedClient result_;
  EndOrder order_;
  EndProgress progress_;
  std::chrono::steady_clock::time_point sent_at_;
  Check check_;
  Log log_;
  Done done_;
  std::function<void()> killed_;
};

}  // namespace gpuctl::daemon
