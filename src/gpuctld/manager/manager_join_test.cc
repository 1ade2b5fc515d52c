// Programs that name no slice, and the slices that take them in.
#include <memory>

#include "gpuctld/testing/manager_fixture.h"

namespace gpuctl::daemon {
namespace {

constexpr std::uint32_t kGuest = 4000001, kHost = 4000002;

class JoinTest : public ManagerTest {
 protected:
  JoinTest() {
    stop();
    start_again();
  }
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  }
  void start_again() {
    start({.kept = {.state = directory_ + "/slices.json", .kernels = {}, .attached = directory_ + "/attached.json"}});
  }
  ipc::Reply attach(ipc::Connection& connection, const std::string& slice, bool resumed = false) {
    return call(connection, "Attach", {{"slice", slice}, {"device_uuids", {kUuid}}, {"resumed", resumed}});
  }
  std::string text(const ipc::Reply& reply) {
    return reply.error.empty() ? std::string(reply.parameters.at("slice").as_string()) : reply.error;
  }
  void join(const std::string& path, const std::string& who) {
    EXPECT_EQ(call("SetSlice", {{"path", path}, {"settings", {{"join", who}}}}).error, "");
  }
};

TEST_F(JoinTest, ASliceTakesInWhoItNamesThoughTheyMayNotJoinOthersLikeIt) {
  create("taken", {{"owner_uid", kHost}, {"join", "user:4000001"}});
  create("others", {{"owner_uid", kHost}});
  auto first = connect_as(kGuest), second = connect_as(kGuest), third = connect_as(kGuest), other = connect_as(kHost);
  EXPECT_EQ(text(attach(first, "")), "taken");
  EXPECT_EQ(text(attach(second, "taken")), "taken");
  EXPECT_EQ(text(attach(third, "others")), "io.gpuctl.PermissionDenied");
  EXPECT_EQ(text(attach(other, "")), "/");
  EXPECT_EQ(text(call(first, "GetMpsPercentage", {{"slice", "others"}})), "io.gpuctl.PermissionDenied");
  EXPECT_EQ(call(first, "GetMpsPercentage", {{"slice", ""}}).error, "");
}

TEST_F(JoinTest, AProgramIsMovedIntoTheSliceThatTakesItsUserIn) {
  create("taken", {{"owner_uid", kHost}, {"join", "user:4000001"}});
  create("others", {{"owner_uid", kHost}});
  auto program = connect_as(kGuest);
  EXPECT_EQ(text(attach(program, "/")), "/");
  const auto moved = [&](const char* where) {
    return call(program, "Move", {{"pid", ::getpid()}, {"slice", where}}).error;
  };
  EXPECT_EQ(moved("taken"), "");
  EXPECT_EQ(moved("others"), "io.gpuctl.PermissionDenied");
  EXPECT_EQ(moved(""), "io.gpuctl.NoSuchSlice");
}

TEST_F(JoinTest, ASliceTakesInWhatSaysThatItRunsTheFileThatItNamesIfItMayBeThere) {
  create("mine", {{"owner_uid", kGuest}, {"join", "exe:/usr/bin/train"}});
  create("theirs", {{"owner_uid", kHost}, {"join", "exe:/usr/bin/serve"}});
  create("all", {{"join", "user:4000001"}});
  const auto slice = [&](const char* asked, const char* exe, bool resumed = false) {
    auto program = connect_as(kGuest);
    EXPECT_EQ(call(program, "GetMpsPercentage", {{"slice", ""}, {"exe", exe}}).error, "");
    return text(
        call(program, "Attach", {{"slice", asked}, {"device_uuids", {kUuid}}, {"resumed", resumed}, {"exe", exe}}));
  };
  EXPECT_EQ(slice("", "/usr/bin/train"), "mine");
  EXPECT_EQ(slice("", "/usr/bin/serve"), "all") << "it may not be in that slice";
  EXPECT_EQ(slice("theirs", "/usr/bin/serve"), "io.gpuctl.PermissionDenied");
  EXPECT_EQ(slice("mine", "/usr/bin/train", true), "mine") << "as one that comes back";
  EXPECT_EQ(slice("mine", "", true), "mine") << "whatever it says then";
  auto silent = connect_as(kGuest);
  EXPECT_EQ(text(attach(silent, "")), "all") << "an older library says nothing";
}

TEST_F(JoinTest, WhatNoSliceTakesInIsRefusedWhereThereIsNoDefault) {
  stop();
  Config config;
  config.daemon.default_slice = "";
  start({}, config);
  create("taken", {{"join", "user:4000001"}});
  EXPECT_NE(json::serialize(call("GetStatus").parameters.at("notes")).find("programs in no slice are refused"),
            std::string::npos);
  auto guest = connect_as(kGuest), other = connect_as(kHost), names = connect_as(kHost), back = connect_as(kHost);
  EXPECT_EQ(text(attach(guest, "")), "taken");
  EXPECT_EQ(text(call(other, "GetMpsPercentage", {{"slice", ""}})), "io.gpuctl.NoSlice");
  EXPECT_EQ(text(attach(other, "")), "io.gpuctl.NoSlice");
  EXPECT_EQ(text(attach(names, "/")), "/") << "that is a slice";
  auto mistyped = connect_as(kHost);
  for (const char* slice : {"takne", "taken"}) {
    EXPECT_EQ(text(call(mistyped, "GetMpsPercentage", {{"slice", slice}})), "io.gpuctl.NoSlice") << slice;
    EXPECT_EQ(text(attach(mistyped, slice)), "io.gpuctl.NoSlice") << slice;
  }
  EXPECT_EQ(text(attach(back, "taken", true)), "/") << "it runs already, and would go on without limits";
  const json::array events = call("Events").parameters.at("events").as_array();
  const auto refused = std::ranges::count_if(events, [](const json::value& event) {
    return event.at("kind") == "refused" && event.at("text").as_string().ends_with("NoSlice");
  });
  EXPECT_EQ(refused, 1) << "of one process, however often it asks: " << json::serialize(events);
}

/// Its library says the name of the slice that it was in.
TEST_F(JoinTest, AProgramThatComesBackAndIsTakenInNoLongerIsWhereOneThatStartsWouldBe) {
  create("taken", {{"owner_uid", kHost}, {"join", "user:4000001"}});
  {
    auto program = connect_as(kGuest);
    EXPECT_EQ(text(attach(program, "")), "taken");
    stop();
  }
  start_again();
  {
    auto program = connect_as(kGuest);
    EXPECT_EQ(text(attach(program, "taken", true)), "taken");
  }
  create("instead", {{"owner_uid", kHost}});
  join("taken", "none");
  join("instead", "user:4000001");
  auto program = connect_as(kGuest), starts = connect_as(kGuest);
  EXPECT_EQ(text(attach(program, "taken", true)), "instead");
  EXPECT_EQ(text(attach(starts, "taken")), "io.gpuctl.PermissionDenied");
}

}  // namespace
}  // namespace gpuctl::daemon
