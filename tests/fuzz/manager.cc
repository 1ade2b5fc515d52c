// The whole daemon but its process: what peers send over the socket, and what they write into their pages.
//
// An input is a row of lines. The first character says what to do; the rest is a message, without the NUL that ends it.
//   0 1       a message from a connection of root
//   2 3       a message from a connection of another user, if this process may be one; else as above
//   x         all connections end, and others take their places
//   w         a word for the page of the first client: its place and its value, two decimal numbers
//   anything  the whole line is bytes from connection 2, without a NUL
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <optional>

#include "fuzz.h"
#include "gpuctld/manager/manager.h"
#include "ipc/framing.h"
#include "ipc/message.h"
#include "ipc/stub_map.h"

using gpuctl::fuzz::require;
using gpuctl::fuzz::require_line;
using namespace gpuctl;
using namespace gpuctl::daemon;

namespace {

constexpr std::size_t kMostLines = 100;
constexpr int kMostTurns = 2000;
constexpr int kUserOfConnection[] = {0, 0, 65534, 65533};
/// Of CPU time for one input, under sanitizers on a slow machine. 100 calls take milliseconds.
constexpr double kMostSeconds = 10;
constexpr long kMostMoreKib = 512l << 10;

/// The clients are this process, which must not be killed for it.
void refuse_signals() {
  constexpr auto kNumber = static_cast<std::uint32_t>(SYS_pidfd_send_signal);
  std::array<sock_filter, 4> code{
      {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kNumber, 0, 1),
       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
  const sock_fprog program{code.size(), code.data()};
  require(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0,
          "signals can be refused");
}

/// The address of a socket that belongs to no directory.
const sockaddr_un& address() {
  static const sockaddr_un made = [] {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = "gpuctl-fuzz-" + std::to_string(getpid());
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    return address;
  }();
  return made;
}

ipc::UniqueFd listener() {
  static const ipc::UniqueFd made = [] {
    ipc::UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    require(bind(fd.get(), reinterpret_cast<const sockaddr*>(&address()), sizeof address()) == 0 &&
                listen(fd.get(), 64) == 0,
            "a socket can be made");
    return fd;
  }();
  return ipc::UniqueFd(dup(made.get()));
}

long peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

/// The other end of a connection. Reads all replies, and takes each page that is made for it.
struct OtherEnd {
  explicit OtherEnd(int uid) : fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    const bool root = geteuid() == 0;
    if (root) (void)syscall(SYS_setresuid, -1, uid, -1);
    require(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address()), sizeof address()) == 0, "it connects");
    if (root) (void)syscall(SYS_setresuid, -1, 0, -1);
  }

  /// False if it is closed.
  bool read() {
    std::array<char, 65536> bytes;
    for (;;) {
      iovec into{bytes.data(), bytes.size()};
      alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxFdsPerReply)> control{};
      msghdr header{};
      header.msg_iov = &into;
      header.msg_iovlen = 1;
      header.msg_control = control.data();
      header.msg_controllen = control.size();
      const ssize_t got = recvmsg(fd.get(), &header, MSG_CMSG_CLOEXEC);
      if (got < 0) return errno == EAGAIN;
      if (got == 0) return false;
      for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) keep(*c);
      require(replies.feed({bytes.data(), static_cast<std::size_t>(got)}).has_value(), "a reply has an end");
      while (const auto message = replies.next()) {
        const auto reply = ipc::decode_reply(*message);
        require(reply.has_value(), "a reply can be read: " + (reply ? "" : reply.error().message));
      }
    }
  }

  void keep(const cmsghdr& control) {
    require((control.cmsg_len - CMSG_LEN(0)) / sizeof(int) == 1, "a page or an eventfd");
    int number = -1;
    std::memcpy(&number, CMSG_DATA(&control), sizeof number);
    ipc::UniqueFd got(number);
    if (fcntl(number, F_GET_SEALS) < 0)
      kick = std::move(got);
    else
      page = std::move(ipc::StubMap::take(number).value());
  }

  void write_word(std::string_view place_and_value) {
    std::size_t place = 0;
    std::uint32_t value = 0;
    const char* end = place_and_value.data() + place_and_value.size();
    const auto [next, error] = std::from_chars(place_and_value.data(), end, place);
    if (error != std::errc() || next == end || !page) return;
    std::from_chars(next + 1, end, value);
    ipc::store(reinterpret_cast<std::uint32_t*>(page.get())[place % (ipc::kStubBytes / 4)], value);
    const std::uint64_t one = 1;
    (void)!::write(kick.get(), &one, sizeof one);
  }

  ipc::UniqueFd fd, kick;
  ipc::StubMap page;
  ipc::MessageSplitter replies{ipc::kMaxMessageBytes};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool refused = (refuse_signals(), true);
  (void)refused;
  static const long kib_at_first = peak_kib();
  const std::clock_t began = std::clock();
  boost::asio::io_context context{1};
  ManagerOptions options;
  options.root_uid = 0;
  auto manager = Manager::create(context, options,
                                 {{0, "GPU", "GPU-0", true, 132, 1u << 30}, {1, "GPU", "GPU-1", true, 8, 1u << 30}},
                                 Config{}, [](const std::string& line) { require_line(line); });
  require(manager.has_value(), "there is a manager");
  (*manager)->serve(listener().release());
  std::array<std::optional<OtherEnd>, 4> peers;
  const auto settle = [&] {
    for (int turn = 0; turn < kMostTurns && context.poll_one() > 0; ++turn) {
    }
    for (auto& peer : peers)
      if (peer && !peer->read()) peer.reset();
  };
  std::string_view rest = fuzz::as_text(data, size);
  for (std::size_t number = 0; number < kMostLines && !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty()) continue;
    if (line[0] == 'x') {
      for (auto& peer : peers) peer.reset();
    } else if (line[0] == 'w') {
      for (auto& peer : peers)
        if (peer && peer->page) {
          peer->write_word(line.substr(1));
          break;
        }
    } else {
      const bool numbered = line[0] >= '0' && line[0] <= '3';
      const auto which = static_cast<std::size_t>(numbered ? line[0] - '0' : 2);
      std::string bytes(numbered ? line.substr(1) : line);
      if (numbered) bytes += '\0';
      if (!peers[which]) peers[which].emplace(kUserOfConnection[which]);
      (void)send(peers[which]->fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }
    settle();
  }
  for (auto& peer : peers) peer.reset();
  settle();
  (*manager)->stop();
  context.run();
  require(static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC < kMostSeconds, "it ends in time");
  require(peak_kib() < kib_at_first + kMostMoreKib, "it takes no more memory");
  return 0;
}
