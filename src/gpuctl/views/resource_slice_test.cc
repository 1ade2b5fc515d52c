#include "gpuctl/views/resource_slice.h"

#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>
#include <set>

namespace gpuctl::cli {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

ipc::Slice slice_of(const std::string& path) {
  ipc::Slice slice;
  slice.path = path;
  return slice;
}

ipc::Device gpu(std::int64_t index, std::int64_t sms = 132, std::int64_t memory = 80 * kGiB) {
  ipc::Device device;
  device.index = index;
  device.name = "NVIDIA H100";
  device.uuid = "GPU-" + std::to_string(index);
  device.kind = "cuda";
  device.mode = "mps";
  device.sms = sms;
  device.memory_bytes = memory;
  return device;
}

struct Made {
  boost::json::array slices;
  std::vector<std::string> notes;

  const boost::json::array& devices(std::size_t part = 0) const {
    return slices[part].at("spec").at("devices").get_array();
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const boost::json::value& each : slices)
      for (const boost::json::value& device : each.at("spec").at("devices").get_array())
        all.emplace_back(device.at("name").get_string());
    return all;
  }
};

Made made_of(const std::vector<ipc::Device>& devices, const std::vector<ipc::Slice>& slices) {
  Made made;
  made.slices = resource_slices({"gpu.gpuctl.io", "node-1", {}}, devices, slices, made.notes);
  return made;
}

TEST(ResourceSlice, WholeGpusWithoutSlices) {
  const Made made = made_of({gpu(0), gpu(1)}, {slice_of("/")});
  EXPECT_EQ(made.names(), (std::vector<std::string>{"gpu-0", "gpu-1"}));
  const boost::json::value& spec = made.slices[0].at("spec");
  EXPECT_EQ(spec.at("nodeName"), "node-1");
  EXPECT_EQ(boost::json::serialize(spec.at("pool")), R"({"name":"node-1","generation":1,"resourceSliceCount":1})");
  EXPECT_EQ(boost::json::serialize(made.devices()[0].at("capacity").at("sms")),
            R"({"value":"132","requestPolicy":{"default":"132","validRange":{"min":"1","max":"132","step":"1"}}})");
  EXPECT_EQ(made.devices()[0].at("capacity").at("memory").at("value"), "81920Mi");
}

TEST(ResourceSlice, SlicesWithoutOthersBelowThem) {
  ipc::Slice train = slice_of("batch/train"), ls = slice_of("ls");
  train.max = 100;
  train.effective_max = 40;
  train.memory_max = kGiB;
  ls.reserve = 8;
  const Made made = made_of({gpu(0)}, {slice_of("/"), slice_of("batch"), train, ls, slice_of("batches")});
  EXPECT_EQ(made.names(), (std::vector<std::string>{"gpu-0-batch--train", "gpu-0-ls", "gpu-0-batches"}));
  EXPECT_EQ(made.devices()[0].at("capacity").at("sms").at("value"), "40") << "what is in force";
  EXPECT_EQ(made.devices()[0].at("capacity").at("memory").at("value"), "1024Mi");
  EXPECT_EQ(made.devices()[0].at("attributes").at("slice").at("string"), "batch/train");
  EXPECT_EQ(made.devices()[1].at("attributes").at("reserve").at("int"), 8);
}

TEST(ResourceSlice, OfEachGpuWhatIsInForceThere) {
  ipc::Slice half = slice_of("half"), one = slice_of("one");
  half.on_gpus = {{0, 33, 66, 40 * kGiB}, {1, 14, 28, 12 * kGiB}};
  one.on_gpus = {{0, 8, {}, 16 * kGiB}, {1, 0, {}, {}}};
  const Made made = made_of({gpu(0), gpu(1, 56, 24 * kGiB)}, {half, one});
  EXPECT_EQ(made.names(), (std::vector<std::string>{"gpu-0-half", "gpu-1-half", "gpu-0-one", "gpu-1-one"}));
  const auto said = [&](std::size_t device) {
    const boost::json::value& is = made.devices()[device];
    const boost::json::value& capacity = is.at("capacity");
    return boost::json::serialize(boost::json::array{is.at("attributes").at("reserve").at("int"),
                                                     capacity.at("sms").at("value"),
                                                     capacity.at("memory").at("value")});
  };
  EXPECT_EQ(said(0), R"([33,"66","40960Mi"])");
  EXPECT_EQ(said(1), R"([14,"28","12288Mi"])");
  EXPECT_EQ(said(2), R"([8,"132","16384Mi"])");
  EXPECT_EQ(said(3), R"([0,"56","24576Mi"])");
}

TEST(ResourceSlice, NamesAreLabelsAndDiffer) {
  const std::string longest(62, 'x');
  const Made made = made_of(
      {gpu(0)}, {slice_of("a-b"), slice_of("a/b"), slice_of("A.b"), slice_of("a_b"), slice_of("a--b"), slice_of("a-/b"),
                 slice_of(longest + "1"), slice_of(longest + "2"), slice_of("end_"), slice_of("end")});
  const std::vector<std::string> names = made.names();
  EXPECT_EQ(names[0], "gpu-0-a-b");
  EXPECT_EQ(names[1], "gpu-0-a--b");
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  for (const std::string& name : names) {
    EXPECT_EQ(subdomain_problem(name, 63), "") << name;
    EXPECT_EQ(name.find('.'), name.npos) << name;
  }
}

TEST(ResourceSlice, ANameIsOfItsSliceWhateverOthersThereAre) {
  const std::vector<ipc::Slice> slices{slice_of("A.b"), slice_of("a_b"), slice_of("a/b"), slice_of("a--b")};
  const std::vector<std::string> together = made_of({gpu(0)}, slices).names();
  for (std::size_t i = 0; i < slices.size(); ++i)
    EXPECT_EQ(made_of({gpu(0)}, {slices[i]}).names(), std::vector<std::string>{together[i]});
}

TEST(ResourceSlice, SlicesThatAreNamedStayDevicesWithClaimsBelowThem) {
  ipc::Slice claim = slice_of("batch/claim-1");
  const std::vector<ipc::Slice> slices{slice_of("/"), slice_of("batch"), claim, slice_of("ls")};
  Made made;
  made.slices = resource_slices({"gpu.gpuctl.io", "node-1", {"batch", "gone"}}, {gpu(0)}, slices, made.notes);
  EXPECT_EQ(made.names(), std::vector<std::string>{"gpu-0-batch"});
  EXPECT_EQ(made.notes, std::vector<std::string>{"there is no slice 'gone'"});
}

TEST(ResourceSlice, WhatCannotBeOfferedIsLeftOutAndSaid) {
  ipc::Slice none = slice_of("none"), poor = slice_of("poor"), least = slice_of("least");
  none.max = 0;
  poor.memory_max = 1000;
  least.max = 1;
  const Made made = made_of({gpu(0)}, {none, poor, least, slice_of(std::string(65, 'x'))});
  EXPECT_EQ(made.names(), (std::vector<std::string>{"gpu-0-least"}));
  EXPECT_EQ(boost::json::serialize(made.devices()[0].at("capacity").at("sms").at("requestPolicy")),
            R"({"default":"1","validRange":{"min":"1","max":"1"}})");
  ASSERT_EQ(made.notes.size(), 3u);
  EXPECT_EQ(made.notes[0], "slice 'none' is left out: it has no SMs");
  EXPECT_EQ(made.notes[1], "slice 'poor' is left out: it has no memory");
}

TEST(ResourceSlice, MoreThanFitIntoOne) {
  std::vector<ipc::Slice> slices;
  for (int i = 0; i < 100; ++i) slices.push_back(slice_of("s" + std::to_string(i)));
  const Made made = made_of({gpu(0), gpu(1)}, slices);
  ASSERT_EQ(made.slices.size(), 2u);
  EXPECT_EQ(made.devices(0).size(), 128u);
  EXPECT_EQ(made.devices(1).size(), 72u);
  EXPECT_EQ(made.slices[1].at("metadata").at("name"), "node-1-gpu.gpuctl.io-1");
  EXPECT_EQ(made.slices[1].at("spec").at("pool").at("resourceSliceCount"), 2u);
}

TEST(ResourceSlice, NamesOfNodesAndDrivers) {
  for (const char* name : {"a", "node-1.example.org", "9"}) EXPECT_EQ(subdomain_problem(name, 63), "") << name;
  for (const char* name : {"", "Node", "a_b", "-a", "a-", "a..b", ".a", "a.-b", "a-.b"})
    EXPECT_NE(subdomain_problem(name, 63), "") << name;
  EXPECT_NE(subdomain_problem("abc", 2), "");
}

TEST(ResourceSlice, Yaml) {
  const boost::json::value value{{"a", 1}, {"b", {{{"c", "x: y"}, {"d", boost::json::object()}}, {{"e", true}}}}};
  EXPECT_EQ(to_yaml(value), "a: 1\nb:\n  - c: \"x: y\"\n    d: {}\n  - e: true\n");
}

}  // namespace
}  // namespace gpuctl::cli
