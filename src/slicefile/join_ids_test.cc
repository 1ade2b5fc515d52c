#include "slicefile/join_ids.h"

#include <gtest/gtest.h>

namespace gpuctl::slicefile {
namespace {

std::string ids(std::string_view text) {
  std::string problem;
  std::string result = join_by_ids(text, problem);
  return problem.empty() ? result : problem;
}

TEST(JoinIds, NamesBecomeNumbers) {
  EXPECT_EQ(ids("user:root,group:root,unit:root"), "user:0,group:0,unit:root");
  EXPECT_EQ(ids("user:1234567,unit:user@1000.service"), "user:1234567,unit:user@1000.service");
  EXPECT_EQ(ids("cgroup:/ml.slice"), "cgroup:/ml.slice");
  EXPECT_EQ(ids("exe:/usr/bin/ollama,user:root"), "exe:/usr/bin/ollama,user:0");
  EXPECT_EQ(ids("none"), "none");
}

TEST(JoinIds, AllUsersAreNamedWhereThatIsAllowed) {
  std::string problem;
  EXPECT_EQ(join_by_ids("user:*,user:root", problem, true), "user:*,user:0");
  EXPECT_EQ(problem, "");
  EXPECT_EQ(ids("user:*"), "there is no user '*'; give a user's name or number");
  (void)join_by_ids("group:*", problem, true);
  EXPECT_EQ(problem, "there is no group '*'; give a group's name or number");
}

TEST(JoinIds, SaysWhatIsWrong) {
  EXPECT_EQ(ids("user:no-such-user"), "there is no user 'no-such-user'; give a user's name or number");
  EXPECT_EQ(ids("unit:a,group:no-such-group"), "there is no group 'no-such-group'; give a group's name or number");
  EXPECT_EQ(
      ids("exe:ollama"),
      "exe 'ollama' is no full path of a program, in at most 255 characters of ASCII, such as exe:/usr/bin/ollama");
  std::string problem;
  (void)join_by_ids("exe:/usr/bin/ollama", problem, true);
  EXPECT_EQ(problem, "exe names programs for the join of a slice alone; name a user, a group, a unit or a cgroup");
  for (const char* text : {"", "alice", "user:root,", "unit:", "unit:a,,unit:b", "cgroup:ml"})
    EXPECT_EQ(ids(text).substr(0, 13), "must be none,") << text;
}

}  // namespace
}  // namespace gpuctl::slicefile
