#include "slurm/daemon.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "gpuctl/testing/fake_daemon.h"

namespace gpuctl::slurm {
namespace {

using namespace std::chrono_literals;

TEST(SlurmDaemon, ALateAnswerIsNotThatToTheNextCall) {
  cli::FakeDaemon there;
  there.on("Kill", [](const boost::json::object&) {
    std::this_thread::sleep_for(200ms);
    return std::vector<ipc::Reply>{ipc::Reply{}};
  });
  there.on("ListSlices", boost::json::object{{"slices", boost::json::array()}});
  Answer<Daemon> daemon = Daemon::open(there.socket());
  ASSERT_TRUE(daemon) << daemon.error().message;
  EXPECT_EQ(daemon->call("Kill", {}, 20ms).error().message, "gpuctld: no answer in time");
  const auto slices = daemon->call("ListSlices");
  ASSERT_TRUE(slices) << slices.error().message;
  EXPECT_TRUE(slices->contains("slices"));
}

}  // namespace
}  // namespace gpuctl::slurm
