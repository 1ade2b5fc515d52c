#include "gpuctld/host/group_limits.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <optional>

namespace gpuctl::daemon::group_limits_test {
namespace {

constexpr char kGpu[] = "GPU-f1f2f3f4-f5f6-f7f8-f9fa-fbfcfdfeff00", kUnit[] = "/gpuctl-test.slice/x.service";

/// With the NVML of testing/fake_nvml.c, what it was told last.
class GroupLimitsHelper : public testing::Test {
 protected:
  GroupLimitsHelper() { ::setenv("FAKE_NVML_SET", file_.c_str(), 1); }
  ~GroupLimitsHelper() override {
    for (const char* name : {"FAKE_NVML_SET", "FAKE_NVML_ERROR", "FAKE_NVML_HARD"}) ::unsetenv(name);
    ::unlink(file_.c_str());
  }
  std::string told() const {
    std::string line;
    std::getline(std::ifstream(file_), line);
    ::unlink(file_.c_str());
    return line;
  }
  static GroupLimits wanted(std::uint64_t soft, std::uint64_t hard, bool first = false) {
    return {.cgroup = kUnit, .gpus = {{.uuid = kGpu, .limit = {soft, hard}, .first = first}}};
  }
  static Result<std::vector<std::string>> answer_to(const GroupLimits& wanted, const char* nvml = GPUCTL_FAKE_NVML) {
    return read_limits_answer(limits_answer(limits_question(wanted), nvml));
  }

  const std::string file_ = testing::TempDir() + "told-" + std::to_string(::getpid());
  const std::string directory_ = std::string("/sys/fs/cgroup") + kUnit;
};

using Outcomes = std::vector<std::string>;

TEST_F(GroupLimitsHelper, TellsTheDriver) {
  EXPECT_EQ(*answer_to(wanted(5, 7)), Outcomes{""});
  EXPECT_EQ(told(), directory_ + " 5 7");
  EXPECT_EQ(*answer_to(wanted(0, sched::kNoDriverLimit)), Outcomes{""});
  EXPECT_EQ(told(), directory_ + " 0 18446744073709551615");
}

TEST_F(GroupLimitsHelper, SaysWhatTheDriverRefuses) {
  ::setenv("FAKE_NVML_ERROR", "4", 1);
  EXPECT_EQ(*answer_to(wanted(0, 7)), Outcomes{"NVML answers NO_PERMISSION"});
  ::setenv("FAKE_NVML_ERROR", "77", 1);
  EXPECT_EQ(*answer_to(wanted(0, 7)), Outcomes{"NVML answers error 77"});
  EXPECT_EQ(*answer_to(wanted(0, sched::kNoDriverLimit)), Outcomes{""}) << "the group is gone, and with it its limit";
}

TEST_F(GroupLimitsHelper, LeavesWhatSomebodyElseHasSet) {
  ::setenv("FAKE_NVML_HARD", "9", 1);
  EXPECT_EQ(*answer_to(wanted(0, 7, true)), Outcomes{"somebody else has set a limit"});
  EXPECT_EQ(told(), "");
  EXPECT_EQ(*answer_to(wanted(0, 7, false)), Outcomes{""});
  ::setenv("FAKE_NVML_HARD", "18446744073709551615", 1);
  EXPECT_EQ(*answer_to(wanted(0, 7, true)), Outcomes{""});
}

TEST_F(GroupLimitsHelper, HasNothingToSayOfOtherGpusAndDrivers) {
  GroupLimits of_another = wanted(0, 7);
  of_another.gpus[0].uuid = "GPU-0";
  EXPECT_EQ(*answer_to(of_another), Outcomes{""});
  EXPECT_EQ(told(), "");
  EXPECT_EQ(*answer_to(wanted(0, 7), "libc.so.6"), Outcomes());
  EXPECT_EQ(*answer_to(wanted(0, 7), "/nonexistent/libnvidia-ml.so.1"), Outcomes());
}

TEST_F(GroupLimitsHelper, TakesPathsOfControlGroupsAlone) {
  for (const char* path : {"/a", "/system.slice/a.service", "/a/b..c/...", "/a b"})
    EXPECT_TRUE(is_cgroup_path(path)) << path;
  for (const char* path : {"", "/", "a", "//", "/a/", "/a//b", "/..", "/../a", "/a/..", "/a/./b", "/a\n", "/a\xff"})
    EXPECT_FALSE(is_cgroup_path(path)) << path;
  EXPECT_FALSE(is_cgroup_path("/" + std::string(kMostCgroupPath, 'a')));
  for (const char* question :
       {"", "x", "[]", "{}", R"({"cgroup": "/../x", "gpus": []})", R"({"cgroup": "/x", "gpus": [{"uuid": "GPU-0"}]})",
        R"({"cgroup": "/x", "gpus": [{"uuid": "GPU-0", "soft": "0", "hard": "-1", "first": false}]})",
        R"({"cgroup": "/x", "gpus": [], "more": 1})"}) {
    const auto answer = read_limits_answer(limits_answer(question, GPUCTL_FAKE_NVML));
    EXPECT_FALSE(answer) << question;
  }
}

/// Asks a program that answers so.
std::optional<Result<Outcomes>> ask_one_that(const std::string& does, std::chrono::milliseconds patience) {
  const std::string file = testing::TempDir() + "limits-" + std::to_string(::getpid());
  std::ofstream(file) << "#!/bin/sh\nread question\n" << does << "\n";
  ::chmod(file.c_str(), 0700);
  boost::asio::io_context context;
  LimitsHelper helper(context, {.socket = "", .program = file, .patience = patience});
  std::optional<Result<Outcomes>> heard;
  helper.ask({.cgroup = "/a", .gpus = {}}, [&](const auto& outcomes) { heard = outcomes; });
  context.run();
  ::unlink(file.c_str());
  return heard;
}

TEST(LimitsHelper, HearsWhatCameOfIt) {
  const auto heard = ask_one_that(R"(echo '{"outcomes": ["", "no"]}')", std::chrono::minutes(1));
  ASSERT_TRUE(heard && *heard);
  EXPECT_EQ(**heard, (Outcomes{"", "no"}));
}

TEST(LimitsHelper, BearsOneThatFailsOrHangs) {
  for (const char* does : {"exit 1", "echo x", "exec sleep 600"}) {
    const auto heard = ask_one_that(does, std::chrono::milliseconds(300));
    EXPECT_TRUE(heard && !*heard) << does;
  }
}

TEST(LimitsHelper, AsksNobodyWhereNobodyIs) {
  boost::asio::io_context context;
  EXPECT_FALSE(LimitsHelper(context, {}).is_there());
  EXPECT_FALSE(LimitsHelper(context, {.socket = "/nonexistent/limits", .program = "/bin/true"}).is_there());
  LimitsHelper helper(context, {.socket = "/dev/null"});
  EXPECT_TRUE(helper.is_there());
  bool failed = false;
  helper.ask({.cgroup = "/a", .gpus = {}}, [&](const auto& outcomes) { failed = !outcomes; });
  context.run();
  EXPECT_TRUE(failed);
}

}  // namespace
}  // namespace gpuctl::daemon::group_limits_test
