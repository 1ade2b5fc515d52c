#include "gpuctl/text/progress.h"

#include <gtest/gtest.h>

#include <sstream>

namespace gpuctl::cli {
namespace {

TEST(Progress, IsOneLineThatGoesInTheEnd) {
  std::ostringstream err;
  {
    Progress progress(err, true);
    progress.say("1 of 2");
    progress.say("1 of 2");
    progress.say("2 of 2");
  }
  EXPECT_EQ(err.str(), "\r\x1b[K1 of 2\r\x1b[K2 of 2\r\x1b[K");
}

TEST(Progress, IsForTerminalsAlone) {
  std::ostringstream err;
  {
    Progress progress(err);
    progress.say("1 of 2");
  }
  EXPECT_EQ(err.str(), "");
}

}  // namespace
}  // namespace gpuctl::cli
