// The manager in this process, spoken to over a real socket.
#include "gpuctld/manager.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/json.hpp>
#include <cstring>
#include <filesystem>
#include <thread>

#include "gpuctld/listen_socket.h"
#include "ipc/connection.h"
#include "ipc/interface.h"
#include "ipc/stub_map.h"

namespace gpuctl::daemon {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr char kUuid[] = "GPU-00112233-4455-6677-8899-aabbccddeeff";

/// True as soon as `condition` is, false if it is not within a generous time.
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

  void start(ManagerOptions options, Config config = {}) {
    options.state_file = directory_ + "/state.json";
    options.root_uid = ::geteuid();
    auto manager = Manager::create(context_, std::move(options), {{0, "Test GPU", kUuid, true, 132, 1ull << 30}},
                                   std::move(config), [](const std::string&) {});
    ASSERT_TRUE(manager) << manager.error().message;
    manager_ = std::move(*manager);
    auto listener = listen_at(socket_, 0600, std::nullopt);
    ASSERT_TRUE(listener) << listener.error().message;
    manager_->serve(listener->release());
    thread_ = std::thread([this] { context_.run(); });
  }

  void stop() {
    if (!manager_) return;
    boost::asio::post(context_, [this] { manager_->stop(); });
    thread_.join();
    manager_.reset();
    context_.restart();
    ::unlink(socket_.c_str());
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

  boost::asio::io_context context_{1};
  std::unique_ptr<Manager> manager_;
  std::thread thread_;
  std::string directory_, socket_;
};

/// What libgpuslice does, without a GPU.
struct FakeProgram {
  FakeProgram(ipc::Connection established, const std::string& slice) : connection(std::move(established)) {
    ipc::Call request{.method = "io.gpuctl.Attach",
                      .parameters = {{"slice", slice}, {"device_uuids", {kUuid}}, {"resumed", false}}};
    reply = connection.call(request).value();
    auto fds = connection.take_fds();
    if (fds.size() != 2) return;
    stub = std::move(ipc::StubMap::map(fds[0].get()).value());
    kick = std::move(fds[1]);
  }
  std::uint32_t granted() const { return ipc::load(stub->grant[0].capsm); }
  void demand(std::uint32_t sms) {
    ipc::store(stub->usage[0].demand, sms);
    const std::uint64_t one = 1;
    ASSERT_EQ(::write(kick.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
  }

  ipc::Connection connection;
  ipc::Reply reply;
  ipc::StubMap stub;
  ipc::UniqueFd kick;
};

TEST_F(ManagerTest, AnswersTheServiceInterface) {
  auto connection = connect();
  const auto info = call(connection, "org.varlink.service.GetInfo");
  EXPECT_EQ(info.parameters.at("product"), "gpuctld");
  EXPECT_EQ(info.parameters.at("interfaces").as_array().size(), 2u);
  const auto description =
      call(connection, "org.varlink.service.GetInterfaceDescription", {{"interface", "io.gpuctl"}});
  EXPECT_EQ(description.parameters.at("description"), json::string(ipc::interface_text()));
  EXPECT_EQ(call(connection, "org.varlink.service.GetInterfaceDescription", {{"interface", "a.b"}}).error,
            ipc::kInterfaceNotFound);
  EXPECT_EQ(call(connection, "a.b.C").error, ipc::kInterfaceNotFound);
  EXPECT_EQ(call(connection, "io.gpuctl.Nothing").error, ipc::kMethodNotFound);
  EXPECT_EQ(call(connection, "org.varlink.service.CreateSlice").error, ipc::kMethodNotFound);
}

TEST_F(ManagerTest, SlicesAreCreatedChangedListedAndDeleted) {
  create("ls", {{"reserve", 8}});
  create("ls/a", {{"weight", 5}});
  EXPECT_EQ(call("ListSlices").parameters.at("slices").as_array().size(), 3u);
  const auto changed = call("SetSlice", {{"path", "ls"}, {"settings", {{"max", 40}}}});
  EXPECT_EQ(changed.parameters.at("slice").at("max"), 40);
  EXPECT_EQ(slice("ls").at("reserve"), 8);
  EXPECT_EQ(call("DeleteSlice", {{"path", "ls"}}).error, "io.gpuctl.SliceBusy");
  EXPECT_EQ(call("DeleteSlice", {{"path", "ls/a"}}).error, "");
  EXPECT_EQ(call("DeleteSlice", {{"path", "ls"}}).error, "");
  EXPECT_EQ(call("GetSlice", {{"path", "ls"}}).error, "io.gpuctl.NoSuchSlice");
}

TEST_F(ManagerTest, WrongCallsAreNamedErrorsAndChangeNothing) {
  create("ls", {{"reserve", 100}});
  const auto unfit = call("CreateSlice", {{"path", "x"}, {"settings", {{"reserve", 33}}}});
  EXPECT_EQ(unfit.error, "io.gpuctl.ReserveDoesNotFit");
  EXPECT_EQ(unfit.parameters.at("available"), 32);
  const auto typed = call("CreateSlice", {{"path", "x"}, {"settings", {{"reserve", "8"}}}});
  EXPECT_EQ(typed.error, "io.gpuctl.InvalidValue");
  EXPECT_EQ(typed.parameters.at("field"), "settings.reserve");
  const auto unknown = call("SetSlice", {{"path", "ls"}, {"settings", {{"reserv", 8}}}});
  EXPECT_EQ(unknown.error, "io.gpuctl.InvalidValue");
  EXPECT_EQ(call("CreateSlice", {{"path", "ls"}, {"settings", json::object()}}).error, "io.gpuctl.SliceExists");
  EXPECT_EQ(call("SetSlice", {{"path", "no"}, {"settings", json::object()}}).error, "io.gpuctl.NoSuchSlice");
  EXPECT_EQ(call("SetSlice", {{"path", "ls"}, {"settings", {{"policy", "best"}}}}).error, "io.gpuctl.InvalidValue");
  EXPECT_EQ(call("Explain", {{"pid", 1}}).error, "io.gpuctl.NoSuchClient");
  EXPECT_EQ(call("SetHint", {{"priority", 0}}).error, "io.gpuctl.NotAttached");
  EXPECT_EQ(call("Monitor", {{"interval_ms", 5}}).error, "io.gpuctl.InvalidValue");
  EXPECT_EQ(call("ListSlices").parameters.at("slices").as_array().size(), 2u);
}

TEST_F(ManagerTest, AttachGrantsAndKicksMoveGrants) {
  create("ls", {{"reserve", 8}, {"reserve_mode", "lend"}});
  create("batch", {});
  FakeProgram batch(connect(), "batch"), ls(connect(), "ls");
  ASSERT_EQ(batch.reply.error, "");
  EXPECT_EQ(batch.reply.parameters.at("stub_bytes"), ipc::kStubBytes);
  EXPECT_EQ(batch.reply.parameters.at("latency_target_us"), 50);
  batch.demand(132);
  EXPECT_TRUE(eventually([&] { return batch.granted() == 132; }));
  ls.demand(8);
  EXPECT_TRUE(eventually([&] { return batch.granted() == 124 && ls.granted() == 8; }));
  EXPECT_EQ(slice("batch").at("granted"), 124);
  EXPECT_EQ(slice("batch").at("clients"), 1);
  call("SetSlice", {{"path", "batch"}, {"settings", {{"max", 40}}}});
  EXPECT_EQ(batch.granted(), 40u);
}

TEST_F(ManagerTest, DemandIsFoundWithoutAKickToo) {
  create("batch", {});
  FakeProgram batch(connect(), "batch"), other(connect(), "batch");
  batch.demand(132);
  EXPECT_TRUE(eventually([&] { return batch.granted() == 132; }));
  ipc::store(batch.stub->usage[0].demand, 0u);
  EXPECT_TRUE(eventually([&] { return other.granted() == 66; }));
}

TEST_F(ManagerTest, AttachRefusesWhatItCannotDo) {
  auto connection = connect();
  const auto attach = [&](json::array uuids, const char* where) {
    return call(connection, "Attach", {{"slice", where}, {"device_uuids", std::move(uuids)}, {"resumed", false}}).error;
  };
  EXPECT_EQ(attach({kUuid}, "nowhere"), "io.gpuctl.NoSuchSlice");
  EXPECT_EQ(attach({}, "/"), "io.gpuctl.InvalidValue");
  EXPECT_EQ(attach({"GPU-ff"}, "/"), "io.gpuctl.InvalidValue");
  EXPECT_EQ(attach({kUuid, kUuid}, "/"), "io.gpuctl.InvalidValue");
  EXPECT_EQ(attach({kUuid}, ""), "");
  EXPECT_EQ(attach({kUuid}, "/"), "io.gpuctl.InvalidValue");
}

TEST_F(ManagerTest, AClosedConnectionFreesItsGrant) {
  create("batch", {});
  FakeProgram stays(connect(), "batch");
  stays.demand(132);
  {
    FakeProgram goes(connect(), "batch");
    goes.demand(132);
    EXPECT_TRUE(eventually([&] { return stays.granted() == 66; }));
    EXPECT_EQ(call("DeleteSlice", {{"path", "batch"}}).error, "io.gpuctl.SliceBusy");
  }
  EXPECT_TRUE(eventually([&] { return stays.granted() == 132; }));
}

TEST_F(ManagerTest, ADeadProcessFreesItsGrantEvenIfItsConnectionLives) {
  create("batch", {});
  FakeProgram stays(connect(), "batch");
  stays.demand(132);
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const pid_t child = ::fork();
  if (child == 0) {  // connects itself, so that the credentials are its own, and hands a copy of the connection out
    FakeProgram program(connect(), "batch");
    program.demand(132);
    const int fd = program.connection.fd();
    char byte = 0;
    iovec data{&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
    ::sendmsg(pair[1], &message, 0);
    for (;;) ::pause();
  }
  EXPECT_TRUE(eventually([&] { return stays.granted() == 66; }));
  ASSERT_EQ(::kill(child, SIGKILL), 0);  // the copy, unread in the pair, keeps the connection open
  EXPECT_TRUE(eventually([&] { return stays.granted() == 132; }));
  ::waitpid(child, nullptr, 0);
  ::close(pair[0]);
  ::close(pair[1]);
}

TEST_F(ManagerTest, KernelsAreReportedAndExplained) {
  FakeProgram program(connect(), "/");
  ipc::Kernel kernel{.name = "saxpy", .module = "m", .form = "opaque", .reason = "grid sync", .launches = 3};
  ipc::Call report{.method = "io.gpuctl.ReportKernels",
                   .parameters = {{"kernels", json::array{ipc::to_json(kernel)}}},
                   .oneway = true};
  ASSERT_TRUE(program.connection.call(report));
  EXPECT_EQ(call(program.connection, "SetHint", {{"priority", -3}}).error, "");
  EXPECT_EQ(ipc::load(program.stub->grant[0].priority), -3);
  EXPECT_EQ(call(program.connection, "SetHint", {{"priority", 3}}).error, "io.gpuctl.InvalidValue");
  const auto explained = call("Explain", {{"pid", ::getpid()}});
  ASSERT_EQ(explained.error, "");
  EXPECT_EQ(explained.parameters.at("client").at("slice"), "/");
  ASSERT_EQ(explained.parameters.at("kernels").as_array().size(), 1u);
  EXPECT_EQ(explained.parameters.at("kernels").at(0).at("reason"), "grid sync");
}

TEST_F(ManagerTest, MonitorStreamsUntilTheConnectionCloses) {
  auto connection = connect();
  ipc::Call monitor{.method = "io.gpuctl.Monitor", .parameters = {{"interval_ms", 100}}, .more = true};
  auto reply = connection.call(monitor);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_TRUE(reply->continues);
    EXPECT_TRUE(ipc::from_json<ipc::Snapshot>(reply->parameters));
    reply = connection.receive();
  }
  EXPECT_FALSE(call("Monitor", {{"interval_ms", 100}}).continues);
}

TEST_F(ManagerTest, PipelinedCallsAreAnsweredInOrder) {
  auto connection = connect();
  for (int i = 0; i < 50; ++i)
    ASSERT_TRUE(connection.send({.method = "io.gpuctl.GetSlice", .parameters = {{"path", "p" + std::to_string(i)}}}));
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(connection.receive().value().parameters.at("path").as_string(), "p" + std::to_string(i));
}

TEST_F(ManagerTest, GarbageIsAnsweredOrCutOffAndHarmsNobody) {
  create("ls", {{"reserve", 8}});
  std::string deep(100000, '[');
  const std::string bad_calls[] = {"",
                                   "\xff\xfe{}",
                                   "{\"method\":\"\xc3\x28\"}",
                                   "[]",
                                   "{}",
                                   "{\"method\":3}",
                                   "{\"method\":\"io.gpuctl.CreateSlice\",\"parameters\":[]}",
                                   deep,
                                   std::string(100000, 'A')};
  for (const std::string& bad : bad_calls) {
    auto connection = connect();
    const std::string framed = bad + '\0';
    ASSERT_EQ(::send(connection.fd(), framed.data(), framed.size(), MSG_NOSIGNAL), static_cast<ssize_t>(framed.size()));
    const auto reply = connection.receive();
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_EQ(reply->error, ipc::kInvalidParameter) << bad.substr(0, 60);
    EXPECT_EQ(call(connection, "GetSlice", {{"path", "ls"}}).error, "");
  }
  auto endless = connect();
  const std::string block(65536, 'x');
  std::size_t taken = 0;
  for (ssize_t n = 0; n >= 0 || errno == EAGAIN; taken += static_cast<std::size_t>(std::max<ssize_t>(n, 0))) {
    ASSERT_LT(taken, kMaxStrangerBytes + (1u << 20));  // it reads on and on
    if (n < 0) std::this_thread::sleep_for(1ms);
    n = ::send(endless.fd(), block.data(), block.size(), MSG_NOSIGNAL);
  }
  EXPECT_EQ(errno, EPIPE);
  EXPECT_EQ(endless.receive().value().error, ipc::kInvalidParameter);
  EXPECT_EQ(call("ListSlices").parameters.at("slices").as_array().size(), 2u);
}

TEST_F(ManagerTest, AKickFloodLeavesTheDaemonAnswering) {
  FakeProgram program(connect(), "/");
  std::atomic<bool> done = false;
  std::thread flood([&] {
    const std::uint64_t one = 1;
    while (!done) (void)!::write(program.kick.get(), &one, sizeof one);
  });
  for (int i = 0; i < 20; ++i) EXPECT_EQ(call("ListSlices").error, "");
  done = true;
  flood.join();
  program.demand(132);
  EXPECT_TRUE(eventually([&] { return slice("/").at("demand") == 132; }));
}

TEST_F(ManagerTest, RestartKeepsSlices) {
  create("ls", {{"reserve", 8}});
  stop();
  start({});
  EXPECT_EQ(slice("ls").at("reserve"), 8);
}

TEST_F(ManagerTest, AStormRewritesGrantsWithinWhatWasDecided) {
  stop();
  start({.evict_storm = 200us});
  FakeProgram program(connect(), "/");
  std::uint32_t changes = 0, last = program.granted();
  EXPECT_TRUE(eventually([&] {
    const std::uint32_t now = program.granted();
    EXPECT_LE(now, 132u);
    changes += std::exchange(last, now) != now;
    return changes > 20;
  }));
}

TEST_F(ManagerTest, ASecondDaemonDoesNotTakeALiveSocket) {
  const auto second = listen_at(socket_, 0600, std::nullopt);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message, socket_ + ": another daemon listens there");
}

}  // namespace
}  // namespace gpuctl::daemon
