// For tests: a daemon on a socket of its own. It answers each method as the test says and writes down its calls. One
// connection at a time, in a thread.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ipc/message.h"
#include "ipc/unique_fd.h"

namespace gpuctl::cli {

class FakeDaemon {
 public:
  /// All replies to one call; more than one for a call with `more`.
  using Answer = std::function<std::vector<ipc::Reply>(const boost::json::object& parameters)>;

  FakeDaemon();
  ~FakeDaemon();

  const std::string& socket() const { return socket_; }
  void on(const std::string& member, Answer answer);
  void on(const std::string& member, boost::json::object parameters);
  void refuse(const std::string& member, const std::string& error, boost::json::object parameters);
  /// Sends these bytes instead of any reply.
  void answer_with_bytes(std::string bytes);

  std::vector<ipc::Call> calls() const;
  /// Parameters of the latest call of `member`, as JSON text; "" if there was none.
  std::string asked(const std::string& member) const;

 private:
  void serve();
  void serve_connection(int fd);

  std::string directory_;
  std::string socket_;
  ipc::UniqueFd listener_;
  mutable std::mutex mutex_;
  std::map<std::string, Answer> answers_;
  std::string bytes_;
  std::vector<ipc::Call> calls_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace gpuctl::cli
