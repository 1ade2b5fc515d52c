#include "gpuctld/config/config.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "gpuctld/config/daemon_keys.h"
#include "gpuctld/config/former_keys.h"

namespace gpuctl::daemon {
namespace {

class ConfigTest : public testing::Test {
 protected:
  ConfigTest() {
    std::string pattern = testing::TempDir() + "gpuctld-config-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~ConfigTest() override { std::filesystem::remove_all(directory_); }

  std::string write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = std::filesystem::path(directory_) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }
  ConfigOutcome read(const std::string& text) { return read_config(write("c.toml", text), true); }

  /// The only problem, without the file's name.
  std::string problem(const std::string& text) {
    const auto outcome = read(text);
    EXPECT_EQ(outcome.problems.size(), 1u) << text;
    return outcome.problems.empty() ? ""
                                    : outcome.problems[0].substr(directory_.size() + std::string("/c.toml:").size());
  }

  std::string directory_;
};

TEST_F(ConfigTest, ReadsEverything) {
  const auto outcome = read(R"(
[daemon]
evict_deadline_ms = 100
longest_block_task_ms = 300
on_disobey = "stop"
mandatory = "user:*,user:root,unit:slurm,cgroup:/ml.slice"
default_slice = "batch/others"
always_preemptible = true
time_slices = false
mps = "leave"
software_gpu = true
socket_mode = "0660"
socket_group = 44

[lab]
latency_target_us = 70
block_target_us = 10
lease_ms = 700
settled_ahead_ms = 20
reserve_by_parts = false
second_time_slice_us = 200

[[device]]
index = 1
[[device]]
uuid = "GPU-00"

[slice."ls"]
reserve = 8
reserve_mode = "strict"
reserve_hold_ms = 250
max = 100
weight = 300
priority = 10
memory_max = 1000000
latency = "5ms"
policy = "share"
owner_uid = 0
owner_gid = 44

[slice."batch/train"]
max = "unlimited"
[slice.batch]
)");
  ASSERT_TRUE(outcome.problems.empty()) << outcome.problems[0];
  const Config& config = outcome.config;
  EXPECT_EQ(config.daemon.latency_target, std::chrono::microseconds(70));
  EXPECT_EQ(config.daemon.block_target, std::chrono::microseconds(10));
  EXPECT_EQ(config.daemon.evict_deadline, std::chrono::milliseconds(100));
  EXPECT_EQ(config.daemon.longest_block_task, std::chrono::milliseconds(300));
  EXPECT_EQ(config.daemon.lease, std::chrono::milliseconds(700));
  EXPECT_EQ(config.daemon.on_disobey, OnDisobey::stop);
  EXPECT_EQ(config.daemon.mandatory, "user:*,user:0,unit:slurm,cgroup:/ml.slice");
  EXPECT_EQ(config.daemon.default_slice, "batch/others");
  EXPECT_EQ(config.daemon.settled_ahead, std::chrono::milliseconds(20));
  EXPECT_FALSE(config.daemon.time_slices);
  EXPECT_EQ(config.daemon.mps, MpsChoice::leave);
  EXPECT_EQ(config.daemon.second_time_slice, std::chrono::microseconds(200));
  EXPECT_TRUE(config.daemon.always_preemptible);
  EXPECT_FALSE(config.daemon.reserve_by_parts);
  EXPECT_TRUE(config.daemon.software_gpu);
  EXPECT_EQ(config.daemon.socket_mode, 0660u);
  EXPECT_EQ(config.daemon.socket_group, 44u);
  ASSERT_EQ(config.devices.size(), 2u);
  EXPECT_EQ(config.devices[0].index, 1);
  EXPECT_EQ(config.devices[1].uuid, "GPU-00");
  ASSERT_EQ(config.slices.size(), 3u);
  EXPECT_EQ(config.slices[0].path, "batch");
  EXPECT_EQ(config.slices[1].path, "batch/train");
  EXPECT_TRUE(config.slices[1].change.max_unlimited);
  EXPECT_EQ(config.slices[2].change.reserve, 8);
  EXPECT_EQ(config.slices[2].change.owner_uid, 0);
}

TEST_F(ConfigTest, NamesLineColumnAndField) {
  EXPECT_EQ(problem("[daemon]\nevict_daedline_ms = 5\n"),
            "2:1: daemon.evict_daedline_ms: unknown key; known: evict_deadline_ms, longest_block_task_ms, on_disobey, "
            "mandatory, default_slice, always_preemptible, time_slices, mps, software_gpu, socket_mode, socket_group");
  EXPECT_EQ(problem("[daemon]\nmps = \"own\"\n"), "2:7: daemon.mps: must be \"manage\" or \"leave\"");
  EXPECT_TRUE(problem("[lab]\nlatency_traget_us = 5\n")
                  .starts_with("2:1: lab.latency_traget_us: unknown key; known: latency_target_us, block_target_us, "));
  EXPECT_EQ(problem("[slice.ls]\nreserve = \"8\"\n"), "2:11: slice.\"ls\".reserve: must be an integer");
  EXPECT_EQ(problem("[slice.ls]\nmax = \"lots\"\n"), "2:7: slice.\"ls\".max: must be a whole number, or \"none\"");
  EXPECT_EQ(problem("[slice.ls]\nweight = 0\n"), "2:10: slice.\"ls\".weight: must be 1 to 10000, not 0");
  EXPECT_EQ(problem("[slice.ls]\npolicy = \"best\"\n"),
            "2:10: slice.\"ls\".policy: unknown; known: share, srt, frs, ffs, dprr, hpf; of papers: fcfs, piv, "
            "sjf, rr, cfs, sim");
  EXPECT_EQ(problem("x = 1\n"), "1:1: x: unknown key; known: daemon, slice, device");
  EXPECT_EQ(problem("mps = \"leave\"\n"), "1:1: mps: is a key of section [daemon]");
  EXPECT_EQ(problem("[lab]\nmps = \"leave\"\n"), "2:1: lab.mps: is a key of section [daemon]");
  EXPECT_EQ(problem("[daemon]\nweight = 5\n"),
            "2:1: daemon.weight: is a setting of a slice: it belongs into a section such as [slice.\"batch\"]");
  EXPECT_EQ(problem("slice = 3\n"), "1:9: slice: must be a table: [slice]");
  EXPECT_EQ(problem("[[device]]\n").substr(0, 4), "1:1:");
  EXPECT_EQ(problem("[daemon]\nsocket_mode = \"0999\"\n").substr(0, 5), "2:15:");
  EXPECT_EQ(problem("[daemon]\nsocket_group = \"no such group\"\n").substr(0, 5), "2:16:");
  EXPECT_EQ(problem("[daemon]\non_disobey = \"shout\"\n"), "2:14: daemon.on_disobey: must be \"report\" or \"stop\"");
  EXPECT_EQ(problem("[lab]\nsettled_ahead_ms = 1001\n"), "2:20: lab.settled_ahead_ms: must be 1 to 1000, not 1001");
  EXPECT_EQ(problem("[daemon]\ntime_slices = 1\n"), "2:15: daemon.time_slices: must be true or false");
  EXPECT_EQ(problem("[daemon]\nmandatory = \"user:no-such-user\"\n"),
            "2:13: daemon.mandatory: there is no user 'no-such-user'; give a user's name or number");
  EXPECT_EQ(
      problem("[daemon]\nmandatory = \"slurm\"\n"),
      "2:13: daemon.mandatory: must be none, or a list such as user:1000,unit:ollama.service,cgroup:/ml.slice, each "
      "once");
  EXPECT_EQ(problem("[daemon]\nmandatory = [\"user:root\"]\n"), "2:13: daemon.mandatory: must be a string");
  EXPECT_EQ(read("[daemon]\ndefault_slice = \"none\"\n").config.daemon.default_slice, "");
  EXPECT_EQ(problem("[daemon]\ndefault_slice = \"/others\"\n"),
            "2:17: daemon.default_slice: must be the path of a slice, such as \"others\", \"/\", or \"none\"");
  EXPECT_NE(problem("[daemon\n").find("syntax"), std::string::npos);
  EXPECT_EQ(problem("[slice.ls]\nreserve = 9\nmax = 4\n"), "2:11: slice.\"ls\".reserve: reserve 9 is above max 4");
}

TEST_F(ConfigTest, FindsAllProblemsAtOnce) {
  EXPECT_EQ(read("[daemon]\nfoo = 1\nevict_deadline_ms = 0\n[slice.a]\nbar = 2\n").problems.size(), 3u);
}

TEST_F(ConfigTest, DropInsOverrideSingleKeysInOrder) {
  const std::string file = write(
      "c.toml",
      "[daemon]\nevict_deadline_ms = 1\nlongest_block_task_ms = 2\n[slice.ls]\nreserve = 1\n[lab]\nlease_ms = 9\n");
  write("c.toml.d/20-b.toml", "[daemon]\nlongest_block_task_ms = 4\nlease_ms = 8\n");
  write("c.toml.d/10-a.toml", "[daemon]\nlongest_block_task_ms = 3\n[slice.ls]\nweight = 7\n");
  write("c.toml.d/readme", "not toml");
  const auto outcome = read_config(file, true);
  ASSERT_TRUE(outcome.problems.empty());
  EXPECT_EQ(outcome.config.daemon.evict_deadline.count(), 1);
  EXPECT_EQ(outcome.config.daemon.longest_block_task.count(), 4);
  EXPECT_EQ(outcome.config.daemon.lease.count(), 8) << "an earlier name, in a later file";
  ASSERT_EQ(outcome.config.slices.size(), 1u);
  EXPECT_EQ(outcome.config.slices[0].change.reserve, 1);
  EXPECT_EQ(outcome.config.slices[0].change.weight, 7);
}

TEST_F(ConfigTest, AMissingFileIsOnlyWrongWhenAskedFor) {
  EXPECT_TRUE(read_config(directory_ + "/none.toml", false).problems.empty());
  EXPECT_EQ(read_config(directory_ + "/none.toml", true).problems.size(), 1u);
  EXPECT_TRUE(read_config("", false).problems.empty());
  EXPECT_TRUE(read("").problems.empty());
  EXPECT_EQ(read_config(directory_, true).problems, std::vector<std::string>{directory_ + ": is not a regular file"});
}

TEST_F(ConfigTest, TheNullDeviceIsAnEmptyFileAndNoOtherDeviceIs) {
  const std::string link = directory_ + "/link.toml", fifo = directory_ + "/fifo";
  std::filesystem::create_symlink("/dev/null", link);
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  ::alarm(60);
  for (const std::string& file : {std::string("/dev/null"), link}) {
    const ConfigOutcome outcome = read_config(file, true);
    EXPECT_EQ(outcome.problems, std::vector<std::string>()) << file;
    EXPECT_TRUE(outcome.config.slices.empty());
  }
  for (const std::string& file : {std::string("/dev/zero"), fifo})
    EXPECT_EQ(read_config(file, true).problems, std::vector<std::string>{file + ": is not a regular file"});
  ::alarm(0);
}

TEST_F(ConfigTest, AFifoOrADeviceAmongTheDropInsIsAProblemAndHoldsNobodyUp) {
  const std::string file = write("c.toml", "");
  write("c.toml.d/30-c.toml", "[slice.ls]\nreserve = 1\n");
  const std::string fifo = directory_ + "/c.toml.d/10-a.toml", device = directory_ + "/c.toml.d/20-b.toml";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/zero", device);
  ::alarm(60);
  EXPECT_EQ(read_config(file, true).problems,
            (std::vector{fifo + ": is not a regular file", device + ": is not a regular file"}));
  ::alarm(0);
}

TEST_F(ConfigTest, WhatLiesInThePlaceOfTheDropInsIsAProblem) {
  const std::string file = write("c.toml", "");
  write("c.toml.d", "");
  EXPECT_EQ(read_config(file, true).problems, std::vector<std::string>{file + ".d: cannot be read: Not a directory"});
}

TEST_F(ConfigTest, LimitsAreWrittenAsOnTheCommandLine) {
  const auto limit = [&](const std::string& value) {
    const auto outcome = read("[slice.ls]\nmemory_max = " + value + "\n");
    EXPECT_TRUE(outcome.problems.empty()) << outcome.problems[0];
    return outcome.config.slices.at(0).change;
  };
  EXPECT_EQ(limit("\"16G\"").memory_max, 16ll << 30);
  EXPECT_EQ(limit("\"1.5GiB\"").memory_max, 3ll << 29);
  EXPECT_EQ(limit("0").memory_max, 0);
  EXPECT_EQ(limit("\"0\"").memory_max, 0);
  EXPECT_TRUE(limit("\"none\"").memory_unlimited && limit("\"unlimited\"").memory_unlimited);
  EXPECT_TRUE(read("[slice.ls]\nmax = \"none\"\n").config.slices.at(0).change.max_unlimited);
  const std::string wrong = "2:14: slice.\"ls\".memory_max: must be bytes, a size such as \"16G\", or \"none\"";
  for (const char* value : {"\"lots\"", "1.5", "true"})
    EXPECT_EQ(problem(std::string("[slice.ls]\nmemory_max = ") + value + "\n"), wrong) << value;
}

/// A line of [daemon] that sets the key to something else than its default.
std::string set_line(const DaemonKey& key) {
  const std::string name(key.name);
  if (std::holds_alternative<DaemonKey::Member<bool>>(key.member))
    return name + " = " + (DaemonOptions{}.*std::get<DaemonKey::Member<bool>>(key.member) ? "false" : "true");
  return name + " = 7";
}

TEST_F(ConfigTest, EachKeyThatHasMovedOrGoneIsAcceptedWithALineThatSaysSo) {
  std::string all;
  for (const FormerKey& former : kFormerKeys) {
    const std::string name(former.name);
    EXPECT_EQ(std::ranges::find(kDaemonKeys, former.name, &DaemonKey::name), kDaemonKeys.end()) << name;
    const auto key = std::ranges::find(kLabKeys, former.name, &DaemonKey::name);
    ASSERT_EQ(key == kLabKeys.end(), !former.gone.empty()) << name;
    const std::string line = former.gone.empty() ? set_line(*key) : name + " = \"whatever it was\"";
    const auto outcome = read("[daemon]\n" + line + "\n");
    EXPECT_EQ(outcome.problems, std::vector<std::string>()) << name;
    const std::string says = former.gone.empty() ? "is " + name + " of [lab] now, for experiments"
                                                 : "has no effect any more: " + std::string(former.gone);
    const std::vector<std::string> notes{directory_ + "/c.toml:2:1: daemon." + name + ": " + says};
    EXPECT_EQ(outcome.notes, notes);
    EXPECT_EQ(read_config(directory_ + "/c.toml", true, Accepted::documented).problems, notes);
    const bool changes = outcome.config.daemon != DaemonOptions();
    EXPECT_EQ(changes, former.gone.empty()) << name;
    if (former.gone.empty()) {
      EXPECT_EQ(outcome.config.daemon, read("[lab]\n" + line + "\n").config.daemon) << name;
    }
    all += line + "\n";
  }
  EXPECT_EQ(read("[daemon]\n" + all).notes.size(), kFormerKeys.size());
  EXPECT_EQ(problem("[daemon]\nlease_ms = 0\n"), "2:12: daemon.lease_ms: must be 1 to 3600000, not 0");
}

TEST_F(ConfigTest, TheFormerReserveModeIsReadAsWhatTookItsPlaceWithALineThatSaysSo) {
  const std::string says =
      "3:16: slice.\"ls\".reserve_mode: lend is no more; active with a reserve_hold of 1 ms took its place";
  const auto outcome = read("[slice.ls]\nreserve_hold_ms = 250\nreserve_mode = \"lend\"\n");
  EXPECT_EQ(outcome.problems, std::vector<std::string>());
  EXPECT_EQ(outcome.notes, std::vector<std::string>{directory_ + "/c.toml:" + says});
  EXPECT_EQ(outcome.config.slices.at(0).change.reserve_mode, "active");
  EXPECT_EQ(outcome.config.slices.at(0).change.reserve_hold_ms, 1);
  const auto strictly = read_config(directory_ + "/c.toml", true, Accepted::documented);
  EXPECT_EQ(strictly.problems, std::vector<std::string>{directory_ + "/c.toml:" + says});
  EXPECT_TRUE(strictly.notes.empty());
  // Where a later file says another mode, nothing of it is left.
  write("c.toml.d/10.toml", "[slice.ls]\nreserve_mode = \"active\"\n");
  const auto later = read_config(directory_ + "/c.toml", true);
  EXPECT_TRUE(later.problems.empty() && later.notes.empty());
  EXPECT_EQ(later.config.slices.at(0).change.reserve_hold_ms, 250);
  write("c.toml.d/10.toml", "[slice.ls]\nreserve_mode = \"lent\"\n");
  EXPECT_EQ(read_config(directory_ + "/c.toml", true).problems,
            std::vector<std::string>{directory_ +
                                     "/c.toml.d/10.toml:2:16: slice.\"ls\".reserve_mode: must be strict or active"});
}

TEST_F(ConfigTest, AJoinOfALinkIsNotedAndNoMistake) {
  const std::string directory = std::filesystem::canonical(directory_), file = directory + "/python3.12";
  std::ofstream(file).close();
  std::filesystem::create_symlink(file, directory_ + "/python3");
  const auto outcome =
      read("[slice.py]\njoin = \"exe:" + directory + "/python3\"\n[slice.sound]\njoin = \"exe:" + file + "\"\n");
  EXPECT_TRUE(outcome.problems.empty());
  EXPECT_TRUE(outcome.notes.empty()) << "reading it follows no path of others";
  EXPECT_EQ(links_in_joins(outcome.config),
            std::vector<std::string>{directory_ + "/c.toml:2:8: slice.\"py\".join: exe:" + directory +
                                     "/python3 has no programs as long as it is a link: they are known by " + file +
                                     ", so say exe:" + file});
}

TEST_F(ConfigTest, OnlyStrictReadingRefusesTheTableOfExperiments) {
  const auto outcome = read("[lab]\nlease_ms = 7\n");
  EXPECT_TRUE(outcome.problems.empty() && outcome.notes.empty());
  EXPECT_EQ(outcome.config.daemon.lease.count(), 7);
  const std::string file = directory_ + "/c.toml";
  EXPECT_EQ(read_config(file, true, Accepted::documented).problems,
            std::vector<std::string>{file + ":1:2: lab: is for experiments, and refused by --strict"});
  EXPECT_EQ(problem("lab = 3\n"), "1:7: lab: must be a table: [lab]");
}

TEST(ShippedConfig, IsValidAndSaysTheDefaults) {
  const auto as_shipped = read_config(GPUCTL_SHIPPED_CONFIG, true);
  EXPECT_TRUE(as_shipped.problems.empty());
  EXPECT_TRUE(as_shipped.config.slices.empty());

  // With its comment signs removed, every key is known and equal to the default.
  std::ifstream file(GPUCTL_SHIPPED_CONFIG);
  std::string text;
  for (std::string line; std::getline(file, line);)
    text += (line.starts_with("#") && !line.starts_with("# ") ? line.substr(1) : line) + "\n";
  const std::string copy = testing::TempDir() + "gpuctl-shipped.toml";
  std::ofstream(copy) << text;
  const auto outcome = read_config(copy, true);
  for (const std::string& problem : outcome.problems) ADD_FAILURE() << problem;
  DaemonOptions defaults;
  defaults.mps = MpsChoice::manage;  // where programs run side by side by MPS alone
  defaults.socket_mode = 0666;
  defaults.socket_group = outcome.config.daemon.socket_group;
  EXPECT_EQ(outcome.config.daemon, defaults);
  ASSERT_EQ(outcome.config.slices.size(), 1u);
  const sched::SliceChange& slice = outcome.config.slices[0].change;
  EXPECT_EQ(slice.reserve, 0);
  EXPECT_EQ(slice.reserve_mode, "active");
  EXPECT_EQ(slice.reserve_hold_ms, 100);
  EXPECT_TRUE(slice.max_unlimited && slice.memory_unlimited);
  EXPECT_EQ(slice.weight, sched::kWeightDefault);
  EXPECT_EQ(slice.policy, "share");
  std::filesystem::remove(copy);
}

/// The default as the configuration writes it; empty if it is not one value.
std::string default_of(const DaemonKey& key) {
  const DaemonOptions defaults;
  if (const auto* us = std::get_if<DaemonKey::Member<std::chrono::microseconds>>(&key.member))
    return std::to_string((defaults.**us).count());
  if (const auto* ms = std::get_if<DaemonKey::Member<std::chrono::milliseconds>>(&key.member))
    return std::to_string((defaults.**ms).count());
  if (const auto* flag = std::get_if<DaemonKey::Member<bool>>(&key.member)) return defaults.**flag ? "true" : "false";
  return {};
}

std::string text_of(const char* file) {
  std::ifstream stream(file);
  EXPECT_TRUE(stream) << file;
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST(ShippedConfig, FitsAScreenAndHasElevenKeysOfTheDaemon) {
  const std::string shipped = text_of(GPUCTL_SHIPPED_CONFIG);
  EXPECT_LE(std::ranges::count(shipped, '\n'), 40);
  EXPECT_LE(kDaemonKeys.size(), 11u);
}

TEST(ShippedConfig, AndTheManualHaveEveryKeyOfTheDaemon) {
  const std::string shipped = text_of(GPUCTL_SHIPPED_CONFIG), manual = text_of(GPUCTL_CONFIG_MANUAL);
  for (const DaemonKey& key : kDaemonKeys) {
    const std::string name(key.name), value = default_of(key);
    EXPECT_NE(shipped.find("\n#" + name + " = " + (value.empty() ? "" : value + "\n")), std::string::npos) << name;
    const std::size_t entry = manual.find("\n.It Cm " + name + " = ");
    ASSERT_NE(entry, std::string::npos) << name;
    if (!value.empty()) {
      EXPECT_EQ(manual.find("\n.It Cm " + name + " = No " + value + "\n"), entry) << name;
    }
    if (key.greatest == 0) continue;
    const std::string range = std::to_string(key.least) + " to " + std::to_string(key.greatest);
    EXPECT_LT(manual.find(range, entry), manual.find(".It ", entry + 5)) << name << " does not say " << range;
  }
}

/// bench/lab.md has a row for each: name, default, range. What administrators read has none of them.
TEST(ShippedConfig, AndTheManualHaveNoKeyOfTheLabWhichHasAPageOfItsOwn) {
  const std::string shipped = text_of(GPUCTL_SHIPPED_CONFIG), manual = text_of(GPUCTL_CONFIG_MANUAL);
  const std::string page = text_of(GPUCTL_LAB_PAGE);
  std::size_t at = 0;
  for (const DaemonKey& key : kLabKeys) {
    const std::string name(key.name), value = default_of(key);
    EXPECT_EQ(shipped.find(name), std::string::npos) << name;
    EXPECT_EQ(manual.find(name), std::string::npos) << name;
    const std::string range =
        key.greatest == 0 ? "" : std::to_string(key.least) + " to " + std::to_string(key.greatest);
    const std::string row =
        "\n| `" + name + "` | " + (value.empty() ? "`\"auto\"`" : "`" + value + "`") + " | " + range;
    const std::size_t found = page.find(row, at);
    EXPECT_NE(found, std::string::npos) << row;
    at = found;
  }
}

}  // namespace
}  // namespace gpuctl::daemon
