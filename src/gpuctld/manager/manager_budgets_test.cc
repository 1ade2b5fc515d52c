// What one user may take of the daemon, seen over a real socket.
#include <sys/stat.h>

#include <future>

#include "gpuctld/testing/manager_fixture.h"
#include "ipc/interface.h"

namespace gpuctl::daemon {
namespace {

constexpr std::uint32_t kNobody = 65534;

class BudgetsTest : public ManagerTest {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  }
  static ipc::Call set_weight(int weight) {
    return {.method = "io.gpuctl.SetSlice", .parameters = {{"path", "ls"}, {"settings", {{"weight", weight}}}}};
  }
};

/// The daemon is held until all calls are there, so that it finds them at the same time.
TEST_F(BudgetsTest, CallsThatWaitOnOneConnectionHoldUpNoOther) {
  constexpr int kMany = 140, kBefore = 5000;  // so many the daemon reads at once
  create("ls", {{"weight", kBefore}});
  auto many = connect(), one = connect();
  call(many, "GetStatus");
  call(one, "GetStatus");
  std::promise<void> held, all_there;
  boost::asio::post(context_, [&] {
    held.set_value();
    all_there.get_future().wait();
  });
  held.get_future().wait();
  for (int weight = 1; weight <= kMany; ++weight) {
    ipc::Call call = set_weight(weight);
    call.oneway = true;
    ASSERT_TRUE(many.send(call));
  }
  ASSERT_TRUE(one.send({.method = "io.gpuctl.GetSlice", .parameters = {{"path", "ls"}}}));
  all_there.set_value();
  const std::int64_t seen = one.receive().value().parameters.at("slice").at("weight").as_int64();
  EXPECT_TRUE(seen <= 10 || seen == kBefore) << seen;
  EXPECT_EQ(call(many, "GetSlice", {{"path", "ls"}}).parameters.at("slice").at("weight"), kMany) << "all are served";
}

TEST_F(BudgetsTest, RootIsAnsweredWhileAUserIsInDebt) {
  auto user = connect_as(kNobody);
  const auto calls = static_cast<int>(kBudgetOfUser.calls.burst) + 500;
  std::thread flood([&] {
    for (int i = 0; i < calls; ++i)
      if (!user.send({.method = "io.gpuctl.GetSlice", .parameters = {{"path", "no"}}, .oneway = true})) return;
  });
  for (int i = 0; i < 50; ++i) {
    const std::string path = "s" + std::to_string(i);
    create(path, {{"weight", 7}});
    EXPECT_EQ(slice(path).at("weight"), 7);
  }
  flood.join();
  EXPECT_EQ(call(user, "GetSlice", {{"path", "s3"}}).parameters.at("slice").at("weight"), 7)
      << "the user waits, and is answered";
}

TEST_F(BudgetsTest, AUsersMessageIsShortUnlessItIsAClients) {
  const json::object parameters{{"path", std::string(2 * kMaxStrangerBytes, 'x')}};
  EXPECT_EQ(call("GetSlice", parameters).error, "io.gpuctl.NoSuchSlice") << "root's may be longer";
  auto user = connect_as(kNobody);
  const auto reply = user.call({.method = "io.gpuctl.GetSlice", .parameters = parameters});
  EXPECT_TRUE(!reply || reply->error == ipc::kInvalidParameter);
  FakeProgram program(connect_as(kNobody), "/");
  EXPECT_EQ(call(program.connection, "GetSlice", parameters).error, "io.gpuctl.NoSuchSlice");
}

TEST_F(BudgetsTest, AUserHasSoManyProgramsAttached) {
  std::vector<FakeProgram> programs;
  for (std::size_t i = 0; i < kMaxClientsOfUser; ++i) {
    programs.emplace_back(connect_as(kNobody), "/");
    ASSERT_EQ(programs.back().reply.error, "") << i;
  }
  const FakeProgram further(connect_as(kNobody), "/");
  EXPECT_EQ(further.reply.error, "io.gpuctl.InvalidValue");
  EXPECT_EQ(further.reply.parameters.at("reason"),
            "user 65534 has 256 programs attached, as many as one user may have");
  EXPECT_EQ(FakeProgram(connect(), "/").reply.error, "");
  EXPECT_LT(logged("joined slice"), 256) << "nor does each of them have a line in the log";
}

TEST_F(BudgetsTest, WhatIsKeptOfUsersKernelsIsBounded) {
  const auto report = [](FakeProgram& program, int from) {
    json::array kernels;
    for (int i = from; i < from + 1000; ++i) {
      ipc::Kernel kernel{.name = std::to_string(i) + std::string(900, 'n'), .module = std::string(900, 'm')};
      kernels.emplace_back(to_json(kernel));
    }
    EXPECT_TRUE(program.connection.send(
        {.method = "io.gpuctl.ReportKernels", .parameters = {{"kernels", std::move(kernels)}}, .oneway = true}));
  };
  constexpr std::uint32_t kUsers = 3;
  std::vector<FakeProgram> programs;
  for (std::uint32_t i = 0; i < 6 * kUsers; ++i) {
    FakeProgram& program = programs.emplace_back(connect_as(kNobody - i / 6), "/");
    report(program, 0);
    report(program, 1000);
    EXPECT_EQ(call(program.connection, "GetSlice", {{"path", "no"}}).error, "io.gpuctl.NoSuchSlice");
  }
  struct Kept {
    std::size_t of_client = 0, of_user = 0, all = 0;
  };
  std::promise<Kept> kept;
  boost::asio::post(context_, [&] {
    Kept found;
    std::map<std::uint32_t, std::size_t> users;
    for (const Client& client : manager_->scheduler().clients()) {
      found.of_client = std::max(found.of_client, client.kernel_text());
      found.of_user = std::max(found.of_user, users[client.identity().uid] += client.kernel_text());
      found.all += client.kernel_text();
    }
    kept.set_value(found);
  });
  const Kept found = kept.get_future().get();
  EXPECT_LE(found.of_client, kMaxKernelTextOfClient);
  EXPECT_GT(found.of_client, kMaxKernelTextOfClient / 2);
  EXPECT_LE(found.of_user, kMaxKernelTextOfUser);
  EXPECT_GT(found.of_user, kMaxKernelTextOfUser / 2);
  EXPECT_LE(found.all, kMaxKernelTextOfAll);
  EXPECT_GT(found.all, kMaxKernelTextOfAll / 2);
}

TEST_F(BudgetsTest, AUserNeitherJoinsNorSeesWhatIsAnothers) {
  create("ours", {});
  const FakeProgram roots(connect(), "ours"), refused(connect_as(kNobody), "ours");
  EXPECT_EQ(roots.reply.error, "");
  EXPECT_EQ(refused.reply.error, "io.gpuctl.PermissionDenied");
  auto stranger = connect_as(kNobody);
  EXPECT_EQ(call(stranger, "GetMpsPercentage", {{"slice", "ours"}}).error, "io.gpuctl.PermissionDenied")
      << "nor is an MPS started for who may not join";
  auto user = connect_as(kNobody);
  const auto seen = [this](ipc::Connection& viewer) {
    return std::string(call(viewer, "ListClients").parameters.at("clients").at(0).at("command").as_string());
  };
  EXPECT_EQ(seen(user), "");
  auto root = connect();
  EXPECT_NE(seen(root), "");
}

TEST_F(BudgetsTest, AProgramSaysItsCommandLineInOneLineOfSoMuch) {
  auto program = connect_as(kNobody);
  json::object said{{"slice", "/"}, {"device_uuids", {kUuid}}, {"resumed", false}};
  said["command"] = "./a\x1b[2J\u009b\u202e" + std::string(1000, 'x');
  EXPECT_EQ(call(program, "Attach", said).error, "");
  const auto clients = call("ListClients").parameters.at("clients");
  const std::string_view command = clients.at(0).at("command").as_string();
  EXPECT_TRUE(command.starts_with("./a [2J  x")) << command;
  EXPECT_LE(command.size(), 256u);
  EXPECT_EQ(logged("\x1b"), 0);
}

TEST_F(BudgetsTest, AUserForgetsItsOwnKernelsAndRootAll) {
  auto user = connect_as(kNobody);
  EXPECT_EQ(call(user, "ForgetKernels").parameters.at("forgotten"), 0);
  EXPECT_EQ(call(user, "ForgetKernels", {{"uid", kNobody}}).error, "");
  const auto refused = call(user, "ForgetKernels", {{"uid", 0}});
  EXPECT_EQ(refused.error, "io.gpuctl.PermissionDenied");
  EXPECT_EQ(refused.parameters.at("uid"), 0);
  EXPECT_EQ(call("ForgetKernels", {{"uid", kNobody}}).error, "");
  EXPECT_EQ(call("ForgetKernels").error, "");
}

}  // namespace
}  // namespace gpuctl::daemon
