#include "base/process_owner.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace gpuctl {
namespace {

TEST(ProcessOwner, IsThatInForceWithAllItsGroups) {
  const auto own = owner_of(::getpid());
  ASSERT_TRUE(own);
  EXPECT_EQ(own->uid, ::geteuid());
  EXPECT_EQ(own->gids.at(0), ::getegid());
  std::vector<gid_t> groups(static_cast<std::size_t>(::getgroups(0, nullptr)));
  ASSERT_EQ(::getgroups(static_cast<int>(groups.size()), groups.data()), static_cast<int>(groups.size()));
  for (const gid_t group : groups) EXPECT_NE(std::ranges::find(own->gids, group), own->gids.end()) << group;
}

TEST(ProcessOwner, OfAProcessThatIsNotThereIsNone) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(owner_of(child));
}

}  // namespace
}  // namespace gpuctl
