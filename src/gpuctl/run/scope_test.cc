#include "gpuctl/run/scope.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace gpuctl::cli {
namespace {

using Words = std::vector<std::string>;

TEST(Scope, TheToolBecomesThisProgramAgainWithoutTheOption) {
  ScopePlan plan{
      .unit = "gpuctl-run-7-0a", .self = "/usr/bin/gpuctl", .socket = "s", .command = {"a b", "--", "-x", ""}};
  EXPECT_EQ(scope_command(plan), (Words{"systemd-run", "--scope", "--quiet", "--collect", "--no-ask-password", "--user",
                                        "--unit=gpuctl-run-7-0a", "--", "/usr/bin/gpuctl", "--socket", "s", "run", "--",
                                        "a b", "--", "-x", ""}));
  plan.of_user = false;
  plan.slice = "batch/train";
  plan.quiet = plan.may_expand = true;
  EXPECT_EQ(scope_command(plan), (Words{"systemd-run",
                                        "--scope",
                                        "--quiet",
                                        "--collect",
                                        "--no-ask-password",
                                        "--expand-environment=no",
                                        "--unit=gpuctl-run-7-0a",
                                        "--",
                                        "/usr/bin/gpuctl",
                                        "--socket",
                                        "s",
                                        "run",
                                        "--slice",
                                        "batch/train",
                                        "--quiet",
                                        "--",
                                        "a b",
                                        "--",
                                        "-x",
                                        ""}));
}

TEST(Scope, ATrialAsksForTheSameAndRunsNothing) {
  Words words = scope_trial({.unit = "u", .self = "/usr/bin/gpuctl", .socket = "s", .command = {"train"}});
  ASSERT_EQ(words.size(), 10u);
  EXPECT_TRUE(words[6].starts_with("--unit=gpuctl-run-"));
  words[6] = "-";
  EXPECT_EQ(words, (Words{"systemd-run", "--scope", "--quiet", "--collect", "--no-ask-password", "--user", "-", "--",
                          "/usr/bin/gpuctl", "--version"}));
}

TEST(Scope, NoTwoHaveOneName) {
  EXPECT_EQ(scope_name().substr(0, 11), "gpuctl-run-");
  EXPECT_NE(scope_name(), scope_name()) << "of one process, which may become another gpuctl run";
}

TEST(Scope, WhereSystemdDoesNotRunThereIsNone) {
  std::string pattern = testing::TempDir() + "gpuctl-scope-XXXXXX";
  const std::filesystem::path place = ::mkdtemp(pattern.data());
  const std::string private_socket = place / "systemd/private";
  EXPECT_EQ(scope_obstacle(false, "", place / "none"), "systemd does not run here");
  EXPECT_EQ(scope_obstacle(false, "", place), "");
  EXPECT_EQ(scope_obstacle(true, "", place), "this user's systemd is not known: XDG_RUNTIME_DIR is not set");
  EXPECT_EQ(scope_obstacle(true, place, place), "this user's systemd does not run: there is no " + private_socket);
  std::filesystem::create_directory(place / "systemd");
  std::ofstream(private_socket) << "";
  EXPECT_EQ(scope_obstacle(true, place, place / "none"), "");
  std::filesystem::remove_all(place);
}

TEST(Scope, LaterToolsAreToldToLeaveVariablesAlone) {
  EXPECT_TRUE(has_variable({"sh", "-c", "echo $HOME"}));
  EXPECT_FALSE(has_variable({"sh", "-c", "true"}));
  EXPECT_FALSE(may_expand("systemd 252 (252.38-1~deb12u1)\n+PAM"));
  for (const char* later : {"systemd 254 (254.1)", "systemd 257"}) EXPECT_TRUE(may_expand(later)) << later;
  for (const char* other : {"", "elogind 255", "systemd "}) EXPECT_FALSE(may_expand(other)) << other;
}

}  // namespace
}  // namespace gpuctl::cli
