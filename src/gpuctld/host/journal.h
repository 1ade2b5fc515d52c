// The journal of systemd: lines with fields, such as MESSAGE_ID. By its socket, without a library. The daemon waits for
// no reader: what the journal does not take at once is for the log.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ipc/unique_fd.h"

namespace gpuctl::daemon {

class Journal {
 public:
  /// Where systemd has connected this descriptor with the journal: `stream` is $JOURNAL_STREAM, "device:inode".
  static std::optional<Journal> of(int fd, const char* stream = nullptr,
                                   const std::string& socket = "/run/systemd/journal/socket");

  /// False: it was not taken. Neither the line nor a value has more than one line.
  bool write(const std::string& line, const std::vector<std::pair<std::string_view, std::string>>& fields) const;

 private:
  explicit Journal(ipc::UniqueFd socket) : socket_(std::move(socket)) {}
  ipc::UniqueFd socket_;
};

}  // namespace gpuctl::daemon
