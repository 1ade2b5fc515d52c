// How programs end: those that somebody ends in good order, the faults that they report, and the sums that are kept.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpuctld/clients/client.h"
#include "gpuctld/ends/end_client.h"
#include "gpuctld/ends/ended.h"
#include "gpuctld/ends/faults.h"
#include "gpuctld/host/mps_control.h"
#include "ipc/types.h"
#include "ipc/unique_fd.h"

namespace gpuctl::daemon {

/// Processes that are ended at a time because one user wants it, but for those that one more call adds. Each takes a
/// descriptor, perhaps for a minute.
inline constexpr std::size_t kMaxEndingsOfUser = 256;

/// Everything is called on the thread that runs the io_context.
class Ends {
 public:
  /// A line that this user caused.
  using Log = std::function<void(std::uint32_t uid, const std::string&)>;
  using AllEnded = std::function<void(std::vector<ipc::EndedClient>)>;

  struct Program {
    ClientIdentity identity;
    std::string slice;           ///< "": it is in none
    ipc::UniqueFd pidfd;         ///< empty: its end cannot be seen, so nothing is sent to it
    std::string pipe_directory;  ///< of the MPS that it may be in; "": of none
  };

  /// `mps_socket`: MpsControl::Place::socket. `killed` is called after SIGKILL was sent to a process. Work that has to
  /// complete before its program can end would wait for a grant, and so would the program's end.
  Ends(boost::asio::io_context& context, std::string mps_socket, Log log, std::function<void(std::int32_t pid)> killed);

  /// Ends different processes, because this user wants it. `done` is called once, later, when all of them have ended or
  /// are given up, unless what is returned is dropped before: their ends are waited for all the same. A process that is
  /// being ended already is so once, whoever asks.
  [[nodiscard]] std::shared_ptr<void> end(std::vector<Program> programs, EndOrder order, std::uint32_t for_uid,
                                          AllEnded done);
  bool is_ending(std::int32_t pid) const { return endings_.contains(pid); }
  /// How many processes are being ended because this user wants it.
  std::size_t under_way(std::uint32_t for_uid) const;

  Faults& faults() { return faults_; }
  const Faults& faults() const { return faults_; }
  Ended& ended() { return ended_; }
  const Ended& ended() const { return ended_; }

  /// Gives up what is under way. No `done` is called.
  void stop();

 private:
  struct Asked;
  struct UnderWay {
    std::shared_ptr<Ending> ending;
    std::uint32_t for_uid;  ///< who wanted it first
    std::vector<std::weak_ptr<Asked>> asked;
  };
  void ended(const ipc::EndedClient& result);

  boost::asio::io_context& context_;
  std::string mps_socket_;
  Log log_;
  std::function<void(std::int32_t pid)> killed_;
  MpsControl mps_;
  std::map<std::int32_t, UnderWay> endings_;  ///< by process
  Faults faults_;
  Ended ended_;
};

}  // namespace gpuctl::daemon
