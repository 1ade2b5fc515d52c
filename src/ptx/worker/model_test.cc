// A model of what a worker does with the launch block: which fields there are, and how the PTX templates beside this
// file access each, and in what size.
#include <gtest/gtest.h>

#include <boost/describe/class.hpp>
#include <boost/describe/members.hpp>
#include <boost/mp11/algorithm.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "ptx/persistent_abi.h"
#include "ptx/worker/shape.h"
#include "ptx/worker/shared_words.h"

namespace gpuctl::ptx {

// clang-format off
BOOST_DESCRIBE_STRUCT(DeviceSlot, (), (next, gone, looked, alone, polling, range, extra, reserved2, left,
  reserved3, posted, task_ns, reserved4, here))
BOOST_DESCRIBE_STRUCT(HostSlot, (), (started, done, resting, lone, left, progress, task_ns, entered, start_ns, done_ns,
  left_ns, reserved3))
BOOST_DESCRIBE_STRUCT(LaunchArgs, (), (slot, host, polled, total, tasks, grid_x, grid_y, grid_z, chunk, taper,
  quick_below, workers, first, given, flags, limit, range, by_grid_x, by_grid_y, order, advance, index_mask,
  minus_grid_x))
namespace pass {
BOOST_DESCRIBE_STRUCT(SharedWords, (), (published, part_begin, part_end, leader_state, known, looks, chunk_tasks,
  started_on, finished, quick_size, seen_range, counted, reserved))
BOOST_DESCRIBE_STRUCT(WorkerShape, (), (two_bodies, joins, may_join_plainly, meets_in_plain_body, meets_inside,
  meets_between, first_leads, one_axis, reads_x, reads_y, reads_z, reads_size, copies))
}  // namespace pass
// clang-format on

namespace {

using Names = std::set<std::string>;
/// The accesses to each field, as what is done and how many bytes it reaches: `load 8`.
using Accesses = std::map<std::string, Names>;

const Accesses& model() {
  static const Accesses rows = {
      // A claim may count the worker out, in `gone` beside `next`.
      {"DeviceSlot.next", {"add 4", "add 8", "load 4", "exchange 4"}},
      {"DeviceSlot.gone", {"add 4"}},
      {"DeviceSlot.looked", {"add 4", "load 4", "store 4"}},
      {"DeviceSlot.polling", {"load 8", "replace 4"}},  // with `range`
      {"DeviceSlot.range", {"store 4"}},
      {"DeviceSlot.extra", {"add 4", "load 4"}},
      {"DeviceSlot.left", {"add 4", "load 4", "load 16"}},  // up to `task_ns`
      {"DeviceSlot.posted", {"store 4"}},
      {"DeviceSlot.task_ns", {"load 4", "store 4"}},
      {"DeviceSlot.here", {"add 4"}},
      {"HostSlot.started", {"store 4", "store 8"}},  // with `done`
      {"HostSlot.resting", {"store 4"}},
      {"HostSlot.lone", {"load 4"}},
      {"HostSlot.left", {"store 4", "store 16"}},  // up to `entered`
      {"HostSlot.start_ns", {"store 8"}},
      {"HostSlot.done_ns", {"store 8"}},
      {"HostSlot.left_ns", {"store 8"}},
  };
  return rows;
}

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

const std::string& templates() {
  static const std::string text = [] {
    std::string all;
    for (const auto& file : std::filesystem::directory_iterator(GPUCTL_SOURCES "/ptx/worker")) {
      if (file.path().string().ends_with(".ptx.in")) all += content(file.path());
    }
    return std::regex_replace(all, std::regex("//[^\n]*"), "");
  }();
  return text;
}

std::vector<std::smatch> matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  return {std::sregex_iterator(text.begin(), text.end(), regex), {}};
}

Accesses accesses() {
  static const std::map<std::string, std::string> kOperations = {
      {"ld", "load"}, {"st", "store"}, {"add", "add"}, {"exch", "exchange"}, {"cas", "replace"}};
  Accesses found;
  for (const auto& m : matches(templates(), R"((ld|st)\.volatile\.global(?:\.v(\d))?\.u(\d+)[^\n;]*\+(\w+\.\w+)\])")) {
    const int bytes = std::stoi(m[3]) / 8 * (m[2].matched ? std::stoi(m[2]) : 1);
    found[m[4]].insert(kOperations.at(m[1]) + " " + std::to_string(bytes));
  }
  for (const auto& m : matches(templates(), R"((?:atom|red)\.global\.(\w+)\.[ub](\d+)[^\n;]*\+(\w+\.\w+)\])")) {
    found[m[3]].insert(kOperations.at(m[1]) + " " + std::to_string(std::stoi(m[2]) / 8));
  }
  return found;
}

struct Field {
  std::size_t offset;
  std::size_t size;
};

template <class T>
std::map<std::string, Field> fields() {
  std::map<std::string, Field> all;
  const T object{};
  boost::mp11::mp_for_each<boost::describe::describe_members<T, boost::describe::mod_public>>([&](auto member) {
    const auto& field = object.*member.pointer;
    const auto at = reinterpret_cast<const char*>(&field) - reinterpret_cast<const char*>(&object);
    all[member.name] = {static_cast<std::size_t>(at), sizeof field};
  });
  return all;
}

template <class T>
std::size_t bytes_of_fields() {
  std::size_t sum = 0;
  for (const auto& [name, field] : fields<T>()) sum += field.size;
  return sum;
}

bool is_reserved(const std::string& name) {
  return name.starts_with("reserved") || name == "alone";
}

TEST(WorkerModel, NamesAllFields) {
  EXPECT_EQ(bytes_of_fields<DeviceSlot>(), sizeof(DeviceSlot));
  EXPECT_EQ(bytes_of_fields<HostSlot>(), sizeof(HostSlot));
  EXPECT_EQ(bytes_of_fields<LaunchArgs>(), sizeof(LaunchArgs));
  EXPECT_EQ(bytes_of_fields<pass::SharedWords>(), sizeof(pass::SharedWords));
  EXPECT_EQ(bytes_of_fields<pass::WorkerShape>(), sizeof(pass::WorkerShape));
}

TEST(WorkerModel, TheTemplatesAccessTheSlotsAsItSays) {
  EXPECT_EQ(accesses(), model());
}

TEST(WorkerModel, AccessesReachWholeAlignedFields) {
  Names reached;
  for (const auto& [name, ways] : accesses()) {
    const std::string type = name.substr(0, name.find('.') + 1);
    const auto all = type == "DeviceSlot." ? fields<DeviceSlot>() : fields<HostSlot>();
    for (const std::string& access : ways) {
      const std::size_t begin = all.at(name.substr(type.size())).offset;
      const std::size_t end = begin + std::stoul(access.substr(access.find(' ')));
      EXPECT_EQ(begin % (end - begin), 0u) << name << " " << access;
      for (const auto& [other, field] : all) {
        if (field.offset >= end || field.offset + field.size <= begin) continue;
        reached.insert(type + other);
        const bool whole = field.offset >= begin && field.offset + field.size <= end;
        EXPECT_TRUE(whole || other == "here") << access << " of " << name << " cuts " << other;
      }
    }
  }
  for (const auto& [name, field] : fields<DeviceSlot>()) {
    EXPECT_TRUE(is_reserved(name) || reached.contains("DeviceSlot." + name)) << name;
  }
  for (const auto& [name, field] : fields<HostSlot>()) {
    EXPECT_TRUE(is_reserved(name) || reached.contains("HostSlot." + name)) << name;
  }
}

TEST(WorkerModel, EachArgumentIsReadWhole) {
  Names read;
  for (const auto& m : matches(templates(), R"(ld\.param\.u(\d+) [^\n;]*\[args\.(\w+)(\.\w+)?\])")) {
    read.insert(m[2]);
    const std::size_t bytes = m[3].matched ? sizeof(Divisor::magic) : fields<LaunchArgs>().at(m[2]).size;
    EXPECT_EQ(std::stoul(m[1]) / 8, bytes) << m[2];
  }
  for (const auto& [name, field] : fields<LaunchArgs>()) EXPECT_TRUE(read.contains(name)) << name;
}

TEST(WorkerModel, EachSharedWordIsUsedWhole) {
  Names used;
  const auto words = fields<pass::SharedWords>();
  for (const auto& m : matches(templates(), R"((?:ld|st|add)\S*?(?:\.v(\d))?\.u(\d+) [^\n;]*\bshared\.(\w+)\])")) {
    const Field word = words.at(m[3]);
    const std::size_t bytes = std::stoul(m[2]) / 8 * (m[1].matched ? std::stoul(m[1]) : 1);
    EXPECT_EQ(word.offset % bytes, 0u) << m[0];
    EXPECT_TRUE(word.size <= bytes || word.size == 2 * bytes) << m[0];  // one of two turns
    for (const auto& [name, other] : words) {
      if (other.offset >= word.offset && other.offset < word.offset + bytes) used.insert(name);
    }
  }
  for (const auto& m : matches(templates(), R"(SharedWords\.(\w+)|, shared\.(\w+);)")) {
    used.insert(m[1].matched ? m[1] : m[2]);
  }
  for (const auto& [name, word] : words) EXPECT_TRUE(is_reserved(name) || used.contains(name)) << name;
}

TEST(WorkerModel, EachConditionIsUsed) {
  Names used;
  for (const auto& m : matches(templates(), R"(#if !?(\w+))")) used.insert(m[1]);
  for (const auto& [name, flag] : fields<pass::WorkerShape>()) EXPECT_TRUE(used.contains(name)) << name;
}

}  // namespace
}  // namespace gpuctl::ptx
