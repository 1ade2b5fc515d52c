#include "gpuctld/manager/driver_limits.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <set>

#include "sched/slice_tree.h"

namespace gpuctl::daemon::driver_limits_test {
namespace {

using namespace std::chrono_literals;

constexpr char kScope[] = "/user.slice/gpuctl-run-7-00000001.scope";

/// Two GPUs, and slices a and b, of which a has memory_max 100. A group of N programs is limited to 100 + N.
class TheDriversLimits : public testing::Test {
 protected:
  TheDriversLimits() {
    for (const char* path : {"a", "b"}) EXPECT_TRUE(tree_.create(path, {}, {.uid = 0, .gids = {}}));
    begin();
  }
  ~TheDriversLimits() override { ::unlink(file_.c_str()); }

  void begin(std::chrono::milliseconds after_restart = 0ms) {
    limits_ = std::make_unique<DriverLimits>(
        context_, std::vector<std::string>{"GPU-1", "GPU-2"}, file_,
        DriverLimits::Hooks{.programs = [this] { return programs_; },
                            .slices = [this]() -> const sched::Slices& { return tree_.slices(); },
                            .limits =
                                [this](const std::string& slice, std::size_t programs) {
                                  std::vector<sched::DriverLimit> both(2);
                                  if (max_ > 0 && slice == "a") both[0].hard = max_ + programs;
                                  return both;
                                },
                            .exists = [this](const std::string& cgroup) { return there_.contains(cgroup); },
                            .anybody = [this] { return anybody_; },
                            .ask =
                                [this](const GroupLimits& wanted, const LimitsHelper::Done& done) {
                                  for (const LimitOnGpu& gpu : wanted.gpus)
                                    asked_ += wanted.cgroup + " " + gpu.uuid + " " +
                                              (gpu.limit.limits() ? std::to_string(gpu.limit.hard) : "none") +
                                              (gpu.first ? " first\n" : "\n");
                                  done(answer_);
                                },
                            .log = [this](const std::string& line) { logged_ += line + "\n"; }},
        DriverLimits::Pace{.rest = 0ms, .again = 1h, .after_restart = after_restart});
  }
  /// What it asks for after a change.
  std::string asks() {
    asked_.clear();
    limits_->look_soon();
    context_.restart();
    context_.run();
    return asked_;
  }

  const std::string file_ = testing::TempDir() + "limits-" + std::to_string(::getpid()) + ".json";
  boost::asio::io_context context_;
  sched::SliceTree tree_{sched::CapSM{132}, 0};
  std::vector<sched::GroupedProgram> programs_;
  std::set<std::string> there_{kScope};
  std::uint64_t max_ = 100;
  Result<std::vector<std::string>> answer_ = std::vector<std::string>{""};
  bool anybody_ = true;
  std::string asked_, logged_;
  std::unique_ptr<DriverLimits> limits_;
};

TEST_F(TheDriversLimits, FollowTheProgramsAndTheSlice) {
  EXPECT_EQ(asks(), "");
  programs_ = {{kScope, "a"}};
  EXPECT_EQ(asks(), std::string(kScope) + " GPU-1 101 first\n");
  EXPECT_EQ(asks(), "") << "nothing changed";
  EXPECT_EQ(limits_->of("a", 0), 101u);
  EXPECT_FALSE(limits_->of("a", 1));
  EXPECT_FALSE(limits_->of("b", 0));
  programs_.push_back({kScope, "a"});
  EXPECT_EQ(asks(), std::string(kScope) + " GPU-1 102\n");
  max_ = 50;
  EXPECT_EQ(asks(), std::string(kScope) + " GPU-1 52\n");
  max_ = 0;
  EXPECT_EQ(asks(), std::string(kScope) + " GPU-1 none\n");
  EXPECT_FALSE(limits_->of("a", 0));
  EXPECT_EQ(logged_, "");
}

TEST_F(TheDriversLimits, GoWhereAProgramIsMovedOutOfTheSlice) {
  programs_ = {{kScope, "a"}};
  asks();
  programs_ = {{kScope, "b"}};
  EXPECT_EQ(asks(), std::string(kScope) + " GPU-1 none\n");
  programs_ = {{kScope, "a"}};
  EXPECT_EQ(asks(), std::string(kScope) + " GPU-1 101 first\n");
  programs_.push_back({kScope, "b"});
  EXPECT_EQ(asks(), std::string(kScope) + " GPU-1 none\n") << "its programs are of two slices";
}

TEST_F(TheDriversLimits, StayWithoutProgramsWhileTheGroupIsThere) {
  programs_ = {{kScope, "a"}};
  asks();
  programs_.clear();
  EXPECT_EQ(asks(), "");
  max_ = 50;
  EXPECT_EQ(asks(), std::string(kScope) + " GPU-1 51\n");
  programs_ = {{kScope, "a"}};
  EXPECT_EQ(asks(), std::string(kScope) + " GPU-1 51\n") << "it may be another group of that name";
  programs_.clear();
  there_.clear();
  EXPECT_EQ(asks(), "");
  EXPECT_FALSE(limits_->of("a", 0));
}

TEST_F(TheDriversLimits, AreSaidOnceWhereTheyFail) {
  programs_ = {{kScope, "a"}};
  answer_ = std::vector<std::string>{"NVML answers NO_PERMISSION"};
  EXPECT_NE(asks(), "");
  EXPECT_EQ(logged_, std::string("the driver does not limit the memory of control group ") + kScope +
                         " for slice a, the library alone does: NVML answers NO_PERMISSION\n");
  EXPECT_EQ(limits_->problem(),
            "slice a: the driver does not limit the memory of its control group, the library alone does: NVML answers "
            "NO_PERMISSION");
  EXPECT_FALSE(limits_->of("a", 0));
  EXPECT_EQ(asks(), "") << "it is not asked again and again";
  programs_.push_back({kScope, "a"});
  EXPECT_NE(asks(), "");
  EXPECT_EQ(std::ranges::count(logged_, '\n'), 1);
  answer_ = std::vector<std::string>{""};
  programs_.pop_back();
  EXPECT_NE(asks(), "");
  EXPECT_FALSE(limits_->problem());
  answer_ = fail("it hangs");
  max_ = 50;
  EXPECT_NE(asks(), "");
  EXPECT_EQ(limits_->of("a", 0), 101u) << "as it was";
}

TEST_F(TheDriversLimits, AreNoneWhereNobodySetsThem) {
  programs_ = {{kScope, "a"}};
  anybody_ = false;
  EXPECT_EQ(asks(), "");
  anybody_ = true;
  answer_ = std::vector<std::string>();
  EXPECT_NE(asks(), "");
  max_ = 50;
  EXPECT_EQ(asks(), "") << "the driver has no such limits";
  EXPECT_EQ(logged_, "");
  EXPECT_FALSE(limits_->problem());
}

TEST_F(TheDriversLimits, OfTheDaemonBeforeAreKnown) {
  programs_ = {{kScope, "a"}};
  asks();
  limits_->stop();
  begin(300ms);
  programs_.push_back({kScope, "a"});
  asked_.clear();
  limits_->look_soon();
  context_.restart();
  context_.run_for(100ms);
  EXPECT_EQ(asked_, "") << "others may come back";
  context_.run();
  EXPECT_EQ(asked_, std::string(kScope) + " GPU-1 102\n");
  limits_->stop();
  programs_.clear();
  max_ = 0;
  begin();
  EXPECT_EQ(asks(), std::string(kScope) + " GPU-1 none\n");
  EXPECT_NE(::access(file_.c_str(), F_OK), 0) << "nothing is kept";
}

}  // namespace
}  // namespace gpuctl::daemon::driver_limits_test
