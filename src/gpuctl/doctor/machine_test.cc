#include "gpuctl/doctor/machine.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace gpuctl::cli {
namespace {

namespace fs = std::filesystem;

class Machine : public testing::Test {
 protected:
  Machine() {
    std::string pattern = testing::TempDir() + "gpuctl-machine-XXXXXX";
    place_ = ::mkdtemp(pattern.data());
  }
  ~Machine() override { fs::remove_all(place_); }

  std::string write(const fs::path& name, const std::string& text) const {
    const fs::path path = place_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path;
  }
  std::optional<std::uint32_t> owner() const { return mps_owner(place_ / "mps", place_ / "proc"); }

  fs::path place_;
};

TEST_F(Machine, MpsIsThereWhileItsProcessIs) {
  write("mps/control", "");
  EXPECT_FALSE(owner()) << "no pid file";
  write("mps/nvidia-cuda-mps-control.pid", "17\n");
  EXPECT_FALSE(owner()) << "it has ended, and its files are left";
  write("proc/17/comm", "bash\n");
  write("proc/17/status", "Name:\tx\nUid:\t1000\t1001\t1000\t1000\nGroups:\t\n");
  EXPECT_FALSE(owner()) << "another process has its number now";
  write("proc/17/comm", "nvidia-cuda-mps\n");
  EXPECT_EQ(owner(), 1001u);
  write("mps/nvidia-cuda-mps-control.pid", "-1");
  EXPECT_FALSE(owner());
}

TEST_F(Machine, MpsOfANamespaceIsThatOfItsControlDaemon) {
  write("mps/nvidia-cuda-mps-control.pid", "17\n");
  write("proc/17/comm", "nvidia-cuda-mps\n");
  write("proc/17/status", "Name:\tx\nUid:\t0\t0\t0\t0\nGroups:\t\n");
  const fs::path server = place_ / "mps/training", space = server / "batch";
  EXPECT_FALSE(mps_owner(space, place_ / "proc"));
  for (const fs::path& directory : {server, space}) {
    fs::create_directories(directory);
    ASSERT_EQ(::mknod((directory / "control").c_str(), S_IFSOCK | 0666, 0), 0);
  }
  EXPECT_EQ(mps_owner(space, place_ / "proc"), 0u);
}

TEST_F(Machine, CgroupsOfBothVersions) {
  EXPECT_EQ(cgroups_of(place_).version, 0);
  fs::create_directory(place_ / "systemd");
  EXPECT_EQ(cgroups_of(place_).version, 1);
  write("cgroup.controllers", "cpu io memory\n");
  EXPECT_EQ(cgroups_of(place_).version, 2);
  EXPECT_FALSE(cgroups_of(place_).dmem);
  write("cgroup.controllers", "cpu io memory dmem\n");
  EXPECT_TRUE(cgroups_of(place_).dmem);
}

TEST_F(Machine, WhatNvidiaSmiSaysOfGpus) {
  const std::string smi = write("nvidia-smi", R"(#!/bin/sh
case $1 in
  *clocks*) [ -e "$0.old" ] && exit 2
    printf 'GPU-1, 1200 MHz, 1980 MHz, 0x0000000000000024\nGPU-2, [N/A], [N/A], [N/A]\n' ;;
  *) printf 'GPU-1, Default, Enabled, NVIDIA H200\nGPU-2, Prohibited, Disabled, NVIDIA H100\n' ;;
esac
)");
  ::chmod(smi.c_str(), 0755);
  std::vector<SmiDevice> devices = ask_smi(smi);
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0].name, "NVIDIA H200");
  EXPECT_EQ(devices[0].clock, "1200 MHz");
  EXPECT_EQ(devices[0].most_clock, "1980 MHz");
  EXPECT_EQ(devices[0].slowed_by, 0x24u);
  EXPECT_EQ(devices[1].compute_mode, "Prohibited");
  EXPECT_EQ(devices[1].persistence, "Disabled");
  EXPECT_EQ(devices[1].clock, "");
  EXPECT_FALSE(devices[1].slowed_by);
  write("nvidia-smi.old", "");
  devices = ask_smi(smi);
  ASSERT_EQ(devices.size(), 2u) << "it does not know the field";
  EXPECT_EQ(devices[0].name, "NVIDIA H200");
  EXPECT_FALSE(devices[0].slowed_by);
  EXPECT_TRUE(ask_smi(place_ / "none").empty());
}

}  // namespace
}  // namespace gpuctl::cli
