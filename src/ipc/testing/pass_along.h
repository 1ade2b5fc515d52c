// For tests: sends bytes with a descriptor passed along, as any peer may.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstring>
#include <string_view>

namespace gpuctl::ipc {

/// What sendmsg() says.
inline ssize_t pass_along(int connection, std::string_view bytes, int fd, int flags = 0) {
  iovec data{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fd)> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return ::sendmsg(connection, &message, MSG_NOSIGNAL | flags);
}

}  // namespace gpuctl::ipc
