// The end of a process, seen by the event loop.
#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <memory>

#include "gpuctld/protocol/process.h"

namespace gpuctl::daemon {

/// Calls `then` with the owner once the process of that pidfd has ended, unless the descriptor is closed before.
/// `owner`: a pointer, shared or weak, to what has the descriptor. The loop keeps its state of a descriptor for the
/// next one, and may say of this one what was so of another that was closed a moment ago. So the process itself is
/// asked.
template <class Pointer, class Then>
void when_ended(boost::asio::posix::stream_descriptor& pidfd, Pointer owner, Then then) {
  pidfd.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                   [&pidfd, owner, then](boost::system::error_code error) {
                     const auto lives = std::weak_ptr<typename Pointer::element_type>(owner).lock();
                     if (error || !lives || !pidfd.is_open()) return;
                     if (!has_ended(pidfd.native_handle())) return when_ended(pidfd, owner, then);
                     then(lives);
                   });
}

}  // namespace gpuctl::daemon
