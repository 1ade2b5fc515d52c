#include "gpuctld/ends/departed.h"

#include <algorithm>
#include <utility>

#include "gpuctld/protocol/peer.h"

namespace gpuctl::daemon {

using boost::asio::posix::stream_descriptor;
using boost::system::error_code;

void Departed::keep(Client client, ipc::UniqueFd pidfd) {
  if (!pidfd) return;
  const std::int32_t pid = client.identity().pid;
  if (client.leaving() || process_ends(pidfd.get(), pid)) return client.open_grants();
  bound(pid);
  const auto entry = std::make_shared<Entry>(std::move(client), stream_descriptor(context_, pidfd.release()));
  waiting_.push_back(entry);
  entry->exit.async_wait(stream_descriptor::wait_read, [this, watched = std::weak_ptr(entry)](error_code error) {
    const auto ended = watched.lock();
    if (error || !ended) return;  // no longer waited for
    ended->client.open_grants();
    waiting_.remove(ended);
  });
}

/// Makes room for one more entry.
void Departed::bound(std::int32_t pid) {
  const auto is_of_process = [pid](const auto& entry) { return entry->client.identity().pid == pid; };
  if (std::count_if(waiting_.begin(), waiting_.end(), is_of_process) >=
      static_cast<std::ptrdiff_t>(kMaxDepartedPerProcess))
    waiting_.erase(std::find_if(waiting_.begin(), waiting_.end(), is_of_process));
  if (waiting_.size() >= kMaxDeparted) waiting_.pop_front();
}

}  // namespace gpuctl::daemon
