// The hardware queues that programs are promised before they start, through a manager over a real socket.
#include <signal.h>
#include <sys/wait.h>

#include <future>
#include <optional>

#include "gpuctld/testing/fake_mps_control.h"
#include "gpuctld/testing/manager_fixture.h"

namespace gpuctl::daemon::promised_queues_test {

/// Under what the manager takes for MPS. Something is in force for whatever starts.
struct PromisedQueuesTest : ManagerTest {
  PromisedQueuesTest() {
    mps_.serve();
    restart({.always_preemptible = true});
  }
  void restart(const DaemonOptions& options) {
    stop();
    start({}, {.daemon = options});
  }
  std::uint32_t promised() {
    std::promise<std::uint32_t> answer;
    boost::asio::post(context_, [&] { answer.set_value(manager_->queues().promised()); });
    return answer.get_future().get();
  }
  bool comes_to(std::uint32_t sum) {
    return eventually([&] { return promised() == sum; });
  }
  json::value ask(ipc::Connection& connection, const std::string& slice = "/", int own = 0) {
    return call(connection, "GetMpsPercentage", {{"slice", slice}, {"queues", own}}).parameters.at("queues");
  }
  json::value ask(const std::string& slice) {
    auto connection = connect();
    return ask(connection, slice);
  }
  ipc::Reply attach(ipc::Connection& connection, std::optional<int> queues) {
    json::object parameters{{"slice", "/"}, {"device_uuids", {kUuid}}, {"resumed", false}};
    if (queues)
      parameters["queues"] = *queues;
    else
      parameters["stub_version"] = ipc::stub_version();
    return join(connection, parameters).reply;
  }

  FakeMpsControl mps_;
};

TEST_F(PromisedQueuesTest, ProgramsThatStartAtOnceSeeEachOther) {
  std::vector<ipc::Connection> programs;
  std::int64_t sum = 0;
  for (int i = 0; i < 40; ++i) {
    programs.push_back(connect());
    sum += ask(programs.back()).as_int64();
  }
  EXPECT_EQ(sum, 18 * 4 + 22 * 2);
  EXPECT_EQ(promised(), sum);
  for (auto& program : programs) EXPECT_EQ(attach(program, std::nullopt).error, "");
  EXPECT_EQ(promised(), sum) << "what was promised is kept";
  programs.clear();
  EXPECT_TRUE(comes_to(0));
}

TEST_F(PromisedQueuesTest, WhoAsksAndNeverAttachesKeepsNothing) {
  {
    auto asks = connect();
    for (int i = 0; i < 100; ++i) EXPECT_EQ(ask(asks), 4);
    EXPECT_EQ(promised(), 4u) << "one program, one promise";
  }
  EXPECT_TRUE(comes_to(0));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(ask("/"), 4) << "again and again";
}

TEST_F(PromisedQueuesTest, AKilledProgramsQueuesComeBack) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    auto* connection = new ipc::Connection(connect());  // until the process ends
    (void)!::write(ends[1], ask(*connection) == 4 ? "4" : "?", 1);
    for (;;) ::pause();
  }
  char got = 0;
  EXPECT_EQ(::read(ends[0], &got, 1), 1);
  EXPECT_EQ(got, '4');
  EXPECT_EQ(promised(), 4u);
  ::kill(pid, SIGKILL);
  EXPECT_TRUE(comes_to(0));
  ::waitpid(pid, nullptr, 0);
  for (const int end : ends) ::close(end);
}

TEST_F(PromisedQueuesTest, ANumberOfItsOwnStaysAndCounts) {
  auto own = connect();
  EXPECT_EQ(ask(own, "/", 32), 32);
  auto another = connect();
  EXPECT_EQ(ask(another, "/", 32), 32);
  EXPECT_EQ(promised(), 64u);
  std::vector<ipc::Connection> more;
  for (const int expected : {4, 4, 2}) EXPECT_EQ(ask(more.emplace_back(connect())), expected);
  for (const int wrong : {-1, 33})
    EXPECT_EQ(call("GetMpsPercentage", {{"slice", "/"}, {"queues", wrong}}).error, "io.gpuctl.InvalidValue");
}

TEST_F(PromisedQueuesTest, AProgramThatComesBackSaysWhatItHas) {
  auto back = connect(), older = connect();
  EXPECT_EQ(attach(back, 4).error, "");
  EXPECT_EQ(promised(), 4u);
  EXPECT_EQ(attach(older, std::nullopt).error, "");
  EXPECT_EQ(promised(), 6u) << "as many as MPS makes";
  const FakeProgram run(connect(), "/");
  EXPECT_EQ(promised(), 6u) << "as gpuctl run joins for a moment";
  auto wrong = connect();
  for (const int queues : {0, 33}) EXPECT_EQ(attach(wrong, queues).parameters.at("field"), "queues");
}

TEST_F(PromisedQueuesTest, MoreOnlyWhereKernelsHaveToGiveSmsBack) {
  restart({});
  create("batch", {{"max", 99}});
  create("ls", {{"priority", 50}});
  create("jobs", {{"policy", "fcfs"}});
  EXPECT_EQ(ask("batch"), 4);
  EXPECT_EQ(ask("ls"), 2);
  EXPECT_EQ(ask("jobs"), 4);
  // MPS keeps the max of a slice with a reserve, but not if two programs share it.
  EXPECT_EQ(call("SetSlice", {{"path", "batch"}, {"settings", {{"reserve", 8}}}}).error, "");
  EXPECT_EQ(ask("batch"), 2);
  auto beside = connect();
  EXPECT_EQ(call(beside, "Attach", {{"slice", "batch"}, {"device_uuids", {kUuid}}, {"resumed", false}}).error, "");
  EXPECT_EQ(ask("batch"), 4);
}

TEST_F(PromisedQueuesTest, NothingWithoutMpsNorToWhoDoesNotAsk) {
  EXPECT_FALSE(call("GetMpsPercentage", {{"slice", "/"}}).parameters.contains("queues")) << "an older library";
  EXPECT_EQ(promised(), 0u);
  ::unsetenv("CUDA_MPS_PIPE_DIRECTORY");
  auto connection = connect();
  EXPECT_TRUE(ask(connection).is_null());
  EXPECT_EQ(attach(connection, std::nullopt).error, "");
  EXPECT_EQ(promised(), 0u);
}

}  // namespace gpuctl::daemon::promised_queues_test
