#include "gpuctld/host/driver_probe.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <optional>

namespace gpuctl::daemon {
namespace {

Result<std::vector<Gpu>> probe_library(const std::string& library, std::chrono::milliseconds timeout) {
  boost::asio::io_context context;
  std::optional<Result<std::vector<Gpu>>> answer;
  const auto started =
      DriverProbe::start(context, library, timeout, [&](Result<std::vector<Gpu>> heard) { answer = std::move(heard); });
  EXPECT_TRUE(started) << started.error().message;
  context.run();  // until the child is gone
  return answer.value();
}

Result<std::vector<Gpu>> probe(const char* behaviour, std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
  ::setenv("FAKE_DRIVER", behaviour, 1);
  return probe_library(GPUCTL_FAKE_DRIVER, timeout);
}

TEST(DriverProbe, ReadsWhatTheDriverSays) {
  const auto devices = probe("");
  ASSERT_TRUE(devices) << devices.error().message;
  ASSERT_EQ(devices->size(), 3u);
  const Gpu& gpu = (*devices)[1];
  EXPECT_EQ(gpu.index, 1);
  EXPECT_EQ(gpu.sms, 131u);
  EXPECT_EQ(gpu.memory_bytes, std::uint64_t{141} << 30);
  EXPECT_EQ(gpu.uuid, "GPU-f1f2f3f4-f5f6-f7f8-f9fa-fbfcfdfeff00");
  EXPECT_EQ(gpu.name, "Fake \"GPU\" \xEF\xBF\xBD");
  EXPECT_FALSE(gpu.software);
}

TEST(DriverProbe, ADriverWithoutDevicesIsAnEmptyList) {
  EXPECT_TRUE(probe("none").value().empty());
}

TEST(DriverProbe, FailuresNameTheLibrary) {
  for (const char* behaviour : {"fail", "crash"}) {
    const auto devices = probe(behaviour);
    ASSERT_FALSE(devices) << behaviour;
    EXPECT_EQ(devices.error().message.find(GPUCTL_FAKE_DRIVER), 0u);
  }
  constexpr std::chrono::seconds kLong{60};
  EXPECT_EQ(probe_library("/nowhere/libcuda.so.1", kLong).error().message,
            "/nowhere/libcuda.so.1: cannot open shared object file: No such file or directory");
  EXPECT_FALSE(probe_library("libm.so.6", kLong));
}

TEST(DriverProbe, ADriverThatHangsIsGivenUp) {
  const auto devices = probe("hang", std::chrono::milliseconds(100));
  ASSERT_FALSE(devices);
  EXPECT_EQ(devices.error().message,
            std::string(GPUCTL_FAKE_DRIVER) + ": the CUDA driver did not answer (it hung or crashed)");
}

TEST(DriverProbe, TheChildKeepsNoDescriptorOfTheDaemon) {
  ::setenv("FAKE_DRIVER", "hang", 1);
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  boost::asio::io_context context;
  const auto probe = DriverProbe::start(context, GPUCTL_FAKE_DRIVER, std::chrono::seconds(60), [](auto&&) {});
  ASSERT_TRUE(probe);
  ::close(ends[1]);
  char byte;
  EXPECT_EQ(::read(ends[0], &byte, 1), 0);  // returns while the child hangs
  ::close(ends[0]);
  (*probe)->cancel();
  context.run();
}

}  // namespace
}  // namespace gpuctl::daemon
