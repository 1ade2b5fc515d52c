// What programs of an earlier daemon hold, until they come back.
#include "gpuctld/restart/returning.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>

#include "base/random.h"
#include "gpuctld/testing/fake_program.h"

namespace gpuctl::daemon {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

/// A new daemon. The one before had granted all of the device to a program in "batch", which lives.
class ReturningTest : public testing::Test {
 protected:
  ReturningTest() {
    pid_ = ::fork();
    if (pid_ == 0)
      for (;;) ::pause();
    holder_ = {pid_, start_of(pid_), ::geteuid()};
    returning_.expect({.attached = {{holder_, "batch", "GPU-0", {.sms = 132}}}, .worked = {}}, kMs);
  }
  ~ReturningTest() override {
    returning_.stop();
    if (pid_ != 0) end();
  }
  void end() {
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  }
  Client* attach(const ProcessIdentity& process, std::uint64_t now_ns) {
    Client client =
        std::move(Client::create({process.pid, process.uid, "program", process.start}, "batch", {0}).value());
    return &returning_.attach(std::move(client), {}, now_ns);
  }

  boost::asio::io_context context_{1};
  Scheduler scheduler_{{gpu(132)}, briefly_held_ls_and_batch()};
  std::vector<std::string> log_;
  int freed_ = 0;
  Returning returning_{context_, scheduler_, [this](const std::string& line) { log_.push_back(line); },
                       [this] { ++freed_; }};
  pid_t pid_;
  ProcessIdentity holder_;
};

TEST_F(ReturningTest, NobodyGetsWhatTheyHoldUntilTheirProcessEnds) {
  ASSERT_EQ(returning_.expected(), 1u);
  FakeProgram ls(scheduler_, "ls");
  ls.demand(8);
  for (const std::uint64_t now : {2 * kMs, 500 * kMs, 2900 * kMs}) {  // long after any deadline to give SMs back
    scheduler_.update(now);
    EXPECT_EQ(ls.granted(), 0u);
    EXPECT_TRUE(scheduler_.check_deadlines(now).empty());
  }
  EXPECT_EQ(ls.decided(), 8u);
  end();
  context_.run_one_for(std::chrono::seconds(30));
  EXPECT_EQ(freed_, 1);
  EXPECT_EQ(returning_.expected(), 0u);
  EXPECT_EQ(ls.granted(), 132u);  // it is alone
}

TEST_F(ReturningTest, AProgramThatComesBackInheritsItAndGivesItBackAsUsual) {
  FakeProgram ls(scheduler_, "ls");
  ls.demand(8);
  scheduler_.update(2 * kMs);
  Client* back = attach(holder_, 3 * kMs);
  EXPECT_EQ(returning_.expected(), 0u);
  EXPECT_EQ(scheduler_.clients().size(), 2u);
  const ipc::StubMap page = ipc::StubMap::map(back->memfd()).value();
  EXPECT_EQ(ipc::load(page->grant[0].polled.capsm), 132u);  // it goes on as it was, until it follows this page
  scheduler_.update(500 * kMs);
  EXPECT_EQ(ls.granted(), 0u);
  ipc::store(page->usage[0].demand, 132u);
  ipc::store(page->usage[0].applied_epoch, ipc::load(page->grant[0].epoch));
  scheduler_.update(501 * kMs);
  EXPECT_EQ(ipc::load(page->grant[0].polled.capsm), 124u);
  EXPECT_EQ(ls.granted(), 0u);
  ipc::store(page->usage[0].applied_epoch, ipc::load(page->grant[0].epoch));
  scheduler_.update(502 * kMs);
  EXPECT_EQ(ls.granted(), 8u);
}

TEST_F(ReturningTest, OneThatComesBackIdleFreesWhatItHeld) {
  FakeProgram ls(scheduler_, "ls");
  ls.demand(132);
  Client* back = attach(holder_, 3 * kMs);
  const ipc::StubMap page = ipc::StubMap::map(back->memfd()).value();
  ipc::store(page->usage[0].applied_epoch, ipc::load(page->grant[0].epoch));
  scheduler_.update(4 * kMs);
  EXPECT_EQ(ls.granted(), 132u);
}

/// A slice with a limit of 4 GiB for two programs that lived under the daemon before, one of which had 3 GiB.
class ReturningMemory : public testing::Test {
 protected:
  static constexpr std::uint64_t kGiB = 1u << 30;
  ReturningMemory() {
    sched::SliceTree tree(sched::CapSM{132}, 0);
    EXPECT_TRUE(tree.create("limited", {.memory_max = 4 * kGiB}, kRoot));
    scheduler_.set_tree(std::move(tree), 1);
    // This process, which lives, is as good as any.
    returning_.expect({.attached = {{self_, "limited", "GPU-0", {.sms = 0, .memory = 3 * kGiB}}}, .worked = {}}, kMs);
    EXPECT_EQ(returning_.expected(), 1u);
  }
  ~ReturningMemory() override { returning_.stop(); }
  Client& attach(const ProcessIdentity& process) {
    Client client =
        std::move(Client::create({process.pid, process.uid, "program", process.start}, "limited", {0}).value());
    return returning_.attach(std::move(client), {}, kMs);
  }
  bool hold(Client& client, std::uint64_t bytes) { return scheduler_.hold_memory(client, 0, bytes, 2 * kMs).granted; }

  const ProcessIdentity self_{::getpid(), start_of(::getpid()), ::geteuid()};
  boost::asio::io_context context_{1};
  Gpu gpu_{0, "Test GPU", "GPU-0", true, 132, 16 * kGiB};
  Scheduler scheduler_{{gpu_}, sched::SliceTree(sched::CapSM{132}, 0)};
  Returning returning_{context_, scheduler_, [](const std::string&) {}, [] {}};
};

TEST_F(ReturningMemory, NobodyIsPromisedWhatAProgramHasThatIsNotBackYet) {
  Client& other = attach({self_.pid, self_.start + 1, self_.uid});
  EXPECT_FALSE(hold(other, 3 * kGiB));
  EXPECT_TRUE(hold(other, kGiB));
}

TEST_F(ReturningMemory, AProgramThatComesBackHasWhatItWasPromised) {
  Client& back = attach(self_);
  Client& other = attach({self_.pid, self_.start + 1, self_.uid});
  EXPECT_EQ(returning_.expected(), 0u);
  EXPECT_FALSE(hold(other, 2 * kGiB)) << "before the page says anything";
  EXPECT_TRUE(hold(other, kGiB));
  EXPECT_TRUE(hold(back, 3 * kGiB));
  EXPECT_FALSE(hold(back, 4 * kGiB));
}

TEST_F(ReturningMemory, WhatItSaysWhenItIsBackCounts) {
  Client& back = attach(self_);
  Client& other = attach({self_.pid, self_.start + 1, self_.uid});
  const ipc::StubMap page = ipc::StubMap::map(back.memfd()).value();
  ipc::store(page->usage[0].memory, std::uint64_t{kGiB});
  scheduler_.update(2 * kMs);
  EXPECT_TRUE(hold(other, 3 * kGiB));
}

/// What is recorded is the most that each had lately. They had it one after the other.
TEST_F(ReturningTest, ProgramsThatHadItAllInTurnDoNotHaveItAllAtOnce) {
  const ProcessIdentity self{::getpid(), start_of(::getpid()), ::geteuid()};
  Scheduler scheduler({gpu(132)}, briefly_held_ls_and_batch());
  Returning returning(
      context_, scheduler, [](const std::string&) {}, [] {});
  returning.expect(
      {.attached = {{holder_, "batch", "GPU-0", {.sms = 132}}, {self, "ls", "GPU-0", {.sms = 100}}}, .worked = {}},
      kMs);
  std::vector<ipc::StubMap> pages;
  const auto attach = [&](const ProcessIdentity& process, const std::string& slice) {
    Client client = std::move(Client::create({process.pid, process.uid, "", process.start}, slice, {0}).value());
    pages.push_back(ipc::StubMap::map(returning.attach(std::move(client), {}, kMs).memfd()).value());
  };
  const auto granted = [&] {
    std::uint32_t sum = 0;
    for (const ipc::StubMap& page : pages) sum += ipc::load(page->grant[0].polled.capsm);
    return sum;
  };
  attach(holder_, "batch");
  EXPECT_LE(granted(), 32u);
  attach(self, "ls");
  for (std::uint64_t ms = 2; ms < 6; ++ms) {
    EXPECT_LE(granted(), 132u);
    for (const ipc::StubMap& page : pages) {
      ipc::store(page->usage[0].demand, 132u);
      ipc::store(page->usage[0].applied_epoch, ipc::load(page->grant[0].epoch));
    }
    scheduler.update(ms * kMs);
  }
  EXPECT_EQ(granted(), 132u) << "and in the end all of it is in use";
  returning.stop();
}

TEST_F(ReturningTest, OnlyWorkCountsAsWork) {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  ASSERT_TRUE(tree.create("ls", {.reserve = 8}, kRoot));
  ASSERT_TRUE(tree.create("batch", {.reserve = 100, .reserve_hold_ms = 60'000, .weight = 200}, kRoot));
  scheduler_.set_all(std::move(tree), {.always_preemptible = true}, false, 2 * kMs);
  FakeProgram ls(scheduler_, "ls");
  ls.demand(132);
  Client& back = *attach(holder_, 3 * kMs);
  const ipc::StubMap page = ipc::StubMap::map(back.memfd()).value();
  ipc::store(page->usage[0].applied_epoch, ipc::load(page->grant[0].epoch));
  scheduler_.update(4 * kMs);
  EXPECT_EQ(ls.granted(), 132u) << "it came back idle, so it holds nothing";
}

TEST_F(ReturningTest, AHoldOfTheDaemonBeforeGoesOn) {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  ASSERT_TRUE(tree.create("ls", {.reserve = 8, .reserve_hold_ms = 1000}, kRoot));
  ASSERT_TRUE(tree.create("batch", {}, kRoot));
  Scheduler scheduler({gpu(132)}, tree);
  Returning returning(
      context_, scheduler, [](const std::string&) {}, [] {});
  returning.expect({.attached = {}, .worked = {{"ls", "GPU-0", 500 * kMs}}}, 1000 * kMs);
  FakeProgram batch(scheduler.add(FakeProgram::make("batch", {0}), 1000 * kMs));
  batch.demand(132);
  scheduler.update(1000 * kMs);
  EXPECT_EQ(batch.granted(), 124u);
  scheduler.update(1501 * kMs);
  EXPECT_EQ(batch.granted(), 132u);
}

TEST_F(ReturningTest, AnotherProcessInheritsNothing) {
  attach({holder_.pid, holder_.start + 1, holder_.uid}, 3 * kMs);
  attach({holder_.pid, holder_.start, holder_.uid + 1}, 3 * kMs);
  EXPECT_EQ(returning_.expected(), 1u);
  EXPECT_EQ(scheduler_.clients().size(), 3u);
}

TEST_F(ReturningTest, WhoseProcessIsGoneOrAnotherHoldsNothing) {
  Returning other(
      context_, scheduler_, [](const std::string&) {}, [] {});
  ProcessIdentity reused = holder_, stranger = holder_;
  ++reused.start;
  ++stranger.uid;
  other.expect({.attached = {{reused, "batch", "GPU-0", {.sms = 132}},
                             {stranger, "batch", "GPU-0", {.sms = 132}},
                             {holder_, "batch", "GPU-7", {.sms = 132}},
                             {holder_, "batch", "GPU-0", {}}},
                .worked = {}},
               kMs);
  EXPECT_EQ(other.expected(), 0u);
  other.expect({.attached = {{holder_, "no such slice", "GPU-0", {.sms = 132}}}, .worked = {}}, kMs);
  EXPECT_EQ(other.expected(), 1u);
  EXPECT_EQ(scheduler_.clients().back().slice(), "/");
  other.stop();
}

TEST_F(ReturningTest, TheGracePeriodEnds) {
  FakeProgram ls(scheduler_, "ls");
  ls.demand(8);
  scheduler_.update(2 * kMs);
  EXPECT_EQ(ls.granted(), 0u);
  context_.run_one_for(std::chrono::seconds(60));
  EXPECT_EQ(returning_.expected(), 0u);
  EXPECT_EQ(freed_, 1);
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_NE(log_[0].find("has not come back within 3 s"), std::string::npos) << log_[0];
  EXPECT_EQ(ls.granted(), 132u);
}

TEST(RecordedHoldings, AreNeverLessThanWhatProgramsMayUse) {
  Scheduler scheduler{{gpu(132)}, briefly_held_ls_and_batch()};
  std::vector<FakeProgram> programs;
  programs.reserve(6);
  std::map<const Client*, std::uint32_t> file;
  int records = 0;
  const auto check = [&] {
    for (const FakeProgram& program : programs) {
      EXPECT_LE(program.granted(), file[program.client]);
      EXPECT_LE(program.client->slots()[0].may_use(), file[program.client]);
    }
  };
  const auto record = [&] {
    check();  // no page says more yet
    ++records;
    for (const Client& client : scheduler.clients()) file[&client] = client.slots()[0].to_record.sms;
    return true;
  };
  scheduler.before_growth([&](std::uint64_t) { return record(); });
  for (int i = 0; i < 6; ++i) programs.emplace_back(scheduler, i % 2 == 0 ? "ls" : "batch");
  Random random{7};
  for (std::uint64_t step = 1; step < 2000; ++step) {
    FakeProgram& program = programs[random.below(programs.size())];
    const std::uint64_t what = random.below(4);
    if (what == 0) program.demand(static_cast<std::uint32_t>(random.below(133)));
    if (what == 1) program.apply();
    if (what == 2 && scheduler.record_is_stale()) scheduler.record(step * kMs);
    scheduler.update(step * kMs);
    check();
  }
  EXPECT_GT(records, 6);
}

}  // namespace
}  // namespace gpuctl::daemon
