// Clients that are no longer attached, until their processes have ended.
//
// A program that loses its connection keeps its last grant, so its page stays as it is. Once the process has ended, or
// has become another program (exec), nothing raises that grant any more, and workers without SMs would wait without
// end. Under MPS the work of such a process stays on the GPU until it is complete, and the server takes no new programs
// while it waits. So when the process has ended its grants are opened, and what is left of it runs to its end. A
// program that is about to end or to become another one says so in its page (Stub::leaving).
//
// Once the process has ended the daemon unmaps the page. Its memory counts as the client's, whoever still has the file.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstddef>
#include <list>
#include <memory>
#include <utility>

#include "gpuctld/clients/client.h"
#include "ipc/unique_fd.h"

namespace gpuctl::daemon {

/// How many pages are kept of one process, of one user, and of all. They bound what programs that attach again and
/// again cost. The oldest page of the process or the user is let go, or of all, with its grants open: kernels that were
/// launched before the process attached again may still read there.
inline constexpr std::size_t kMaxDepartedOfProcess = 16, kMaxDepartedOfUser = 128, kMaxDeparted = 512;

class Departed {
 public:
  explicit Departed(boost::asio::io_context& context) : context_(context) {}

  /// Takes over a client whose connection has ended. Opens its grants at once if its process has ended, is about to end
  /// or says that it leaves, else when it ends. `pidfd`: of the process. Without one its end cannot be seen; while it
  /// lives its grants stay as they are.
  void keep(Client client, ipc::UniqueFd pidfd);

  /// Forgets all clients and watches no process any more. Their grants stay as they are.
  void stop() { waiting_.clear(); }

  std::size_t waiting() const { return waiting_.size(); }

 private:
  struct Entry {
    Entry(LeftPage left, boost::asio::posix::stream_descriptor pidfd) : page(std::move(left)), exit(std::move(pidfd)) {}
    LeftPage page;
    boost::asio::posix::stream_descriptor exit;  ///< pidfd
  };
  void make_room_for(const LeftPage& page);

  boost::asio::io_context& context_;
  std::list<std::shared_ptr<Entry>> waiting_;  ///< the oldest first
};

}  // namespace gpuctl::daemon
