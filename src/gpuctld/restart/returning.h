// Programs that were attached to an earlier daemon, which crashed or was replaced, and are not attached to this one
// yet.
//
// Each of them goes on under the grant that it had, and nobody can take that back before it attaches again. So clients
// stand in for them in the scheduler: they hold what the file of the earlier daemon says (holdings.h), and give
// nothing back. A stand-in goes when its process attaches or ends, and at the end of a grace period: a program that has
// not come back by then is stopped, or does not want to.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "gpuctld/restart/holdings.h"
#include "gpuctld/scheduler/scheduler.h"
#include "ipc/stub.h"

namespace gpuctl::daemon {

using ipc::kGrace;

/// Everything is called on the thread that runs the io_context.
class Returning {
 public:
  using Log = std::function<void(const std::string&)>;

  /// `scheduler` outlives this object. `freed` is called after a stand-in has gone other than by attach().
  Returning(boost::asio::io_context& context, Scheduler& scheduler, Log log, std::function<void()> freed);

  /// Begins the grace period for those of the holdings whose process still lives, and says which slices had work.
  /// Called once.
  void expect(const Holdings& holdings, std::uint64_t now_ns);

  /// Adds the client to the scheduler, in place of what stood in for its process. It inherits what that held.
  Client& attach(Client client, bool time_sliced, std::uint64_t now_ns);

  /// Forgets all; nothing is decided.
  void stop();

  std::size_t expected() const { return waiting_.size(); }

 private:
  struct Entry {
    Entry(Client& stand_in, boost::asio::posix::stream_descriptor pidfd) : client(stand_in), exit(std::move(pidfd)) {}
    Client& client;
    boost::asio::posix::stream_descriptor exit;  ///< pidfd
  };
  void expect(const Holding& holding, std::uint64_t now_ns);
  std::uint32_t left_by_others(int device, const std::vector<Client*>& stand_ins) const;
  void give_up();

  boost::asio::io_context& context_;
  Scheduler& scheduler_;
  Log log_;
  std::function<void()> freed_;
  boost::asio::steady_timer timer_;
  std::list<std::shared_ptr<Entry>> waiting_;
};

}  // namespace gpuctl::daemon
