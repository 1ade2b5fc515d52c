// Kill and ReportFault, through a manager in this process and programs in others.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>

#include "gpuctld/manager/event_kinds.h"
#include "gpuctld/testing/fake_mps_control.h"
#include "gpuctld/testing/manager_fixture.h"
#include "gpuctld/testing/pinned.h"
#include "ipc/codec.h"

namespace gpuctl::daemon {
namespace {

class ManagerEndTest : public ManagerTest {
 protected:
  ~ManagerEndTest() override {
    for (const pid_t pid : children_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }

  /// A process that runs `body` and then waits. Returns once `body` is done.
  pid_t child(const std::function<void()>& body) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      body();
      (void)!::write(ends[1], "x", 1);
      for (;;) ::pause();
    }
    ::close(ends[1]);
    char ready = 0;
    EXPECT_EQ(::read(ends[0], &ready, 1), 1);
    ::close(ends[0]);
    children_.push_back(pid);
    return pid;
  }
  /// A program in a slice, with a demand of 132 SMs; it ignores SIGTERM if `stubborn`.
  pid_t program(const std::string& slice, bool stubborn = false) {
    return child([&] {
      if (stubborn) ::signal(SIGTERM, SIG_IGN);
      auto* attached = new FakeProgram(connect(), slice);  // until the process ends
      attached->demand(132);
    });
  }
  /// The signal that ended the process.
  static int signal_of(pid_t pid) {
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }
  static std::string text(const json::value& value) { return json::serialize(value); }

  std::vector<pid_t> children_;
};

TEST_F(ManagerEndTest, AProgramIsEndedByItsPid) {
  create("ls", {{"reserve", 8}, {"reserve_mode", "strict"}});
  create("batch", {});
  FakeProgram stays(connect(), "batch");
  stays.demand(132);
  const pid_t pid = program("batch");
  EXPECT_TRUE(eventually([&] { return stays.granted() == 62; }));
  const auto reply = call("Kill", {{"pid", pid}});
  ASSERT_EQ(reply.error, "");
  const json::object ended = reply.parameters.at("clients").at(0).as_object();
  EXPECT_EQ(ended.at("pid"), pid);
  EXPECT_EQ(ended.at("slice"), "batch");
  EXPECT_EQ(ended.at("mps"), "not active");
  EXPECT_EQ(text(ended.at("signals")), R"(["SIGTERM"])");
  EXPECT_EQ(ended.at("ended"), true);
  EXPECT_TRUE(eventually([&] { return stays.granted() == 124; }));
  EXPECT_EQ(signal_of(pid), SIGTERM);
  EXPECT_EQ(call("Kill", {{"pid", pid}}).error, "io.gpuctl.NoSuchClient");
}

TEST_F(ManagerEndTest, ASliceIsEndedWithAllBelowItAndNothingBeside) {
  create("batch", {});
  create("batch/a", {});
  create("batch-2", {});
  const pid_t in = program("batch"), below = program("batch/a"), beside = program("batch-2");
  const auto reply = call("Kill", {{"slice", "batch"}, {"signal", "int"}});
  EXPECT_EQ(reply.parameters.at("clients").as_array().size(), 2u);
  EXPECT_EQ(signal_of(in), SIGINT);
  EXPECT_EQ(signal_of(below), SIGINT);
  EXPECT_EQ(::waitpid(beside, nullptr, WNOHANG), 0);
  EXPECT_EQ(text(call("Kill", {{"slice", "batch"}}).parameters), R"({"clients":[]})");
  EXPECT_EQ(call("Kill", {{"slice", "/"}}).parameters.at("clients").as_array().size(), 1u);
}

TEST_F(ManagerEndTest, WhoStaysIsKilledAndTheDaemonAnswersMeanwhile) {
  create("batch", {});
  const pid_t pid = program("batch", true);
  auto asking = connect();
  ASSERT_TRUE(asking.send({.method = "io.gpuctl.Kill", .parameters = {{"pid", pid}, {"timeout_ms", 300}}}));
  ASSERT_TRUE(asking.send({.method = "io.gpuctl.ListSlices"}));
  EXPECT_TRUE(eventually([&] { return logged("is ended by " + user_words(::geteuid())) == 1; }));
  EXPECT_EQ(slice("batch").at("clients"), 1);  // answered on another connection while this one waits
  const auto killed = asking.receive();
  ASSERT_TRUE(killed) << killed.error().message;
  EXPECT_EQ(text(killed->parameters.at("clients").at(0).at("signals")), R"(["SIGTERM","SIGKILL"])");
  EXPECT_TRUE(asking.receive()->parameters.contains("slices"));  // in order
  EXPECT_EQ(signal_of(pid), SIGKILL);
}

TEST_F(ManagerEndTest, WhoAsksAndGoesLeavesTheOrderBehind) {
  create("batch", {});
  const pid_t pid = program("batch", true);
  {
    auto asking = connect();
    ASSERT_TRUE(asking.send({.method = "io.gpuctl.Kill", .parameters = {{"pid", pid}, {"timeout_ms", 100}}}));
    EXPECT_TRUE(eventually([&] { return logged("is ended by " + user_words(::geteuid())) == 1; }));
  }
  EXPECT_EQ(signal_of(pid), SIGKILL);
  EXPECT_EQ(call("GetStatus").error, "");
}

/// Each order would take a descriptor for a minute, and write its lines.
TEST_F(ManagerEndTest, AProgramIsEndedOnceHoweverManyWantIt) {
  create("batch", {});
  const pid_t pid = program("batch", true);
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const auto order = [&](ipc::Connection& asking, int ms) {
    return asking.send({.method = "io.gpuctl.Kill", .parameters = {{"pid", pid}, {"timeout_ms", ms}}});
  };
  auto first = connect();
  ASSERT_TRUE(order(first, 60000));
  EXPECT_TRUE(eventually([&] { return logged("is ended by " + user_words(::geteuid())) == 1; }));
  const auto before = descriptors();
  for (int i = 0; i < 50; ++i) {
    auto asking = connect();
    ASSERT_TRUE(order(asking, 60000));
    EXPECT_TRUE(eventually([&] { return logged("is ended by " + user_words(::geteuid())) == 2 + i; }));
  }
  EXPECT_TRUE(eventually([&] { return descriptors() <= before; })) << "who has gone leaves nothing behind";
  auto second = connect();
  ASSERT_TRUE(order(second, 0));
  for (auto* asking : {&first, &second}) {
    const auto told = asking->receive();
    ASSERT_TRUE(told) << told.error().message;
    EXPECT_EQ(told->parameters.at("clients").at(0).at("ended"), true);
  }
  EXPECT_EQ(signal_of(pid), SIGKILL);
}

TEST_F(ManagerEndTest, StoppingTheDaemonDoesNotWaitForAnEnd) {
  create("batch", {});
  const pid_t pid = program("batch", true);
  auto asking = connect();
  ASSERT_TRUE(asking.send({.method = "io.gpuctl.Kill", .parameters = {{"pid", pid}, {"timeout_ms", 60000}}}));
  EXPECT_TRUE(eventually([&] { return logged("is ended by " + user_words(::geteuid())) == 1; }));
  stop();
}

TEST_F(ManagerEndTest, WrongOrdersAreNamed) {
  EXPECT_EQ(call("Kill", {}).error, "io.gpuctl.InvalidValue");
  EXPECT_EQ(call("Kill", {{"pid", 1}, {"slice", "/"}}).error, "io.gpuctl.InvalidValue");
  EXPECT_EQ(call("Kill", {{"pid", 0}}).error, "io.gpuctl.InvalidValue");
  EXPECT_EQ(call("Kill", {{"pid", 1}, {"force", true}}).error, "io.gpuctl.InvalidValue");
  EXPECT_EQ(call("Kill", {{"pid", 1}, {"timeout_ms", 60001}}).error, "io.gpuctl.InvalidValue");
  EXPECT_EQ(call("Kill", {{"pid", 1}, {"signal", "STOP"}}).error, "io.gpuctl.InvalidValue");
  EXPECT_EQ(call("Kill", {{"pid", 1}}).error, "io.gpuctl.NoSuchClient");
  EXPECT_EQ(call("Kill", {{"slice", "nowhere"}}).error, "io.gpuctl.NoSuchSlice");
}

TEST_F(ManagerEndTest, OthersMayNotUnlessTheyOwnTheSlice) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become somebody else";
  ::chmod(directory_.c_str(), 0755);
  ::chmod(socket_.c_str(), 0666);
  create("theirs", {{"owner_uid", 65534}});
  create("theirs/sub", {{"owner_uid", 0}});
  create("ours", {});
  const pid_t ours = program("ours"), below = program("theirs/sub"), root = program("/");
  const auto as_nobody = [&](json::object parameters) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t asker = ::fork();
    if (asker == 0) {
      (void)!::setgid(65534);
      (void)!::setuid(65534);
      const std::string error = call("Kill", std::move(parameters)).error + " ";
      (void)!::write(ends[1], error.data(), error.size());
      ::_exit(0);
    }
    ::close(ends[1]);
    char said[200] = {};
    (void)!::read(ends[0], said, sizeof said - 1);
    ::close(ends[0]);
    ::waitpid(asker, nullptr, 0);
    return std::string(said);
  };
  EXPECT_EQ(as_nobody({{"pid", ours}}), "io.gpuctl.PermissionDenied ");
  EXPECT_EQ(as_nobody({{"pid", root}}), "io.gpuctl.PermissionDenied ");
  EXPECT_EQ(as_nobody({{"slice", "/"}}), "io.gpuctl.PermissionDenied ");
  for (const pid_t pid : {ours, below, root}) EXPECT_EQ(::waitpid(pid, nullptr, WNOHANG), 0);
  EXPECT_EQ(as_nobody({{"slice", "theirs"}}), " ");
  EXPECT_EQ(signal_of(below), SIGTERM);
  const pid_t own = child([&] {
    (void)!::setgid(65534);
    (void)!::setuid(65534);
    new FakeProgram(connect(), "/");
  });
  EXPECT_EQ(as_nobody({{"pid", own}}), " ");
  EXPECT_EQ(signal_of(own), SIGTERM);
}

/// The page of a program in another process, mapped here too, to be read.
const ipc::Stub* page_of(pid_t pid) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry, gone).string().find("memfd:gpuctl-stub") == std::string::npos) continue;
    const ipc::UniqueFd fd(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));
    const void* page = ::mmap(nullptr, ipc::kStubBytes, PROT_READ, MAP_SHARED, fd.get(), 0);
    if (page != MAP_FAILED) return static_cast<const ipc::Stub*>(page);
  }
  ADD_FAILURE() << "process " << pid << " has no stub page";
  return nullptr;
}

/// A program whose kernels are evicted: another one wants all SMs, and its slice comes first.
class KilledWhileEvictedTest : public ManagerEndTest {
 protected:
  KilledWhileEvictedTest() {
    create("first", {{"reserve", 132}});
    create("batch", {});
    evicted_ = child([&] {
      auto* attached = new FakeProgram(connect(), "batch", true);
      for (auto& limit : attached->stub->grant[0].polled.limits) limit = {0, 3};
      attached->demand(132);
      ::signal(SIGTERM, SIG_IGN);
    });
    page_ = page_of(evicted_);
    if (page_ == nullptr) throw std::runtime_error("no page");
    gpu_.emplace(page_);
    EXPECT_TRUE(eventually([&] { return capsm() == 132; }));
    first_ = std::make_unique<FakeProgram>(connect(), "first");
    first_->demand(132);
    EXPECT_TRUE(eventually([&] { return capsm() == 0; }));
  }
  std::uint32_t capsm() const { return ipc::load(page_->grant[0].polled.capsm); }
  /// As what is left of it on the GPU reads it.
  bool unlimited() const { return gpu_->open(0); }
  pid_t evicted_;
  const ipc::Stub* page_ = nullptr;  // never unmapped
  std::optional<Pinned> gpu_;
  std::unique_ptr<FakeProgram> first_;
};

TEST_F(KilledWhileEvictedTest, WhatIsLeftOfItMayGoOnToItsEnd) {
  ::kill(evicted_, SIGKILL);
  EXPECT_TRUE(eventually([&] { return unlimited(); }));
  EXPECT_TRUE(eventually([&] { return first_->granted() == 132; }));
}

TEST_F(KilledWhileEvictedTest, SoItMayIfItIsEndedAndMindsOnlySigkill) {
  const auto reply = call("Kill", {{"pid", evicted_}, {"timeout_ms", 50}});
  EXPECT_EQ(text(reply.parameters.at("clients").at(0).at("signals")), R"(["SIGTERM","SIGKILL"])");
  EXPECT_TRUE(eventually([&] { return unlimited(); }));
}

TEST_F(KilledWhileEvictedTest, ASignalThatItMindsNotLeavesItsGrantAlone) {
  auto asking = connect();
  ASSERT_TRUE(asking.send({.method = "io.gpuctl.Kill", .parameters = {{"pid", evicted_}, {"timeout_ms", 60000}}}));
  EXPECT_TRUE(eventually([&] { return logged("is ended by " + user_words(::geteuid())) == 1; }));
  EXPECT_EQ(slice("batch").at("clients"), 1);
  EXPECT_EQ(capsm(), 0u);
}

TEST_F(ManagerEndTest, AProgramThatLosesItsConnectionAloneKeepsItsGrant) {
  create("batch", {});
  std::optional<FakeProgram> program(std::in_place, connect(), "batch");
  program->demand(132);
  EXPECT_TRUE(eventually([&] { return program->granted() == 132; }));
  call("SetSlice", {{"path", "batch"}, {"settings", {{"max", 40}}}});
  const ipc::StubMap page = std::move(program->stub);
  EXPECT_EQ(ipc::load(page->grant[0].polled.capsm), 40u);
  program.reset();
  EXPECT_TRUE(eventually([&] { return slice("batch").at("clients") == 0; }));
  EXPECT_EQ(ipc::load(page->grant[0].polled.capsm), 40u);
}

class ManagerEndUnderMpsTest : public ManagerEndTest {
 protected:
  ManagerEndUnderMpsTest() {
    stop();
    fake_.serve();
    start({});
    fake_.write("servers", "10\n");
    create("batch", {});
  }
  FakeMpsControl fake_;
};

TEST_F(ManagerEndUnderMpsTest, TheWorkIsTerminatedBeforeTheSignal) {
  const pid_t pid = program("batch");
  fake_.write("clients.10", std::to_string(pid) + "\n");
  // terminate_client notes that the process is still there.
  fake_.write("terminate", "kill -0 $client && echo $client > lived; : > clients.$server\n");
  const auto reply = call("Kill", {{"pid", pid}});
  EXPECT_EQ(reply.parameters.at("clients").at(0).at("mps"), "terminated");
  EXPECT_EQ(fake_.read("lived"), std::to_string(pid) + "\n");
  EXPECT_EQ(signal_of(pid), SIGTERM);
}

TEST_F(ManagerEndUnderMpsTest, WithoutTheControlProgramTheSignalComesAllTheSame) {
  const pid_t pid = program("batch");
  fake_.write("begin", "echo broken; exit 3\n");
  const auto reply = call("Kill", {{"pid", pid}});
  EXPECT_EQ(reply.parameters.at("clients").at(0).at("mps"), json::value(fake_.program() + ": exit status 3: broken"));
  EXPECT_EQ(logged("its work on the GPU was not terminated"), 1);
  EXPECT_EQ(signal_of(pid), SIGTERM);
}

TEST_F(ManagerEndUnderMpsTest, AnMpsThatAnotherUserStartedIsNamedInTheAnswerAndInTheLog) {
  const pid_t pid = program("batch");
  fake_.write("clients.10", std::to_string(pid) + "\n");
  fake_.write("terminate", FakeMpsControl::kRefuses);
  const auto reply = call("Kill", {{"pid", pid}});
  EXPECT_EQ(reply.parameters.at("clients").at(0).at("mps"),
            json::value("MPS was started by another user, and obeys that user and root alone: gpuctld must run as that "
                        "user, or with --mps-control-socket (gpuctld.service(8))"));
  EXPECT_EQ(logged("MPS was started by another user"), 1);
  EXPECT_EQ(signal_of(pid), SIGTERM);
}

TEST_F(ManagerEndUnderMpsTest, WhoDisobeysIsStoppedInTheSameWay) {
  stop();
  Config strict;
  strict.daemon.evict_deadline = strict.daemon.longest_block_task = 1ms;
  strict.daemon.on_disobey = OnDisobey::stop;
  start({}, strict);
  create("ls", {{"reserve", 8}});
  FakeProgram ls(connect(), "ls");
  const pid_t pid = child([&] {
    auto* attached = new FakeProgram(connect(), "batch");
    ipc::store(attached->stub->usage[0].holding, 132u);
    attached->demand(132);
  });
  EXPECT_TRUE(eventually([&] { return slice("batch").at("granted") == 132; }));
  fake_.write("clients.10", std::to_string(pid) + "\n");
  fake_.write("terminate", "kill -0 $client && echo $client > lived; : > clients.$server\n");
  ls.demand(8);
  EXPECT_EQ(signal_of(pid), SIGKILL);
  EXPECT_EQ(fake_.read("lived"), std::to_string(pid) + "\n");
  EXPECT_EQ(logged("has not given back SMs within its deadline: it is stopped"), 1);
}

ipc::Call fault(json::value device, json::value error, json::value name) {
  return {.method = "io.gpuctl.ReportFault",
          .parameters = {{"device", std::move(device)}, {"error", std::move(error)}, {"name", std::move(name)}},
          .oneway = true};
}

TEST_F(ManagerEndTest, AFaultFreesTheGrantIsCountedAndLogged) {
  create("ls", {{"reserve", 8}, {"reserve_mode", "strict"}});
  create("batch", {});
  FakeProgram broken(connect(), "batch"), other(connect(), "batch");
  broken.demand(132);
  other.demand(132);
  EXPECT_TRUE(eventually([&] { return broken.granted() == 62 && other.granted() == 62; }));
  ipc::store(broken.stub->usage[0].outstanding, 3u);
  ASSERT_TRUE(broken.connection.send(fault(0, 700, "CUDA_ERROR_ILLEGAL_ADDRESS")));
  EXPECT_TRUE(eventually([&] { return other.granted() == 124; }));
  EXPECT_EQ(slice("batch").at("faults"), 1);
  EXPECT_EQ(slice("/").at("faults"), 0);
  EXPECT_EQ(call("GetStatus").parameters.at("faults"), 1);
  EXPECT_EQ(logged("CUDA_ERROR_ILLEGAL_ADDRESS (700); its grant is free"), 1);
  ASSERT_TRUE(broken.connection.send(fault(0, 700, "CUDA_ERROR_ILLEGAL_ADDRESS")));  // the same, from another thread
  EXPECT_EQ(call(broken.connection, "ListSlices").error, "");
  EXPECT_EQ(slice("batch").at("faults"), 1);
  broken.demand(131);  // a new context
  EXPECT_TRUE(eventually([&] { return broken.granted() > 0; }));
  ASSERT_TRUE(broken.connection.send(fault(0, 719, "CUDA_ERROR_LAUNCH_FAILED")));
  EXPECT_TRUE(eventually([&] { return slice("batch").at("faults") == 2; }));
}

TEST_F(ManagerEndTest, WrongFaultsAreRefusedAndCountNothing) {
  FakeProgram program(connect(), "/");
  const auto error = [&](json::value device, json::value number, json::value name) {
    ipc::Call wrong = fault(std::move(device), std::move(number), std::move(name));
    wrong.oneway = false;
    return program.connection.call(wrong)->error;
  };
  EXPECT_EQ(error(-1, 700, "x"), "io.gpuctl.InvalidValue");
  EXPECT_EQ(error(1, 700, "x"), "io.gpuctl.InvalidValue");
  EXPECT_EQ(error(0, -1, "x"), "io.gpuctl.InvalidValue");
  EXPECT_EQ(error(0, 1ll << 31, "x"), "io.gpuctl.InvalidValue");
  EXPECT_EQ(error(0, 700, 5), "io.gpuctl.InvalidValue");
  EXPECT_EQ(call("ReportFault", {{"device", 0}, {"error", 1}, {"name", "x"}}).error, "io.gpuctl.NotAttached");
  EXPECT_EQ(call("GetStatus").parameters.at("faults"), 0);
  EXPECT_EQ(error(0, 1, "x\nroot: all is well"), "");
  EXPECT_EQ(logged("x root: all is well (1)"), 1);
}

TEST_F(ManagerEndTest, FaultsGoWithTheirSlice) {
  create("batch", {});
  {
    FakeProgram broken(connect(), "batch");
    ASSERT_TRUE(broken.connection.send(fault(0, 700, "x")));
    EXPECT_TRUE(eventually([&] { return slice("batch").at("faults") == 1; }));
  }
  EXPECT_TRUE(eventually([&] { return call("DeleteSlice", {{"path", "batch"}}).error.empty(); }));
  create("batch", {});
  EXPECT_EQ(slice("batch").at("faults"), 0);
  EXPECT_EQ(call("GetStatus").parameters.at("faults"), 1);
}

}  // namespace
}  // namespace gpuctl::daemon
