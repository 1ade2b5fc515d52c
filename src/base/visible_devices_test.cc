#include "base/visible_devices.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

namespace gpuctl {
namespace {

const std::vector<SliceGpu> kTwo{{.index = 1, .uuid = "GPU-aa00"}, {.index = 3, .uuid = "GPU-bb00"}};

TEST(VisibleDevices, AProgramWithoutAListSeesWhatItsSliceHas) {
  EXPECT_EQ(visible_devices(kTwo, nullptr), "GPU-aa00,GPU-bb00");
  EXPECT_EQ(visible_devices({}, nullptr), "");
}

TEST(VisibleDevices, OfItsOwnListAProgramSeesWhatItsSliceHasInItsOrder) {
  EXPECT_EQ(visible_devices(kTwo, "3,1"), "GPU-bb00,GPU-aa00");
  EXPECT_EQ(visible_devices(kTwo, "0,3"), "GPU-bb00");
  EXPECT_EQ(visible_devices(kTwo, " GPU-BB , 1 "), "GPU-bb00,GPU-aa00");
  EXPECT_EQ(visible_devices(kTwo, "GPU-cc,1"), "GPU-aa00");
  EXPECT_EQ(visible_devices(kTwo, "0"), "");
  EXPECT_EQ(visible_devices(kTwo, ""), "");
  EXPECT_EQ(visible_devices(kTwo, "1,-1,3"), "GPU-aa00");
  EXPECT_EQ(visible_devices(kTwo, "NoDevFiles"), "");
}

/// A container that lacks the node of one GPU, and a machine without the driver's files.
TEST(VisibleDevices, OnlyThoseThatAreHereCount) {
  namespace fs = std::filesystem;
  const fs::path root = fs::temp_directory_path() / ("gpuctl-visible-devices-" + std::to_string(::getpid()));
  for (const auto& [bus, uuid, minor] : {std::array{"0", "GPU-aa00", "0"}, std::array{"1", "GPU-bb00", "1"}}) {
    fs::create_directories(root / "gpus" / bus);
    std::ofstream(root / "gpus" / bus / "information")
        << "Model: \t\t some\nGPU UUID: \t " << uuid << "\nDevice Minor: \t " << minor << "\n";
  }
  std::ofstream(root / "nvidia1") << "";
  const auto here = those_here(kTwo, root / "gpus", root / "nvidia");
  fs::remove_all(root);
  ASSERT_EQ(here.size(), 1u);
  EXPECT_EQ(here.front().uuid, "GPU-bb00");
  EXPECT_EQ(those_here(kTwo, root / "gpus", root / "nvidia").size(), 2u);
}

}  // namespace
}  // namespace gpuctl
