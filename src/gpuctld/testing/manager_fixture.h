// For tests: a manager in this process, called over a real socket.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/json.hpp>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gpuctld/manager/manager.h"
#include "gpuctld/protocol/listen_socket.h"
#include "ipc/codec.h"
#include "ipc/connection.h"
#include "ipc/stub_map.h"

namespace gpuctl::daemon {

namespace json = boost::json;
using namespace std::chrono_literals;

inline constexpr char kUuid[] = "GPU-00112233-4455-6677-8899-aabbccddeeff";

/// True as soon as `condition` holds; false if it does not within a generous time.
template <class Condition>
bool eventually(Condition condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(5ms);
  }
  return false;
}

class ManagerTest : public testing::Test {
 protected:
  ManagerTest() {
    std::string pattern = testing::TempDir() + "gpuctld-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    socket_ = directory_ + "/s";
    start({});
  }
  ~ManagerTest() override {
    stop();
    std::filesystem::remove_all(directory_);
  }

  void start(ManagerOptions options, Config config = {}, bool software = true) {
    options.kept.state = directory_ + "/state.json";
    options.root_uid = ::geteuid();
    std::vector<Gpu> gpus{{0, "Test GPU", kUuid, software, 132, 1ull << 30}};
    gpus.insert(gpus.end(), more_gpus_.begin(), more_gpus_.end());
    auto manager = Manager::create(context_, std::move(options), std::move(gpus), std::move(config),
                                   [this](const std::string& line) {
                                     const std::lock_guard lock(log_mutex_);
                                     log_.push_back(line);
                                   });
    ASSERT_TRUE(manager) << manager.error().message;
    manager_ = std::move(*manager);
    auto listener = listen_at(socket_, 0600, std::nullopt);
    ASSERT_TRUE(listener) << listener.error().message;
    manager_->serve(listener->release());
    thread_ = std::thread([this] { context_.run(); });
  }

  /// Anew, with a slice of a reserve and one of others, where SMs go to others only when they were left.
  void start_with_patience() {
    stop();
    Config patient;
    patient.daemon.evict_deadline = std::chrono::seconds(60);
    start({}, patient);
    create("ls", {{"reserve", 8}});
    create("batch", {{"weight", 200}});
  }

  void stop() {
    if (!manager_) return;
    boost::asio::post(context_, [this] { manager_->stop(); });
    thread_.join();
    manager_.reset();
    context_.restart();
    ::unlink(socket_.c_str());
  }

  /// As another user, which only root can: this thread alone is that user meanwhile.
  ipc::Connection connect_as(std::uint32_t uid) {
    ::chmod(directory_.c_str(), 0711);
    ::chmod(socket_.c_str(), 0666);
    EXPECT_EQ(::syscall(SYS_setresuid, -1, uid, -1), 0);
    auto connection = ipc::Connection::open(socket_);
    EXPECT_EQ(::syscall(SYS_setresuid, -1, 0, -1), 0);
    return std::move(connection.value());
  }
  ipc::Connection connect() { return std::move(ipc::Connection::open(socket_).value()); }

  static ipc::Reply call(ipc::Connection& connection, const std::string& method, json::object parameters = {}) {
    ipc::Call request{.method = method.find('.') == method.npos ? "io.gpuctl." + method : method,
                      .parameters = std::move(parameters)};
    auto reply = connection.call(request);
    EXPECT_TRUE(reply) << reply.error().message;
    return reply ? *reply : ipc::Reply{};
  }
  ipc::Reply call(const std::string& method, json::object parameters = {}) {
    auto connection = connect();
    return call(connection, method, std::move(parameters));
  }
  void create(const std::string& path, json::object settings) {
    const auto reply = call("CreateSlice", {{"path", path}, {"settings", std::move(settings)}});
    EXPECT_EQ(reply.error, "");
  }
  json::object slice(const std::string& path) {
    return call("GetSlice", {{"path", path}}).parameters.at("slice").as_object();
  }

  /// How many lines of the log contain `text`.
  std::ptrdiff_t logged(const std::string& text) {
    const std::lock_guard lock(log_mutex_);
    return std::count_if(log_.begin(), log_.end(), [&](const auto& line) { return line.find(text) != line.npos; });
  }

  boost::asio::io_context context_{1};
  std::unique_ptr<Manager> manager_;
  std::thread thread_;
  std::string directory_, socket_;
  std::vector<Gpu> more_gpus_;  ///< beside the one
  std::mutex log_mutex_;
  std::vector<std::string> log_;
};

/// The answers to MakePage and Attach, and the page.
struct Joined {
  ipc::Reply reply;
  ipc::StubMap stub;
  ipc::UniqueFd file;  ///< of the page
};
/// Where the machine is busy it may be too late, and tries again.
inline Joined join(ipc::Connection& connection, const json::object& parameters) {
  Joined joined;
  do {
    joined.reply = connection.call({.method = "io.gpuctl.MakePage", .parameters = {}}).value();
    if (!joined.reply.error.empty()) return joined;
    joined.file = std::move(connection.take_fds().at(0));
    joined.stub = std::move(ipc::StubMap::take(joined.file.get()).value());
    joined.reply = connection.call({.method = "io.gpuctl.Attach", .parameters = parameters}).value();
  } while (joined.reply.error == "io.gpuctl.NoPage");
  return joined;
}

/// What libgpuslice does, without a GPU.
struct FakeProgram {
  /// `keep`: the descriptor of its page stays open.
  FakeProgram(ipc::Connection established, const std::string& slice, bool keep = false)
      : connection(std::move(established)) {
    Joined joined = join(connection, {{"slice", slice}, {"device_uuids", {kUuid}}, {"resumed", false}});
    reply = std::move(joined.reply);
    if (keep) page = std::move(joined.file);
    auto fds = connection.take_fds();
    if (fds.size() != 1) return;
    stub = std::move(joined.stub);
    kick = std::move(fds[0]);
  }
  std::uint32_t granted() const { return ipc::load(stub->grant[0].polled.capsm); }
  void demand(std::uint32_t sms) {
    ipc::store(stub->usage[0].demand, sms);
    const std::uint64_t one = 1;
    ASSERT_EQ(::write(kick.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
  }

  ipc::Connection connection;
  ipc::Reply reply;
  ipc::StubMap stub;
  ipc::UniqueFd kick, page;
};

}  // namespace gpuctl::daemon
