// Which connection was promised how many hardware queues (QueueLedger), and when they come back.
//
// A program asks before it initialises CUDA, and attaches with the same connection. So a promise is that connection's:
// it lasts as long, attached or not, and a connection that asks and then says nothing is closed soon (Patience). If the
// connection ends with its process, MPS may still be at work for that process, so the queues come back when the process
// has ended.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>

#include "gpuctld/budgets/queue_ledger.h"
#include "gpuctld/protocol/session.h"

namespace gpuctl::daemon {

/// How many processes are watched that end after their connections. They bound the descriptors that this takes. The
/// queues of the oldest come back first.
inline constexpr std::size_t kMaxEnding = 256;

/// Everything is called on the thread that runs the io_context.
class PromisedQueues {
 public:
  explicit PromisedQueues(boost::asio::io_context& context) : context_(context) {}

  /// QueueLedger::promise(). `exempt`: the session's user has no budget.
  std::uint32_t promise(Session& session, bool exempt, bool needs_more);
  /// QueueLedger::note().
  void note(Session& session, bool exempt, std::uint32_t queues);
  bool has(Session& session) const { return ids_.contains(&session); }

  /// The session is about to be closed; its socket is still open.
  void leave(Session& session);

  /// The daemon ends: no process is watched any more.
  void stop() {
    stopped_ = true;
    ending_.clear();
  }

  const QueueLedger& ledger() const { return ledger_; }

 private:
  struct Ending {
    Ending(std::uint64_t promise, boost::asio::posix::stream_descriptor pidfd) : id(promise), exit(std::move(pidfd)) {}
    std::uint64_t id;
    boost::asio::posix::stream_descriptor exit;  ///< pidfd
  };
  QueueLedger::Program program(Session& session, bool exempt);
  void give_back_when_ended(std::uint64_t id, ipc::UniqueFd pidfd);

  boost::asio::io_context& context_;
  QueueLedger ledger_;
  std::map<Session*, std::uint64_t> ids_;
  std::uint64_t next_id_ = 1;
  std::list<std::shared_ptr<Ending>> ending_;  ///< the oldest first
  bool stopped_ = false;
};

}  // namespace gpuctl::daemon
