#include "slicefile/join_ids.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

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

TEST(JoinIds, AnExeThatIsALinkIsTold) {
  namespace fs = std::filesystem;
  std::string pattern = testing::TempDir() + "join-XXXXXX";
  const std::string directory = fs::canonical(::mkdtemp(pattern.data())), file = directory + "/python3.12",
                    link = directory + "/python3", behind = directory + "/bin/python3.12";
  std::ofstream(file).close();
  fs::create_symlink("python3.12", link);
  fs::create_symlink(".", directory + "/bin");
  const auto says = [&](const std::string& exe) {
    return "exe:" + exe + " has no programs as long as it is a link: they are known by " + file +
           ", so say exe:" + file;
  };
  using Lines = std::vector<std::string>;
  EXPECT_EQ(linked_exes("user:0,exe:" + link + ",exe:" + file + ",exe:" + behind), Lines({says(link), says(behind)}));
  fs::remove(link);
  EXPECT_EQ(linked_exes("exe:" + link), Lines()) << "it may come later";
  EXPECT_EQ(linked_exes("cgroup:" + directory + "/bin"), Lines());
  EXPECT_EQ(linked_exes("none"), Lines());
  fs::remove_all(directory);
}

}  // namespace
}  // namespace gpuctl::slicefile
