#include "gpuctld/host/driver_probe.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>

#include "gpuctld/protocol/listen_socket.h"

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
  EXPECT_FALSE(gpu.exclusive);
  EXPECT_TRUE((*devices)[2].exclusive);
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

/// What a probe hears that connects to a process which answers so.
Result<std::vector<Gpu>> connect_to(const std::string& text) {
  const std::string path = testing::TempDir() + "gpuctld-probe-" + std::to_string(::getpid());
  const ipc::UniqueFd listener = listen_at(path, 0600, std::nullopt).value();
  boost::asio::io_context context;
  std::optional<Result<std::vector<Gpu>>> answer;
  const auto started = DriverProbe::connect(context, path, std::chrono::seconds(60),
                                            [&](Result<std::vector<Gpu>> heard) { answer = std::move(heard); });
  EXPECT_TRUE(started) << started.error().message;
  {
    const ipc::UniqueFd connection(::accept(listener.get(), nullptr, nullptr));
    EXPECT_EQ(::write(connection.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  context.run();
  ::unlink(path.c_str());
  return answer.value();
}

TEST(DriverProbe, HearsAnotherProcess) {
  ::setenv("FAKE_DRIVER", "", 1);
  EXPECT_EQ(connect_to(driver_answer(GPUCTL_FAKE_DRIVER)).value().size(), 3u);
  ::setenv("FAKE_DRIVER", "fail", 1);
  EXPECT_EQ(connect_to(driver_answer(GPUCTL_FAKE_DRIVER)).error().message,
            "libcuda.so.1: the CUDA driver answers with error 999");
  EXPECT_EQ(connect_to("").error().message, "libcuda.so.1: the CUDA driver did not answer (it hung or crashed)");
  EXPECT_EQ(connect_to("{\"devices\": [{\"sms\": -1}]}").error().message.find("libcuda.so.1: "), 0u);
}

TEST(DriverProbe, WhereNobodyAnswersItSaysSo) {
  boost::asio::io_context context;
  const auto started =
      DriverProbe::connect(context, "/nowhere/probe", std::chrono::seconds(1), [](const auto&) { FAIL(); });
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message, "cannot ask the CUDA driver at /nowhere/probe: No such file or directory");
}

}  // namespace
}  // namespace gpuctl::daemon
