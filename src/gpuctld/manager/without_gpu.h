// Answers in place of the manager while there is no GPU to manage. Nothing is attached, so no program believes that it
// has SMs, and no slice is changed, so none is lost.
#pragma once

#include <boost/asio/io_context.hpp>
#include <string>
#include <vector>

#include "gpuctld/protocol/varlink_server.h"

namespace gpuctl::daemon {

/// One thread runs the io_context and calls everything here.
class WithoutGpu {
 public:
  /// Serves `listener`, which it then owns. `why`: for the answers.
  WithoutGpu(boost::asio::io_context& context, int listener, std::uint32_t root_uid, std::string why);

  void set_reason(std::string why) { why_ = std::move(why); }

  /// Closes the listener and every connection. This or hand_over() must be called before the object is destroyed.
  void stop() { server_.stop(); }
  /// Closes the listener; another server goes on with the connections.
  std::vector<HandedOver> hand_over() { return server_.hand_over(); }

 private:
  Answer call(const ipc::Call& call) const;

  std::string why_;
  UserBudgets budgets_;
  VarlinkServer server_;
  std::uint64_t started_ns_;
};

}  // namespace gpuctl::daemon
