// Programs that are moved, and slices that are frozen.
#include <sys/inotify.h>

#include <array>
#include <filesystem>
#include <future>
#include <memory>

#include "gpuctld/host/mps_places.h"
#include "gpuctld/manager/event_kinds.h"
#include "gpuctld/testing/fake_mps_control.h"
#include "gpuctld/testing/manager_fixture.h"

namespace gpuctl::daemon {
namespace {

constexpr std::uint32_t kUser = 4000001, kOther = 4000002;

class MoveTest : public ManagerTest {
 protected:
  MoveTest() {
    stop();
    start_again();
  }
  void start_again() { start({.kept = {.state = {}, .kernels = {}, .attached = directory_ + "/attached.json"}}); }

  std::string error_of_move(ipc::Connection& connection, const std::string& slice) {
    return call(connection, "Move", {{"pid", ::getpid()}, {"slice", slice}}).error;
  }
  std::string slice_of_program() {
    const auto clients = call("ListClients").parameters.at("clients").as_array();
    return clients.size() == 1 ? std::string(clients[0].at("slice").as_string()) : std::to_string(clients.size());
  }
};

TEST_F(MoveTest, AProgramHasAtOnceWhatItsNewSliceHas) {
  create("small", {{"max", 8}});
  create("large", {{"max", 100}});
  FakeProgram program(connect(), "small");
  program.demand(132);
  ASSERT_TRUE(eventually([&] { return program.granted() == 8; }));
  const auto moved = call("Move", {{"pid", ::getpid()}, {"slice", "large"}});
  EXPECT_EQ(moved.error, "");
  EXPECT_EQ(moved.parameters.at("client").at("slice"), "large");
  EXPECT_FALSE(moved.parameters.contains("notes")) << "all of it follows";
  EXPECT_TRUE(eventually([&] { return program.granted() == 100; }));
  EXPECT_EQ(slice("small").at("clients"), 0);
  EXPECT_EQ(slice("large").at("clients"), 1);
  EXPECT_EQ(call("DeleteSlice", {{"path", "small"}}).error, "");
  EXPECT_EQ(logged("is moved from slice small to slice large by " + user_words(::geteuid())), 1);
  const auto events = call("Events").parameters.at("events").as_array();
  EXPECT_EQ(events.at(2).at("slice"), "small") << json::serialize(events);
  EXPECT_EQ(events.at(3).at("kind"), "moved");
  EXPECT_EQ(events.at(3).at("slice"), "large");
  EXPECT_EQ(call("Move", {{"pid", 1}, {"slice", "large"}}).error, "io.gpuctl.NoSuchClient");
  EXPECT_EQ(call("Move", {{"pid", ::getpid()}, {"slice", "none"}}).error, "io.gpuctl.NoSuchSlice");
}

TEST_F(MoveTest, WhoNamesNoSliceIsInTheOneForThat) {
  stop();
  Config config;
  config.daemon.default_slice = "others";
  start({}, config);
  {
    const FakeProgram program(connect(), "");
    EXPECT_EQ(slice_of_program(), "/") << "there is none yet";
  }
  create("others", json::object());
  {
    const FakeProgram program(connect(), "");
    EXPECT_EQ(slice_of_program(), "others");
  }
  create("mine", {{"join", "user:" + std::to_string(::geteuid())}});
  const FakeProgram program(connect(), "");
  EXPECT_EQ(slice_of_program(), "mine");
}

TEST_F(MoveTest, WhatItLaunchedBeforeIsItsFormerSlices) {
  for (const char* path : {"above", "above/from", "to"}) create(path, json::object());
  FakeProgram program(connect(), "above/from");
  const auto launch = [&](std::uint64_t count) {
    ipc::Usage& usage = program.stub->usage[0];
    ipc::store(usage.launches, ipc::load(usage.launches) + count);
    ipc::store(usage.evictions, ipc::load(usage.evictions) + 1);
  };
  const auto ended = [&](const std::string& path) { return slice(path).at("ended_launches").to_number<int>(); };
  const auto usage = [&] { return call("ListClients").parameters.at("clients").at(0).at("usage").at(0).as_object(); };
  launch(570);
  EXPECT_FALSE(usage().contains("launches_before"));
  EXPECT_EQ(call("Move", {{"pid", ::getpid()}, {"slice", "to"}}).error, "");
  launch(100);
  EXPECT_EQ(ended("above/from"), 570);
  EXPECT_EQ(usage().at("launches_before"), 570);
  EXPECT_EQ(usage().at("launches"), 670) << "what it launched in all";
  EXPECT_EQ(call("Move", {{"pid", ::getpid()}, {"slice", "above/from"}}).error, "");
  launch(10);
  EXPECT_EQ(ended("above"), 570);
  EXPECT_EQ(ended("to"), 100);
  EXPECT_EQ(ended("/"), 670);
  EXPECT_EQ(usage().at("launches_before"), 670);
  EXPECT_EQ(usage().at("evictions_before"), 2);
  EXPECT_EQ(slice("/").at("ended_evictions"), 2);
  EXPECT_EQ(slice("/").at("ended"), 0);
}

/// A process may have as many as its user: to move it is one decision, one record, and told once.
TEST_F(MoveTest, AllConnectionsOfAProgramAreMovedAtOnce) {
  create("from", json::object());
  create("to", json::object());
  std::vector<std::unique_ptr<FakeProgram>> connections;
  for (int i = 0; i < 30; ++i) connections.push_back(std::make_unique<FakeProgram>(connect(), "from"));
  const ipc::UniqueFd watch(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  ASSERT_GE(::inotify_add_watch(watch.get(), directory_.c_str(), IN_MOVED_TO), 0);
  EXPECT_EQ(call("Move", {{"pid", ::getpid()}, {"slice", "to"}}).error, "");
  alignas(inotify_event) std::array<char, 65536> buffer{};
  const ssize_t size = ::read(watch.get(), buffer.data(), buffer.size());
  std::size_t written = 0;
  for (ssize_t at = 0; at < size; ++written)
    at += static_cast<ssize_t>(sizeof(inotify_event) + reinterpret_cast<inotify_event*>(&buffer[at])->len);
  EXPECT_GE(written, 1u);
  EXPECT_LE(written, 3u);
  EXPECT_EQ(slice("to").at("clients"), 30);
  EXPECT_EQ(logged("is moved from slice from to slice to"), 1);
  const auto events = call("Events").parameters.at("events").as_array();
  EXPECT_EQ(std::ranges::count_if(events, [](const auto& event) { return event.at("kind") == "moved"; }), 2);
}

TEST_F(MoveTest, WhatDoesNotFollowIsSaid) {
  create("shared", json::object());
  create("alone", {{"isolation", "isolated"}});
  const FakeProgram program(connect(), "shared");
  const auto moved = call("Move", {{"pid", ::getpid()}, {"slice", "alone"}});
  EXPECT_EQ(json::serialize(moved.parameters.at("notes")),
            R"(["until it starts again it shares a context with others"])");
}

TEST_F(MoveTest, TakesRightsOverTheProgramAndInTheNewSlice) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  create("users", {{"owner_uid", kUser}});
  create("users/below", json::object());
  create("others", {{"owner_uid", kOther}});
  const FakeProgram of_root(connect(), "users");
  auto user = connect_as(kUser), other = connect_as(kOther);
  EXPECT_EQ(error_of_move(other, "others"), "io.gpuctl.PermissionDenied") << "not theirs";
  EXPECT_EQ(error_of_move(user, "others"), "io.gpuctl.PermissionDenied") << "into a slice of somebody else";
  EXPECT_EQ(slice_of_program(), "users");
  EXPECT_EQ(error_of_move(user, "users/below"), "");
  EXPECT_EQ(slice_of_program(), "users/below");
}

/// It names the slice that it joined at first.
TEST_F(MoveTest, TheNextDaemonKnows) {
  create("first", json::object());
  create("second", json::object());
  const auto attach = [&](ipc::Connection& connection, bool resumed) {
    return call(connection, "Attach", {{"slice", "first"}, {"device_uuids", {kUuid}}, {"resumed", resumed}});
  };
  {
    auto program = connect();
    EXPECT_EQ(attach(program, false).error, "");
    EXPECT_EQ(call("Move", {{"pid", ::getpid()}, {"slice", "second"}}).error, "");
    stop();
  }
  for (int round = 0; round < 2; ++round) {
    start_again();
    auto program = connect();
    EXPECT_EQ(attach(program, true).parameters.at("slice"), "second") << round;
    EXPECT_EQ(slice_of_program(), "second");
    stop();
  }
  {
    start_again();
    auto program = connect();
    EXPECT_EQ(attach(program, false).parameters.at("slice"), "first") << "it starts anew";
    stop();
  }
  start_again();
  auto program = connect();
  EXPECT_EQ(attach(program, true).parameters.at("slice"), "first");
}

/// Two slices with an MPS each.
class MoveBetweenMpsTest : public MoveTest {
 protected:
  MoveBetweenMpsTest() {
    mps_.serve();
    ::unsetenv("CUDA_MPS_PIPE_DIRECTORY");
    for (const char* slice : {"first", "second"}) {
      create(slice, json::object());
      std::filesystem::create_directories(place_of(slice));
      std::filesystem::copy(mps_.directory() + "/nvidia-cuda-mps-control.pid", place_of(slice));
    }
    stop();
    start_again();
  }
  ~MoveBetweenMpsTest() override { stop(); }
  void start_again() {
    start({.kept = {.state = {}, .kernels = {}, .attached = directory_ + "/attached.json"},
           .mps_directory = mps_.directory() + "/places"});
  }
  std::string place_of(const char* slice) { return mps_.directory() + "/places/" + MpsPlaces::name_of(slice); }

  /// The MPS in which the daemon takes it to be, whose slice is given.
  std::string attach(ipc::Connection& connection, const char* slice, const char* mps, bool resumed) {
    EXPECT_EQ(
        call(connection, "Attach",
             {{"slice", slice}, {"device_uuids", {kUuid}}, {"resumed", resumed}, {"pipe_directory", place_of(mps)}})
            .error,
        "");
    std::promise<std::string> name;
    boost::asio::post(context_, [&] { name.set_value(manager_->scheduler().clients().back().mps); });
    const std::string found = name.get_future().get();
    for (const char* one : {"first", "second"})
      if (MpsPlaces::name_of(one) == found) return one;
    return found;
  }

  FakeMpsControl mps_;
};

/// An MPS that programs are said to be in is not ended, nor given to another user.
TEST_F(MoveBetweenMpsTest, NobodyIsInTheMpsOfAnotherSliceButWhoWasMoved) {
  for (const bool resumed : {false, true}) {
    auto its_own = connect(), of_another = connect();
    EXPECT_EQ(attach(its_own, "first", "first", resumed), "first");
    EXPECT_EQ(attach(of_another, "second", "first", resumed), "");
  }
  auto program = connect();
  EXPECT_EQ(attach(program, "first", "first", false), "first");
  EXPECT_EQ(call("Move", {{"pid", ::getpid()}, {"slice", "second"}}).error, "");
  stop();
  start_again();
  auto again = connect();
  EXPECT_EQ(attach(again, "first", "first", true), "first");
  EXPECT_EQ(call("GetSlice", {{"path", "second"}}).parameters.at("clients").as_array().size(), 1u);
}

TEST_F(MoveTest, ASliceOfTheSameNameIsAnotherOne) {
  create("first", json::object());
  create("second", json::object());
  const auto attach = [&](ipc::Connection& connection, bool resumed) {
    return call(connection, "Attach", {{"slice", "first"}, {"device_uuids", {kUuid}}, {"resumed", resumed}})
        .parameters.at("slice");
  };
  {
    auto program = connect();
    EXPECT_EQ(attach(program, false), "first");
    EXPECT_EQ(call("Move", {{"pid", ::getpid()}, {"slice", "second"}}).error, "");
  }
  ASSERT_TRUE(eventually([&] { return call("DeleteSlice", {{"path", "second"}}).error.empty(); }));
  create("second", json::object());
  auto program = connect();
  EXPECT_EQ(attach(program, true), "first");
}

TEST_F(MoveTest, AFrozenSliceHasNothingUntilItIsThawedWhateverBecomesOfTheDaemon) {
  create("ice", {{"reserve", 16}, {"reserve_mode", "strict"}});
  create("ice/below", json::object());
  FakeProgram frozen(connect(), "ice/below"), beside(connect(), "/");
  frozen.demand(132);
  beside.demand(132);
  ASSERT_TRUE(eventually([&] { return frozen.granted() > 0 && beside.granted() <= 116; }));
  EXPECT_EQ(call("SetSlice", {{"path", "ice"}, {"settings", {{"frozen", "yes"}}}}).error, "");
  EXPECT_EQ(frozen.granted(), 0u);
  ipc::store(frozen.stub->usage[0].applied_epoch, ipc::load(frozen.stub->grant[0].epoch));
  EXPECT_TRUE(eventually([&] { return beside.granted() == 132; })) << "its reserve too";
  EXPECT_EQ(slice("ice/below").at("effective_frozen"), "yes");
  stop();
  start_again();
  EXPECT_EQ(slice("ice").at("frozen"), "yes");
  EXPECT_EQ(slice("ice").at("reserve"), 16);
  EXPECT_EQ(call("SetSlice", {{"path", "ice"}, {"settings", {{"frozen", "no"}}}}).error, "");
  EXPECT_FALSE(slice("ice/below").contains("effective_frozen"));
}

}  // namespace
}  // namespace gpuctl::daemon
