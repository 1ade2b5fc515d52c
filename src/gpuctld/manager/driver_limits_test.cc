#include "gpuctld/manager/driver_limits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <thread>

#include "sched/slice_tree.h"

namespace gpuctl::daemon::driver_limits_test {
namespace {

using namespace std::chrono_literals;

constexpr char kUnit[] = "/system.slice/x.service", kOther[] = "/system.slice/y.service";

/// Two GPUs, and slices a, which takes in x.service and has memory_max 100 on the first, and b, which takes in
/// y.service. A group of N programs is limited to 100 + N.
class TheDriversLimits : public testing::Test {
 protected:
  TheDriversLimits() {
    for (const auto& [path, join] : {std::pair{"a", "unit:x.service"}, {"b", "unit:y.service"}}) {
      SliceSettings settings;
      settings.join = join;
      EXPECT_TRUE(tree_.create(path, settings, {.uid = 0, .gids = {}}));
    }
  }
  void join(const char* slice, const char* what) {
    SliceSettings settings;
    settings.join = what;
    EXPECT_TRUE(tree_.change(slice, settings, {.uid = 0, .gids = {}}));
  }
  DriverLimits::Hooks hooks() {
    return {.slices = [this]() -> const sched::Slices& { return tree_.slices(); },
            .programs =
                [this] {
                  ++read_;
                  return programs_;
                },
            .limits =
                [this](const std::string& slice, std::size_t programs) {
                  std::vector<std::uint64_t> both(2, sched::kNoDriverLimit);
                  if (max_.contains(slice)) both[0] = max_[slice] + programs;
                  return both;
                },
            .id_of = [this](const std::string& cgroup) { return ids_[cgroup]; },
            .anybody = [this] { return anybody_; },
            .ask =
                [this](const GroupLimits& wanted, const LimitsHelper::Done& done) {
                  for (const auto& [uuid, bytes] : wanted.gpus)
                    asked_ += wanted.cgroup.substr(wanted.cgroup.rfind('/') + 1) + " " + uuid + " " +
                              (bytes == sched::kNoDriverLimit ? "none" : std::to_string(bytes)) + "\n";
                  done_ = done;
                  if (!hangs_) done(answer_);
                },
            .log = [this](const std::string& line) { logged_ += line + "\n"; }};
  }
  /// What it asks for after a change.
  std::string asks() {
    asked_.clear();
    if (!limits_)
      limits_ = std::make_unique<DriverLimits>(context_, std::vector<std::string>{"1", "2"}, hooks(), pace_);
    limits_->look_soon();
    context_.restart();
    context_.run_for(20ms);
    return asked_;
  }
  /// What it asks for next without one.
  std::string asks_later() {
    asked_.clear();
    context_.restart();
    while (asked_.empty() && context_.run_one_for(10s) > 0) continue;
    return asked_;
  }

  boost::asio::io_context context_;
  sched::SliceTree tree_{sched::CapSM{132}, 0};
  DriverLimits::Pace pace_{.rest = 0ms, .lower = 0ms, .again = 1h};
  std::vector<sched::GroupedProgram> programs_;
  std::map<std::string, std::uint64_t> ids_{{kUnit, 7}, {kOther, 8}}, max_{{"a", 100}};
  Result<std::vector<std::string>> answer_ = std::vector<std::string>{kLimitSet};
  bool anybody_ = true, hangs_ = false;
  LimitsHelper::Done done_;
  int read_ = 0;
  std::string asked_, logged_;
  std::unique_ptr<DriverLimits> limits_;
};

TEST_F(TheDriversLimits, FollowTheProgramsAndTheSlice) {
  EXPECT_EQ(asks(), "");
  programs_ = {{kUnit, "a"}, {kOther, "b"}};
  EXPECT_EQ(asks(), "x.service 1 101\n");
  EXPECT_EQ(asks(), "") << "nothing changed";
  EXPECT_EQ(limits_->of("a", 0), 101u);
  EXPECT_FALSE(limits_->of("a", 1));
  EXPECT_FALSE(limits_->of("b", 0));
  programs_.push_back({kUnit, "a"});
  EXPECT_EQ(asks(), "x.service 1 102\n");
  max_["a"] = 50;
  EXPECT_EQ(asks(), "x.service 1 52\n");
  max_.clear();
  EXPECT_EQ(asks(), "x.service 1 none\n");
  EXPECT_FALSE(limits_->of("a", 0));
  EXPECT_EQ(logged_, "");
}

TEST_F(TheDriversLimits, GoWithTheJoinAndWhereAProgramOfAnotherSliceIs) {
  programs_ = {{kUnit, "a"}};
  asks();
  programs_.push_back({kUnit, "b"});
  EXPECT_EQ(asks(), "x.service 1 none\n");
  programs_.pop_back();
  EXPECT_EQ(asks(), "x.service 1 101\n");
  join("a", "unit:z.service");
  EXPECT_EQ(asks(), "x.service 1 none\n");
  programs_.clear();
  join("a", "unit:x.service");
  EXPECT_EQ(asks(), "") << "nothing is known of it any more";
}

TEST_F(TheDriversLimits, StayWithoutProgramsWhileTheGroupIsThere) {
  programs_ = {{kUnit, "a"}};
  asks();
  programs_.clear();
  EXPECT_EQ(asks(), "");
  max_["a"] = 50;
  EXPECT_EQ(asks(), "x.service 1 51\n");
  ids_[kUnit] = 0;
  EXPECT_EQ(asks(), "");
  EXPECT_FALSE(limits_->of("a", 0)) << "with the group its limit is gone";
  ids_[kUnit] = 9;
  EXPECT_EQ(asks(), "x.service 1 51\n") << "it is another group of that name";
  ids_[kUnit] = 0;
  join("a", "user:1000");
  EXPECT_EQ(asks(), "");
}

TEST_F(TheDriversLimits, AreRaisedAtOnceAndLoweredLater) {
  pace_.lower = 300ms;
  programs_ = {{kUnit, "a"}};
  EXPECT_EQ(asks(), "") << "others may come";
  programs_.push_back({kUnit, "a"});
  EXPECT_EQ(asks_later(), "x.service 1 102\n");
  programs_.pop_back();
  EXPECT_EQ(asks(), "");
  programs_ = {{kUnit, "a"}, {kUnit, "a"}, {kUnit, "a"}};
  EXPECT_EQ(asks(), "x.service 1 103\n");
  programs_.resize(1);
  EXPECT_EQ(asks(), "");
  EXPECT_EQ(asks_later(), "x.service 1 101\n");
}

TEST_F(TheDriversLimits, RestSeveralTimesWhatAQuestionTook) {
  hangs_ = true;
  programs_ = {{kUnit, "a"}};
  EXPECT_NE(asks(), "");
  const auto began = std::chrono::steady_clock::now();
  programs_.push_back({kUnit, "a"});
  EXPECT_EQ(asks(), "") << "one at a time";
  std::this_thread::sleep_for(50ms);
  done_(answer_);
  EXPECT_EQ(asks_later(), "x.service 1 102\n");
  EXPECT_GE(std::chrono::steady_clock::now() - began, 50ms * 4);
}

TEST_F(TheDriversLimits, AreAskedForByTurns) {
  max_["b"] = 200;
  programs_ = {{kUnit, "a"}, {kOther, "b"}};
  hangs_ = true;
  EXPECT_EQ(asks(), "x.service 1 101\n");
  programs_.push_back({kUnit, "a"});
  done_(answer_);
  EXPECT_EQ(asks_later(), "y.service 1 201\n");
}

TEST_F(TheDriversLimits, AreSaidOnceWhereTheyFailAndTriedLater) {
  pace_.again = 300ms;
  programs_ = {{kUnit, "a"}};
  answer_ = std::vector<std::string>{"NVML answers NO_PERMISSION"};
  EXPECT_NE(asks(), "");
  EXPECT_EQ(logged_, std::string("the driver does not limit the memory of control group ") + kUnit +
                         " for slice a, the library alone does: NVML answers NO_PERMISSION\n");
  EXPECT_EQ(limits_->problem(),
            "slice a: the driver does not limit the memory of its control group, the library alone does: NVML answers "
            "NO_PERMISSION");
  EXPECT_FALSE(limits_->of("a", 0));
  programs_.push_back({kUnit, "a"});
  EXPECT_EQ(asks(), "") << "it is not asked again and again";
  EXPECT_EQ(asks_later(), "x.service 1 102\n");
  EXPECT_EQ(std::ranges::count(logged_, '\n'), 1);
  answer_ = std::vector<std::string>{kLimitSet};
  EXPECT_EQ(asks_later(), "x.service 1 102\n");
  EXPECT_FALSE(limits_->problem());
  answer_ = fail("it hangs");
  max_["a"] = 50;
  EXPECT_EQ(asks(), "x.service 1 52\n");
  EXPECT_EQ(limits_->of("a", 0), 102u) << "as it was";
}

TEST_F(TheDriversLimits, OfAGpuThatTheDriverDoesNotKnowAreNone) {
  programs_ = {{kUnit, "a"}};
  answer_ = std::vector<std::string>{kNothingLimited};
  EXPECT_NE(asks(), "");
  EXPECT_FALSE(limits_->of("a", 0));
  EXPECT_FALSE(limits_->problem());
  EXPECT_EQ(asks(), "") << "it was told";
  EXPECT_EQ(logged_, "");
}

TEST_F(TheDriversLimits, AreNoneWhereNobodySetsThem) {
  programs_ = {{kUnit, "a"}};
  anybody_ = false;
  EXPECT_EQ(asks(), "");
  EXPECT_EQ(read_, 0) << "nobody looks where programs are";
  anybody_ = true;
  answer_ = std::vector<std::string>();
  EXPECT_NE(asks(), "");
  read_ = 0;
  max_["a"] = 50;
  EXPECT_EQ(asks(), "") << "the driver has no such limits";
  EXPECT_EQ(read_, 0);
  EXPECT_EQ(logged_, "");
  EXPECT_FALSE(limits_->problem());
}

TEST_F(TheDriversLimits, ConcernNoProgramWhereNoSliceNamesAGroup) {
  join("a", "user:1000");
  join("b", "user:1001");
  programs_ = {{kUnit, "a"}};
  EXPECT_EQ(asks(), "");
  EXPECT_EQ(read_, 0);
}

}  // namespace
}  // namespace gpuctl::daemon::driver_limits_test
