#include "gpuctl/views/cdi.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <boost/json/value_to.hpp>
#include <map>
#include <set>

namespace gpuctl::cli {
namespace {

std::vector<ipc::Slice> slices(const std::vector<std::string>& paths) {
  std::vector<ipc::Slice> list;
  for (const std::string& path : paths) list.emplace_back().path = path;
  return list;
}

CdiPlan installed_plan() {
  return {.socket = "/run/gpuctld/io.gpuctl",
          .library = "/usr/lib/x86_64-linux-gnu/gpuctl/libgpuslice.so",
          .compile_helper = "",
          .gpuctl = "/usr/bin/gpuctl",
          .software_gpu = ""};
}

boost::json::object parsed(const CdiPlan& plan, const std::vector<std::string>& paths) {
  const CdiDocument document = cdi_document(plan, slices(paths));
  EXPECT_TRUE(document.json.ends_with("}\n"));
  return boost::json::parse(document.json).as_object();
}

std::set<std::string> env_of(const boost::json::object& edits) {
  return boost::json::value_to<std::set<std::string>>(edits.at("env"));
}

/// By the path in the container.
std::map<std::string, std::string> mounts_of(const boost::json::object& edits) {
  std::map<std::string, std::string> mounts;
  for (const boost::json::value& each : edits.at("mounts").as_array()) {
    const boost::json::object& mount = each.as_object();
    EXPECT_EQ(mount.size(), 3u) << "a field more may need a later version";
    const auto options = boost::json::value_to<std::set<std::string>>(mount.at("options"));
    EXPECT_TRUE(options.contains("ro") && options.contains("rbind"));
    const bool is_new = mounts
                            .emplace(boost::json::value_to<std::string>(mount.at("containerPath")),
                                     boost::json::value_to<std::string>(mount.at("hostPath")))
                            .second;
    EXPECT_TRUE(is_new);
  }
  return mounts;
}

TEST(Cdi, OneDeviceForEachSliceButTheRoot) {
  const auto document = parsed(installed_plan(), {"/", "batch", "batch/train", "ls"});
  EXPECT_EQ(document.at("kind"), "gpuctl.io/slice");
  std::map<std::string, std::set<std::string>> devices;
  for (const boost::json::value& each : document.at("devices").as_array()) {
    const auto& edits = each.at("containerEdits").as_object();
    const std::string name = boost::json::value_to<std::string>(each.at("name"));
    EXPECT_TRUE(devices.emplace(name, env_of(edits)).second) << name;
    const auto mounts = mounts_of(edits);
    EXPECT_EQ(mounts.size(), 1u);
    EXPECT_TRUE(mounts.contains("/usr/lib/gpuctl/slices/" + name))
        << "for programs that are started without the variable";
  }
  EXPECT_EQ(devices, (std::map<std::string, std::set<std::string>>{{"batch", {"GPUCTL_SLICE=batch"}},
                                                                   {"batch:train", {"GPUCTL_SLICE=batch/train"}},
                                                                   {"ls", {"GPUCTL_SLICE=ls"}}}));
}

TEST(Cdi, TheSameSlicesGiveTheSameText) {
  const std::string text = cdi_document(installed_plan(), slices({"a", "b", "b/c"})).json;
  EXPECT_EQ(cdi_document(installed_plan(), slices({"b", "b/c", "/", "a"})).json, text);
  EXPECT_NE(cdi_document(installed_plan(), slices({"a", "b"})).json, text);
}

TEST(Cdi, TheVersionIsTheLeastThatTheFieldsNeed) {
  EXPECT_EQ(parsed(installed_plan(), {"a", "b2"}).at("cdiVersion"), "0.3.0");
  EXPECT_EQ(parsed(installed_plan(), {"a", "2b"}).at("cdiVersion"), "0.5.0");
  for (const auto& [field, value] : parsed(installed_plan(), {"a"}))
    EXPECT_TRUE(std::set<std::string>({"cdiVersion", "kind", "containerEdits", "devices"}).contains(field)) << field;
}

TEST(Cdi, NamesThatNoDeviceCanHave) {
  const CdiDocument document = cdi_document(installed_plan(), slices({"_a", "a-", "a", "-/b", "b/."}));
  EXPECT_EQ(document.nameless, (std::vector<std::string>{"-/b", "_a", "a-", "b/."}));
  EXPECT_EQ(boost::json::parse(document.json).at("devices").as_array().size(), 1u);
}

TEST(Cdi, WithoutDevicesThereIsNoDocument) {
  EXPECT_EQ(cdi_document(installed_plan(), slices({"/"})).json, "");
  EXPECT_EQ(cdi_document(installed_plan(), slices({"/", "_"})).json, "");
}

TEST(Cdi, TheWayInLeavesWhatTheImageHas) {
  const auto document = parsed(installed_plan(), {"a"});
  const auto& edits = document.at("containerEdits").as_object();
  const std::string libraries = "/usr/lib/x86_64-linux-gnu/gpuctl";
  EXPECT_EQ(mounts_of(edits), (std::map<std::string, std::string>{{"/run/gpuctld", "/run/gpuctld"},
                                                                  {"/usr/lib/gpuctl/glibc-hwcaps/x86-64-v2", libraries},
                                                                  {"/etc/ld.so.preload", libraries + "/ld.so.preload"},
                                                                  {"/usr/local/bin/gpuctl", "/usr/bin/gpuctl"}}));
  // No LD_PRELOAD and no LD_LIBRARY_PATH: they would take the place of the image's own.
  EXPECT_EQ(env_of(edits), std::set<std::string>{"GPUCTL_SOCKET=/run/gpuctld/io.gpuctl"});
}

TEST(Cdi, WhatLiesElsewhereIsMountedToo) {
  CdiPlan plan = installed_plan();
  plan.socket = "/home/me/gpu/socket";
  plan.compile_helper = "/build/src/gpuslice-compile/gpuslice-compile";
  plan.software_gpu = "/build/src/softgpu";
  const auto document = parsed(plan, {"a"});
  const auto& edits = document.at("containerEdits").as_object();
  const auto mounts = mounts_of(edits);
  EXPECT_EQ(mounts.at("/run/gpuctld"), "/home/me/gpu");
  EXPECT_EQ(mounts.at("/usr/lib/gpuctl/glibc-hwcaps/gpuslice-compile/gpuslice-compile"), plan.compile_helper);
  EXPECT_EQ(mounts.at("/usr/lib/gpuctl/softgpu"), plan.software_gpu);
  for (const std::string directory : {"/usr/lib64", "/usr/lib/x86_64-linux-gnu"})
    EXPECT_EQ(mounts.at(directory + "/libcuda.so.1"), plan.software_gpu + "/libcuda.so.1");
  EXPECT_EQ(env_of(edits), std::set<std::string>{"GPUCTL_SOCKET=/run/gpuctld/socket"});
}

}  // namespace
}  // namespace gpuctl::cli
