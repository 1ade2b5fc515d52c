#include "gpuctld/host/group_limits.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

namespace gpuctl::daemon::group_limits_test {
namespace {

constexpr char kGpu[] = "GPU-f1f2f3f4-f5f6-f7f8-f9fa-fbfcfdfeff00", kUnit[] = "/gpuctl-test.slice/x.service";

/// With the NVML of testing/fake_nvml.c, what it was told last, and a tree that has that control group.
class GroupLimitsHelper : public testing::Test {
 protected:
  GroupLimitsHelper() {
    std::filesystem::create_directories(tree_ + kUnit);
    ::setenv("FAKE_NVML_SET", file_.c_str(), 1);
  }
  ~GroupLimitsHelper() override {
    for (const char* name : {"FAKE_NVML_SET", "FAKE_NVML_ERROR"}) ::unsetenv(name);
    ::unlink(file_.c_str());
    std::filesystem::remove_all(tree_);
  }
  std::string told() const {
    std::string line;
    std::getline(std::ifstream(file_), line);
    ::unlink(file_.c_str());
    return line;
  }
  std::vector<std::string> answer_to(std::uint64_t bytes, const char* uuid = kGpu,
                                     const char* nvml = GPUCTL_FAKE_NVML) const {
    const GroupLimits wanted{.cgroup = kUnit, .gpus = {{.uuid = uuid, .bytes = bytes}}};
    return read_limits_answer(limits_answer(limits_question(wanted), nvml, tree_)).value();
  }

  const std::string file_ = testing::TempDir() + "told-" + std::to_string(::getpid());
  const std::string tree_ = testing::TempDir() + "cgroups-" + std::to_string(::getpid());
};

using Outcomes = std::vector<std::string>;

TEST_F(GroupLimitsHelper, TellsTheDriver) {
  EXPECT_EQ(answer_to(7), Outcomes{kLimitSet});
  EXPECT_EQ(told(), tree_ + kUnit + " 0 7");
  EXPECT_EQ(answer_to(sched::kNoDriverLimit), Outcomes{kLimitSet});
  EXPECT_EQ(told(), tree_ + kUnit + " 0 18446744073709551615");
}

TEST_F(GroupLimitsHelper, SaysWhatTheDriverRefuses) {
  ::setenv("FAKE_NVML_ERROR", "4", 1);
  EXPECT_EQ(answer_to(7), Outcomes{"NVML answers NO_PERMISSION"});
  ::setenv("FAKE_NVML_ERROR", "77", 1);
  EXPECT_EQ(answer_to(sched::kNoDriverLimit), Outcomes{"NVML answers error 77"});
  std::filesystem::remove_all(tree_);
  EXPECT_EQ(answer_to(7), Outcomes{kNothingLimited}) << "the group is gone, and with it its limit";
}

TEST_F(GroupLimitsHelper, HasNothingToSayOfOtherGpusAndDrivers) {
  EXPECT_EQ(answer_to(7, "GPU-0"), Outcomes{kNothingLimited});
  EXPECT_EQ(told(), "");
  EXPECT_EQ(answer_to(7, kGpu, "libc.so.6"), Outcomes());
  EXPECT_EQ(answer_to(7, kGpu, "/nonexistent/libnvidia-ml.so.1"), Outcomes());
}

TEST_F(GroupLimitsHelper, TakesPathsOfControlGroupsAlone) {
  for (const char* path : {"/a", "/system.slice/a.service", "/a/b..c/...", "/a b"})
    EXPECT_TRUE(is_cgroup_path(path)) << path;
  for (const char* path : {"", "/", "a", "//", "/a/", "/a//b", "/..", "/../a", "/a/..", "/a/./b", "/a\n", "/a\xff"})
    EXPECT_FALSE(is_cgroup_path(path)) << path;
  EXPECT_FALSE(is_cgroup_path("/" + std::string(kMostCgroupPath, 'a')));
  for (const char* question :
       {"", "x", "[]", "{}", R"({"cgroup": "/../x", "gpus": []})", R"({"cgroup": "/x", "gpus": [{"uuid": "GPU-0"}]})",
        R"({"cgroup": "/x", "gpus": [{"uuid": "GPU-0", "bytes": "-1"}]})",
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
  const auto heard = ask_one_that(R"(echo '{"outcomes": ["set", "no"]}')", std::chrono::minutes(1));
  ASSERT_TRUE(heard && *heard);
  EXPECT_EQ(**heard, (Outcomes{"set", "no"}));
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

TEST(LimitsHelper, MayGoWhileItAsks) {
  boost::asio::io_context context;
  bool heard = false;
  LimitsHelper(context, {.socket = "/dev/null"}).ask({.cgroup = "/a", .gpus = {}}, [&](const auto&) { heard = true; });
  context.run();
  EXPECT_FALSE(heard);
}

}  // namespace
}  // namespace gpuctl::daemon::group_limits_test
