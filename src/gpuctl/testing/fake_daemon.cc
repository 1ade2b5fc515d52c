#include "gpuctl/testing/fake_daemon.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "ipc/framing.h"

namespace gpuctl::cli {

FakeDaemon::FakeDaemon() {
  char name[] = "/tmp/gpuctl-test-XXXXXX";
  if (::mkdtemp(name) == nullptr) throw std::runtime_error("mkdtemp");
  directory_ = name;
  socket_ = directory_ + "/io.gpuctl";
  listener_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(listener_.get(), 8) != 0)
    throw std::runtime_error("bind");
  thread_ = std::thread([this] { serve(); });
}

FakeDaemon::~FakeDaemon() {
  stop_ = true;
  thread_.join();
  std::filesystem::remove_all(directory_);
}

void FakeDaemon::on(const std::string& member, Answer answer) {
  const std::lock_guard lock(mutex_);
  answers_[member] = std::move(answer);
}

void FakeDaemon::on(const std::string& member, boost::json::object parameters) {
  on(member, [parameters](const boost::json::object&) { return std::vector{ipc::Reply{parameters, false, ""}}; });
}

void FakeDaemon::refuse(const std::string& member, const std::string& error, boost::json::object parameters) {
  on(member, [=](const boost::json::object&) {
    return std::vector{ipc::Reply{parameters, false, "io.gpuctl." + error}};
  });
}

void FakeDaemon::answer_with_bytes(std::string bytes) {
  const std::lock_guard lock(mutex_);
  bytes_ = std::move(bytes);
}

std::vector<ipc::Call> FakeDaemon::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

std::string FakeDaemon::asked(const std::string& member) const {
  std::string text;
  for (const ipc::Call& call : calls())
    if (call.member() == member) text = ipc::to_text(call.parameters);
  return text;
}

void FakeDaemon::serve() {
  while (!stop_) {
    pollfd entry{listener_.get(), POLLIN, 0};
    if (::poll(&entry, 1, 10) <= 0) continue;
    const ipc::UniqueFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    serve_connection(connection.get());
  }
}

void FakeDaemon::serve_connection(int fd) {
  ipc::MessageSplitter splitter;
  char bytes[4096];
  while (!stop_) {
    pollfd entry{fd, POLLIN, 0};
    if (::poll(&entry, 1, 10) <= 0) continue;
    const ssize_t n = ::read(fd, bytes, sizeof(bytes));
    if (n <= 0 || !splitter.feed({bytes, static_cast<std::size_t>(n)})) return;
    while (const auto message = splitter.next()) {
      const Result<ipc::Call> call = ipc::decode_call(*message);
      if (!call) return;
      std::string answer;
      {
        const std::lock_guard lock(mutex_);
        calls_.push_back(*call);
        const auto known = answers_.find(std::string(call->member()));
        if (!bytes_.empty()) {
          answer = bytes_;
        } else if (known == answers_.end()) {
          answer = encode(ipc::Reply{{{"method", call->method}}, false, "org.varlink.service.MethodNotFound"});
        } else {
          for (const ipc::Reply& reply : known->second(call->parameters)) answer += encode(reply);
        }
      }
      if (::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) return;
    }
  }
}

}  // namespace gpuctl::cli
