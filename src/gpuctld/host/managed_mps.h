// One MPS that gpuctld starts, in a pipe directory of its own, with libgpuslice inside, so that the server's turns can
// be set. It is started for the first program that is to join it, again if it ends, later each time, and ended when no
// process has used it for a while. It outlives the daemon, as the programs in it do; the next daemon takes it over.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpuctld/host/mps.h"

namespace gpuctl::daemon {

/// An MPS that nobody has used for so long is ended.
inline constexpr std::chrono::seconds kMpsIdle{60};
/// NVIDIA's control program does what it is asked in this time, or is given up.
inline constexpr std::chrono::seconds kMpsPatience{10};
/// Between two tries to start it: twice as long each time, up to the latter. One that has lived for so long starts
/// anew.
inline constexpr std::chrono::milliseconds kMpsFirstPause{1000}, kMpsLongestPause{60'000};

/// Everything is called on the thread that runs the io_context.
class ManagedMps {
 public:
  using Log = std::function<void(const std::string& line)>;
  struct Place {
    std::string directory;       ///< its pipe directory, which is made
    std::string socket;          ///< where the library inside finds the daemon
    std::string start_socket;    ///< where `gpuctld --mps-start` starts it; "": this process does
    std::string control_socket;  ///< where `gpuctld --mps-control` gives it commands; "": this process does
    std::string whose;           ///< for people: " for slice ls"; "": of all that are not isolated
  };

  /// Takes over an MPS that runs there.
  ManagedMps(boost::asio::io_context& context, Place place, Log log, std::chrono::milliseconds idle = kMpsIdle,
             std::chrono::milliseconds patience = kMpsPatience);

  const std::string& directory() const { return place_.directory; }
  /// Whether it runs.
  bool active();

  /// It does not run, and nobody waits for it.
  bool rests() { return !starts_ && !asks_ && waiting_.empty() && answered_.empty() && !active(); }

  /// A program of this user would join it. If it is being started, or is started now, `then` is called once that has
  /// ended, well or not, unless forget() comes first, and true is returned. False: it runs, or cannot be started now.
  /// Of many who wait each is called in a turn of the loop of its own: what it does may take time.
  bool wait(const void* who, std::function<void()> then);
  void forget(const void* who) { waiting_.erase(who), answered_.erase(who); }

  /// Whether it runs and serves this user: an MPS serves one user at a time, and lets others wait, unless its control
  /// daemon was told to serve several. Then it is the user's, until nobody uses it. One that was taken over is nobody's
  /// until it is known whose programs are in it. It is not ended before the program can have come to it.
  bool admits(std::uint32_t uid);

  /// Whose programs of slices are in it; none: nobody's.
  void note_use(std::optional<std::uint32_t> user);

  /// Why it could not be started the last time; "": it could.
  const std::string& trouble() const { return trouble_; }

  /// The daemon ends.
  void stop();

 private:
  void start();
  void after(boost::asio::steady_timer& timer, std::chrono::milliseconds wait, std::function<void()> then);
  void await(std::chrono::steady_clock::time_point until);
  void started(const Result<std::string>& output);
  void serve();
  void look();
  void answer();
  void answer_next();
  void put_off();
  void be_patient();
  void give_up();
  void keep();
  void ask(const std::string& command, std::function<void(const std::string& output)> next);
  void end_unless_used();
  void ask_clients(std::vector<std::int32_t> servers);

  boost::asio::io_context& context_;
  boost::asio::steady_timer timer_;      ///< while it runs
  boost::asio::steady_timer impatient_;  ///< while something is asked of it
  Place place_;
  Log log_;
  std::chrono::milliseconds idle_, patience_;
  MpsWatch watch_;
  std::function<void()> starts_, asks_;                              ///< end what is under way; empty: nothing is
  std::map<const void*, std::function<void()>> waiting_, answered_;  ///< the latter: are called, one after the other
  std::chrono::milliseconds pause_{0};
  std::chrono::steady_clock::time_point next_try_{}, began_{}, used_{};
  std::optional<std::uint32_t> user_;
  std::uint32_t owner_ = 0;  ///< of its control daemon
  std::string trouble_;
  /// A timer that has expired calls back all the same when it is cancelled then, or gone with this object.
  std::shared_ptr<const bool> lives_ = std::make_shared<bool>(true);
  bool several_users_ = false, one_user_ = false, in_use_ = false, quits_ = false, stopped_ = false;
  bool unknown_user_ = false;  ///< an earlier daemon admitted somebody, or nobody
};

}  // namespace gpuctl::daemon
