#include "gpuctld/host/device_search.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace gpuctl::daemon {
namespace {

using namespace std::chrono_literals;

TEST(DeviceSearch, GoesOnUntilThereIsAGpu) {
  const std::string flag = testing::TempDir() + "gpuctld-search-" + std::to_string(::getpid());
  ::setenv("FAKE_DRIVER", ("until:" + flag).c_str(), 1);
  boost::asio::io_context context;
  std::vector<std::string> reasons;
  std::size_t found = 0;
  const DeviceSearch search(
      context, {.library = GPUCTL_FAKE_DRIVER, .first_pause = 1ms, .longest_pause = 4ms},
      [&](const std::vector<Gpu>& devices) { found = devices.size(); },
      [&](const std::string& why) {
        reasons.push_back(why);
        if (reasons.size() == 4) std::ofstream(flag) << "";
        if (reasons.size() == 40) context.stop();
      });
  context.run();
  EXPECT_EQ(found, 3u);
  EXPECT_EQ(reasons, std::vector(4, GPUCTL_FAKE_DRIVER + std::string(": the CUDA driver answers with error 999")));
  std::filesystem::remove(flag);
}

TEST(DeviceSearch, IsStoppedFromWithinFailed) {
  ::setenv("FAKE_DRIVER", "fail", 1);
  boost::asio::io_context context;
  int failures = 0;
  std::unique_ptr<DeviceSearch> search;
  search = std::make_unique<DeviceSearch>(
      context, SearchOptions{.library = GPUCTL_FAKE_DRIVER, .first_pause = 1ms},
      [](const std::vector<Gpu>&) { FAIL(); },
      [&](const std::string&) {
        ++failures;
        search->stop();
      });
  context.run();
  EXPECT_EQ(failures, 1);
}

TEST(DeviceSearch, AnotherDriverIsNotTheSoftwareGpu) {
  ::setenv("FAKE_DRIVER", "", 1);
  boost::asio::io_context context;
  std::string reason;
  std::unique_ptr<DeviceSearch> search;
  search = std::make_unique<DeviceSearch>(
      context, SearchOptions{.library = GPUCTL_FAKE_DRIVER, .software = true}, [](const std::vector<Gpu>&) { FAIL(); },
      [&](const std::string& why) {
        reason = why;
        search->stop();
      });
  context.run();
  EXPECT_EQ(reason, "the library of the software GPU is another driver");
}

}  // namespace
}  // namespace gpuctl::daemon
