#include "gpuctld/host/energy.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace gpuctl::daemon::energy_test {
namespace {

constexpr char kKnown[] = "GPU-f1f2f3f4-f5f6-f7f8-f9fa-fbfcfdfeff00";
using std::chrono::milliseconds;

TEST(Nvml, SaysWhatAGpuHasUsed) {
  const Nvml nvml(GPUCTL_FAKE_NVML);
  EXPECT_EQ(nvml.millijoules(kKnown), 123456u);
  EXPECT_FALSE(nvml.millijoules("GPU-0"));
}

TEST(Nvml, IsNotThereEverywhere) {
  EXPECT_FALSE(Nvml("/nonexistent/libnvidia-ml.so.1").millijoules(kKnown));
  EXPECT_FALSE(Nvml("libc.so.6").millijoules(kKnown));
}

TEST(Nvml, IsAskedForEachGpuOfTheDriver) {
  ::setenv("FAKE_DRIVER", "", 1);
  const auto gpus = read_driver_answer(driver_answer(GPUCTL_FAKE_DRIVER, GPUCTL_FAKE_NVML));
  ::unsetenv("CUDA_MPS_PIPE_DIRECTORY");
  ASSERT_TRUE(gpus) << gpus.error().message;
  ASSERT_EQ(gpus->size(), 3u);
  EXPECT_FALSE((*gpus)[0].millijoules);
  EXPECT_EQ((*gpus)[1].millijoules, 123456u);
}

class Watch : public testing::Test {
 protected:
  /// A program that answers as `gpuctld --probe`, with `more` in what it says of a GPU.
  std::string answering(const std::string& more) {
    const std::string file = testing::TempDir() + "probe-" + std::to_string(::getpid());
    std::ofstream(file) << "#!/bin/sh\necho -n x >> " << count_ << "\necho '{\"devices\": [{\"name\": \"a\", \"uuid\": "
                        << "\"GPU-0\", \"sms\": 132, \"memory\": 1" << more << "}]}'\n";
    ::chmod(file.c_str(), 0700);
    return file;
  }
  std::size_t asked() const {
    std::string text;
    std::getline(std::ifstream(count_), text);
    return text.size();
  }
  ~Watch() override { ::unlink(count_.c_str()); }

  std::string count_ = testing::TempDir() + "asked-" + std::to_string(::getpid());
  boost::asio::io_context context_;
};

TEST_F(Watch, AsksAgainAndAgainUntilItRests) {
  int heard = 0;
  EnergyWatch watch(context_, {.socket = "", .program = answering(R"(, "millijoules": 7)"), .every = milliseconds(1)},
                    [&](const std::vector<Gpu>& gpus) {
                      ASSERT_EQ(gpus.size(), 1u);
                      EXPECT_EQ(gpus[0].millijoules, 7u);
                      if (++heard == 3) watch.rest();
                    });
  watch.begin();
  watch.begin();
  context_.run();  // nothing is left to do
  EXPECT_EQ(heard, 3);
  EXPECT_EQ(asked(), 3u);
  context_.restart();
  heard = 2;
  watch.begin();
  context_.run();
  EXPECT_EQ(asked(), 4u);
}

TEST_F(Watch, AsksEverMoreRarelyWhereNothingIsCounted) {
  EnergyWatch watch(context_,
                    {.socket = "", .program = answering(""), .every = milliseconds(2), .longest = milliseconds(20)},
                    [&](const std::vector<Gpu>&) { ADD_FAILURE(); });
  watch.begin();
  const auto until = std::chrono::steady_clock::now() + milliseconds(200);
  context_.run_until(until);
  EXPECT_GE(asked(), 1u);
  EXPECT_LE(asked(), 13u) << "after 4, 8, 16, 20, 20, ... ms";
  watch.stop();
}

TEST_F(Watch, AsksNobodyWhereThereIsNobody) {
  EnergyWatch watch(context_, {}, [&](const std::vector<Gpu>&) { ADD_FAILURE(); });
  watch.begin();
  context_.run();
}

}  // namespace
}  // namespace gpuctl::daemon::energy_test
