// Slices, grants and programs, through a manager in this process.
#include "gpuctld/manager/manager.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <atomic>

#include "gpuctld/clock.h"
#include "gpuctld/testing/manager_fixture.h"
#include "ipc/testing/pass_along.h"

namespace gpuctl::daemon {
namespace {

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

TEST_F(ManagerTest, AttachGrantsAndKicksMoveGrants) {
  create("ls", {{"reserve", 8}});
  create("batch", {{"weight", 200}});
  FakeProgram batch(connect(), "batch"), ls(connect(), "ls");
  ASSERT_EQ(batch.reply.error, "");
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

/// In a handover too, in which the daemon looks more often by itself.
TEST_F(ManagerTest, AProgramThatKicksWithoutEndIsHeardSoOftenBetweenTicks) {
  start_with_patience();
  FakeProgram batch(connect(), "batch"), ls(connect(), "ls");
  batch.demand(132);
  ASSERT_TRUE(eventually([&] { return batch.granted() == 132; }));
  ls.demand(8);
  ASSERT_TRUE(eventually([&] { return batch.granted() == 124; }));
  constexpr int kKicks = 1000;
  const std::uint64_t began = now_ns();
  for (int i = 0; i < kKicks; ++i) {
    batch.demand(132);
    pollfd unheard{batch.kick.get(), POLLIN, 0};
    while (::poll(&unheard, 1, 0) > 0) continue;
  }
  const auto ticks = std::chrono::nanoseconds(now_ns() - began) / kBusyTick + 2;
  EXPECT_LE(kKicks, ticks * kKicksPerTick);
  EXPECT_EQ(ls.granted(), 0u) << "it waits for the SMs all the while";
}

TEST_F(ManagerTest, DemandIsFoundWithoutAKickToo) {
  create("batch", {});
  FakeProgram batch(connect(), "batch"), other(connect(), "batch");
  batch.demand(132);
  EXPECT_TRUE(eventually([&] { return batch.granted() == 132; }));
  ipc::store(other.stub->usage[0].demand, 10u);
  ipc::store(batch.stub->usage[0].demand, 0u);
  EXPECT_TRUE(eventually([&] { return other.granted() == 132; }));
}

TEST_F(ManagerTest, AnSmIsHandedOverAsSoonAsItWasLeft) {
  start_with_patience();
  FakeProgram batch(connect(), "batch"), ls(connect(), "ls");
  batch.demand(132);
  EXPECT_TRUE(eventually([&] { return batch.granted() == 132; }));
  ls.demand(8);
  EXPECT_TRUE(eventually([&] { return batch.granted() == 124; }));
  std::this_thread::sleep_for(3 * kBusyTick);
  EXPECT_EQ(ls.granted(), 0u);
  ipc::store(batch.stub->usage[0].applied_epoch, ipc::load(batch.stub->grant[0].epoch));
  EXPECT_TRUE(eventually([&] { return ls.granted() == 8; }));
  const auto shown = call("GetSlice", {{"path", "ls"}});
  EXPECT_EQ(shown.parameters.at("clients").at(0).at("usage").at(0).at("granted"), 8);
}

TEST_F(ManagerTest, AProcessIsLoggedOncePerSlice) {
  create("a", {});
  create("b", {});
  { FakeProgram run(connect(), "a"); }
  FakeProgram program(connect(), "a"), again(connect(), "a");
  EXPECT_EQ(logged("joined slice a"), 1);
  FakeProgram other(connect(), "b");
  EXPECT_EQ(logged("joined slice b"), 1);
  EXPECT_EQ(logged("joined"), 2);
}

TEST_F(ManagerTest, ADisobeyingProgramIsLoggedOnce) {
  stop();
  Config strict;
  strict.daemon.evict_deadline = strict.daemon.longest_block_task = 1ms;
  start({}, strict);
  create("ls", {{"reserve", 8}});
  create("batch", {{"weight", 200}});
  FakeProgram batch(connect(), "batch"), ls(connect(), "ls");
  ipc::store(batch.stub->usage[0].holding, 132u);
  batch.demand(132);
  EXPECT_TRUE(eventually([&] { return batch.granted() == 132; }));
  for (std::uint32_t i = 0; i < 20; ++i) {
    ls.demand(8 + i % 4);
    std::this_thread::sleep_for(2 * kBusyTick);
  }
  EXPECT_EQ(logged("has not given back SMs"), 1);
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

TEST_F(ManagerTest, ALibraryWithAnotherVersionOfThePageIsNotAttached) {
  auto connection = connect();
  const auto attach = [&](std::uint32_t version) {
    return join(connection, {{"slice", "/"}, {"device_uuids", {kUuid}}, {"resumed", false}, {"stub_version", version}})
        .reply;
  };
  for (int i = 0; i < 3; ++i) {
    const auto refused = attach(ipc::kStubVersion + 1);
    EXPECT_EQ(refused.error, "io.gpuctl.OtherVersion");
    EXPECT_EQ(refused.parameters.at("daemon"), json::value(ipc::kStubVersion));
    EXPECT_EQ(refused.parameters.at("client"), json::value(ipc::kStubVersion + 1));
  }
  EXPECT_EQ(logged("it runs without limits"), 1);
  EXPECT_EQ(attach(ipc::kStubVersion).error, "");
}

/// Who touched it, or unmapped it, would wait for whoever punches holes into it.
TEST_F(ManagerTest, APageThatIsNotTakenInTimeIsGivenUp) {
  auto connection = connect();
  const json::object attach{{"slice", "/"}, {"device_uuids", {kUuid}}, {"resumed", false}};
  json::object as_library = attach;
  as_library["stub_version"] = ipc::stub_version();
  EXPECT_EQ(call(connection, "Attach", as_library).error, "io.gpuctl.NoPage");
  EXPECT_EQ(call(connection, "MakePage").parameters.at("stub_bytes"), ipc::kStubBytes);
  std::vector<ipc::UniqueFd> page = connection.take_fds();
  ASSERT_EQ(page.size(), 1u);
  const auto made = std::chrono::steady_clock::now();
  EXPECT_EQ(call(connection, "Attach", attach).error, "io.gpuctl.NoPage") << "it is not sealed";
  EXPECT_EQ(call(connection, "MakePage").error, "");
  page = connection.take_fds();
  EXPECT_TRUE(ipc::StubMap::take(page.at(0).get()));
  while (std::chrono::steady_clock::now() < made + 2 * PagesMade::kSoon) call("GetStatus");
  EXPECT_EQ(call(connection, "Attach", as_library).error, "io.gpuctl.NoPage") << "it came too late";
  EXPECT_EQ(join(connection, as_library).reply.error, "");
  EXPECT_TRUE(call("Events").parameters.at("events").as_array().size() == 1) << "nobody is told of such tries";
}

TEST_F(ManagerTest, AClosedConnectionFreesItsGrant) {
  create("ls", {{"reserve", 8}, {"reserve_mode", "strict"}});
  create("batch", {});
  FakeProgram stays(connect(), "batch");
  stays.demand(132);
  {
    FakeProgram goes(connect(), "batch");
    goes.demand(132);
    EXPECT_TRUE(eventually([&] { return stays.granted() == 62; }));
    EXPECT_EQ(call("DeleteSlice", {{"path", "batch"}}).error, "io.gpuctl.SliceBusy");
  }
  EXPECT_TRUE(eventually([&] { return stays.granted() == 124; }));
}

TEST_F(ManagerTest, ADeadProcessFreesItsGrantEvenIfItsConnectionLives) {
  create("ls", {{"reserve", 8}, {"reserve_mode", "strict"}});
  create("batch", {});
  FakeProgram stays(connect(), "batch");
  stays.demand(132);
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const pid_t child = ::fork();
  if (child == 0) {  // connects by itself, so that the credentials are its own, and hands out a copy of the connection
    FakeProgram program(connect(), "batch");
    program.demand(132);
    ipc::pass_along(pair[1], std::string_view("", 1), program.connection.fd());
    for (;;) ::pause();
  }
  EXPECT_TRUE(eventually([&] { return stays.granted() == 62; }));
  ASSERT_EQ(::kill(child, SIGKILL), 0);  // the unread copy in the socket pair keeps the connection open
  EXPECT_TRUE(eventually([&] { return stays.granted() == 124; }));
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
