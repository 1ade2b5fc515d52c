#include "gpuctl/doctor/findings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace gpuctl::cli {
namespace {

using enum Severity;

/// Where all is well: a driver, MPS, a daemon.
MachineSeen well() {
  MachineSeen seen;
  seen.socket = "/run/gpuctld/io.gpuctl";
  seen.status.emplace();
  seen.status->version = "0.1.0";
  seen.status->devices = {{0, "NVIDIA H100", "GPU-1", "cuda", 132, 0, "mps"}};
  seen.driver = true;
  seen.driver_version = "580.1";
  seen.smi = {{"GPU-1", "Default", "Enabled", "NVIDIA H100", "1980 MHz", "1980 MHz", 0}};
  seen.mps_directory = "/tmp/nvidia-mps";
  seen.mps_control = seen.mps_reachable = true;
  seen.library = "/usr/lib/libgpuslice.so";
  return seen;
}

/// The only finding that is worse than good.
Finding the_one(const std::vector<Finding>& findings) {
  const auto bad = [](const Finding& finding) { return finding.severity != good; };
  EXPECT_EQ(std::ranges::count_if(findings, bad), 1);
  const auto found = std::ranges::find_if(findings, bad);
  return found == findings.end() ? Finding{} : *found;
}

TEST(Doctor, NothingIsWrongWhereAllIsWell) {
  EXPECT_EQ(worst(judge(well())), good);
  EXPECT_EQ(worst({}), good);
}

struct Case {
  const char* name;
  void (*change)(MachineSeen&);
  Severity severity;
  const char* part;  ///< of what is said
  const char* row;   ///< of what is said and of docs/troubleshooting.md; "": another one said it
};

const Case kCases[] = {
    {"no daemon", [](MachineSeen& s) { s.status.reset(), s.no_daemon = "cannot connect to X", s.mps_control = true; },
     error, "WITHOUT LIMITS", "cannot connect"},
    {"a closed device", [](MachineSeen& s) { s.closed_devices = {"/dev/nvidia0"}; }, error, "/dev/nvidia0",
     "may not open"},
    {"prohibited", [](MachineSeen& s) { s.smi[0].compute_mode = "Prohibited"; }, error, "PROHIBITED",
     "compute mode PROHIBITED"},
    {"no persistence", [](MachineSeen& s) { s.smi[0].persistence = "Disabled"; }, note, "persistence",
     "has no persistence"},
    {"MPS elsewhere", [](MachineSeen& s) { s.mps_control = false; }, error, "look for it in /tmp/nvidia-mps",
     "look for it in"},
    {"MPS of another user", [](MachineSeen& s) { s.mps_reachable = false; }, error, "may not use MPS",
     "may not use MPS"},
    {"no MPS",
     [](MachineSeen& s) {
       s.status->devices[0].mode = "time-sliced";
       s.mps_control = false;
       s.status->notes = {"MPS is not active: programs take turns"};
     },
     warning, "take turns", "MPS does not run"},
    {"MPS that gpuctld does not know", [](MachineSeen& s) { s.status->devices[0].mode = "time-sliced"; }, warning,
     "does not know it", "gpuctld does not know it"},
    {"MPS of gpuctld, and another one asked for",
     [](MachineSeen& s) { s.status->mps_directory = "/run/x", s.mps_directory_set = true; }, warning, "/tmp/nvidia-mps",
     "look for it in"},
    {"MPS that gpuctld cannot start",
     [](MachineSeen& s) {
       s.status->devices[0].mode = "time-sliced";
       s.mps_control = false;
       s.status->notes = {"MPS is not active: programs take turns; there is no nvidia-cuda-mps-control"};
     },
     warning, "keeps no SMs; there is no nvidia-cuda-mps-control", "MPS does not run"},
    {"another library", [](MachineSeen& s) { s.library_says = "version `GLIBC_2.99' not found"; }, error, "GLIBC_2.99",
     "cannot be loaded"},
    {"no library", [](MachineSeen& s) { s.library.clear(), s.no_library = "cannot read /x"; }, error, "cannot read /x",
     ""},
    {"no helper", [](MachineSeen& s) { s.helper = false; }, warning, "compile helper",
     "the compile helper is not beside it"},
    {"a mistake in the configuration",
     [](MachineSeen& s) {
       s.configuration_read = true, s.configuration = {"/etc/gpuctl.toml:3: daemon.x: no such key"};
     },
     error, "gpuctl.toml:3", ""},
    {"a note of the daemon", [](MachineSeen& s) { s.status->notes = {"reserves do not fit"}; }, note, "do not fit", ""},
    {"a wrong software GPU", [](MachineSeen& s) { s.no_software_gpu = "cannot read /x/libcuda.so.1"; }, warning,
     "cannot read /x/libcuda.so.1", ""},
    {"a slice without SMs",
     [](MachineSeen& s) {
       s.slices.resize(2);
       s.slices[0].path = "ls";
       s.slices[1].path = "batch";
       s.slices[1].max = 0;
     },
     warning, "slice batch has max 0", "has max 0"},
    {"all slices frozen",
     [](MachineSeen& s) {
       s.slices.resize(1);
       s.slices[0].path = "/";
       s.slices[0].frozen = "yes";
     },
     warning, "all slices are frozen", ""},
    {"a GPU that is too hot", [](MachineSeen& s) { s.smi[0].slowed_by = 0x24; }, warning,
     "throttled, as it is too hot, limited by how much power", "throttled"},
    {"a GPU at its limit of power", [](MachineSeen& s) { s.smi[0].slowed_by = 0x4; }, note, "limited by how much power",
     "limited by"},
    {"files of an MPS that has ended",
     [](MachineSeen& s) {
       s.status->devices[0].mode = "time-sliced";
       s.mps_control = false, s.mps_left = true;
     },
     warning, "what is in /tmp/nvidia-mps is of one that ended", "MPS does not run"},
    {"MPS that somebody else started",
     [](MachineSeen& s) { s.status->devices[0].mode = "time-sliced", s.mps_owner = "alice"; }, warning,
     "in /tmp/nvidia-mps, which alice started, and", "gpuctld does not know it"},
    {"cgroups of version 1", [](MachineSeen& s) { s.cgroups = 1; }, note, "version 1", "cgroups are of version 1"},
    {"a container", [](MachineSeen& s) { s.in_container = true; }, note, "WITHOUT LIMITS", "has no device of a slice"},
    {"a container that cannot load the library",
     [](MachineSeen& s) { s.in_container = true, s.container_slice = "batch", s.container_preloads = false; }, error,
     "slice batch: they run WITHOUT LIMITS", "is not in this container's programs"},
};

TEST(Doctor, EachThingThatIsWrongIsOneFindingWithWhatToDo) {
  for (const Case& one : kCases) {
    MachineSeen seen = well();
    one.change(seen);
    std::vector<Finding> findings = judge(seen);
    if (!seen.status)  // what the daemon would have said of MPS is not known then
      std::erase_if(findings, [](const Finding& finding) { return finding.topic == "MPS"; });
    const Finding found = the_one(findings);
    EXPECT_EQ(found.severity, one.severity) << one.name;
    EXPECT_NE(found.what.find(one.part), std::string::npos) << one.name << ": " << found.what;
    EXPECT_EQ(worst(findings), one.severity) << one.name;
  }
}

TEST(Doctor, ThePageHasARowForEachThingThatIsWrong) {
  std::ifstream file(GPUCTL_SOURCE_ROOT "/docs/troubleshooting.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const Case& one : kCases) {
    MachineSeen seen = well();
    one.change(seen);
    const auto says = [&](const Finding& finding) {
      return (finding.topic + " " + finding.what).find(one.row) != std::string::npos;
    };
    EXPECT_TRUE(std::ranges::any_of(judge(seen), says)) << one.name;
    EXPECT_NE(page.find(one.row), std::string::npos) << one.name << ": no row has '" << one.row << "'";
  }
}

TEST(Doctor, WhatIsWellIsSaidOfEachGpuAndOfMps) {
  MachineSeen seen = well();
  seen.mps_owner = "root";
  seen.smi.push_back({"GPU-2", "Default", "Enabled", "NVIDIA H200", "345 MHz", "1980 MHz", 0x1});
  seen.smi.push_back({"GPU-3", "Default", "Enabled", "NVIDIA H200"});
  seen.cgroups = 2;
  seen.in_container = true;
  seen.container_slice = "batch";
  const auto has = [&seen](std::string_view what) {
    return std::ranges::any_of(judge(seen), [&](const Finding& finding) { return finding.what == what; });
  };
  for (const char* what :
       {"GPU GPU-1 (NVIDIA H100): its SMs run at 1980 MHz of 1980 MHz, not slowed down",
        "GPU GPU-2 (NVIDIA H200): its SMs run at 345 MHz of 1980 MHz, idle", "GPU GPU-3 (NVIDIA H200)",
        "programs run side by side by MPS in /tmp/nvidia-mps, which root started",
        "are of version 2, and this driver cannot limit their memory: the library alone keeps memory-max",
        "its programs are in slice batch, if their user may be in it"})
    EXPECT_TRUE(has(what)) << what;
  EXPECT_EQ(worst(judge(seen)), good);
  seen.dmem = true;
  EXPECT_TRUE(has(
      "are of version 2, and this driver cannot limit their memory, though there is the controller dmem: the library "
      "alone keeps memory-max"));
  seen.driver_limits = true;
  EXPECT_TRUE(has("are of version 2, and the driver limits their memory, by the controller dmem"));
  seen.dmem = false;
  EXPECT_TRUE(has("are of version 2, and the driver limits their memory, by itself: there is no controller dmem"));
  seen.status->mps_directory = "/run/x", seen.own_mps_owner = "gpuctl";
  EXPECT_TRUE(has("programs of slices run side by side by MPS in /run/x, which gpuctl started"));
}

TEST(Doctor, WhichSlicesAreIsolatedAndWhatThatCostsIsSaid) {
  MachineSeen seen = well();
  const auto said = [&seen] {
    const auto findings = judge(seen);
    const auto found = std::ranges::find(findings, "isolation", &Finding::topic);
    return found == findings.end() ? "" : found->what;
  };
  seen.slices.resize(10);
  for (std::size_t i = 0; i < 10; ++i) seen.slices[i].path = std::string(1, static_cast<char>('a' + i));
  EXPECT_EQ(said(), "");
  seen.slices[2].isolation = "isolated";
  seen.slices[3].isolation = "shared";
  seen.slices[4].effective_isolation = "isolated";
  EXPECT_TRUE(said().starts_with("isolated now: c, e; a context or MPS of their own takes some 600 MiB")) << said();
  for (ipc::Slice& slice : seen.slices) slice.effective_isolation = "isolated";
  EXPECT_TRUE(said().starts_with("isolated now: a, b, c, d, e, f, g, h and 2 more;")) << said();
}

TEST(Doctor, WhyAProgramGetsLessThanItAsksForIsSaid) {
  ProgramSeen seen{.pid = 7, .alive = true, .client = ipc::Client{.pid = 7, .slice = "batch"}, .slice = ipc::Slice{}};
  seen.slice->path = "batch";
  EXPECT_EQ(judge(seen).size(), 1u);
  seen.slice->effective_frozen = "yes";
  seen.slice->quota_now = "quota used up on GPU 0";
  seen.slice->memory_high = 1 << 30;
  seen.slice->memory_waits = 3;
  std::string said;
  for (const Finding& finding : judge(seen)) said += finding.what + "; " + finding.fix + "\n";
  for (const char* part : {"frozen", "gpuctl thaw batch", "throttled: quota used up on GPU 0", "waited 3 times"})
    EXPECT_NE(said.find(part), std::string::npos) << part << " in " << said;
  EXPECT_EQ(worst(judge(seen)), note);
  seen.slice = ipc::Slice{};
  seen.slice->path = "batch/x";
  seen.slice->max = 4;
  EXPECT_EQ(worst(judge(seen)), good);
  seen.slice->effective_max = 0;
  EXPECT_EQ(judge(seen).back().what, "a slice above batch/x has max 0: no program in it gets an SM");
  seen.slice->max = 0;
  EXPECT_EQ(judge(seen).back().fix, "gpuctl set batch/x max=none");
  EXPECT_EQ(worst(judge(seen)), warning);
}

TEST(Doctor, WithAMistakeInTheConfigurationADaemonThatIsNotThereIsToBeStartedOnceThatIsMended) {
  MachineSeen seen = well();
  seen.status.reset();
  const auto fix_of = [&seen](std::string_view topic) {
    const auto findings = judge(seen);
    const auto found =
        std::ranges::find_if(findings, [&](const Finding& one) { return one.topic == topic && one.severity == error; });
    return found == findings.end() ? "" : found->fix;
  };
  EXPECT_EQ(fix_of("daemon"), "systemctl enable --now gpuctld.socket, or set GPUCTL_SOCKET");
  seen.configuration_read = true, seen.configuration = {"/etc/gpuctl.toml:3: daemon.x: no such key"};
  EXPECT_EQ(fix_of("daemon"), "mend the configuration first");
  EXPECT_EQ(fix_of("configuration"),
            "mend it, then: systemctl reset-failed gpuctld.service gpuctld.socket; systemctl restart gpuctld.socket");
}

TEST(Doctor, NothingIsWrongWithTheMpsOfGpuctld) {
  MachineSeen seen = well();
  seen.mps_control = seen.mps_reachable = false;
  seen.status->mps_directory = "/run/x";
  seen.smi[0].compute_mode = "Exclusive_Process";
  EXPECT_EQ(worst(judge(seen)), good);
  seen.smi[0].compute_mode = "Default";
  seen.status->mps_directory.reset();
  seen.status->devices[0].mode = "time-sliced";
  seen.status->notes = {"MPS is started for the first program of a slice, with which others then run side by side"};
  EXPECT_EQ(worst(judge(seen)), good);
}

TEST(Doctor, ExclusiveModeIsWrongWithoutMpsAlone) {
  MachineSeen seen = well();
  seen.smi[0].compute_mode = "Exclusive_Process";
  EXPECT_EQ(worst(judge(seen)), good);
  seen.mps_control = false;
  seen.status->devices[0].mode = "time-sliced";
  EXPECT_EQ(worst(judge(seen)), error);
}

TEST(Doctor, TheSoftwareGpuNeedsNoDriver) {
  MachineSeen seen = well();
  seen.driver = false;
  seen.mps_control = false;
  EXPECT_EQ(worst(judge(seen)), error);
  seen.status->devices = {{0, "software GPU", "GPU-2", "software", 8, 0, "software"}};
  EXPECT_EQ(worst(judge(seen)), note);
}

TEST(Doctor, AProgramsLineSaysWhatItReallyGets) {
  ProgramSeen seen{.pid = 7};
  EXPECT_EQ(worst(judge(seen)), error) << "it does not run";
  seen.alive = true;
  EXPECT_EQ(worst(judge(seen)), note) << "no CUDA";
  seen.hidden = true;
  EXPECT_EQ(worst(judge(seen)), warning) << "nobody knows";
  EXPECT_EQ(the_one(judge(seen)).what, "process 7 may not be looked at: whether it uses CUDA is not known");
  seen.hidden = false;
  seen.uses_cuda = true;
  seen.obstacle = "it is linked statically";
  EXPECT_EQ(the_one(judge(seen)).what,
            "process 7 uses CUDA without gpuctl's library, so NOTHING LIMITS IT: it is linked statically");
  seen.mandatory = "user:*";
  EXPECT_TRUE(
      the_one(judge(seen))
          .what.ends_with(": it is linked statically; gpuctld ends it, as the library is mandatory for user:*"));
  seen.user = 9;
  EXPECT_TRUE(the_one(judge(seen)).what.starts_with("process 9, below process 7, uses CUDA without")) << "a child";
  seen.has_library = true;
  EXPECT_NE(the_one(judge(seen)).what.find("NOTHING LIMITS IT"), std::string::npos);
  seen.client.emplace();
  seen.client->slice = "batch";
  seen.client->state = "running";
  seen.client->usage = {{.granted = 40, .mode = "workers"},
                        {.device = 1, .mode = "free"},
                        {.device = 2, .mode = "common", .common_sms = 96}};
  const std::vector<Finding> findings = judge(seen);
  ASSERT_EQ(findings.size(), 4u);
  EXPECT_EQ(worst(findings), good);
  EXPECT_EQ(findings[0].what, "process 9, below process 7, is in slice batch");
  EXPECT_EQ(findings[1].what, "on GPU 0: mode workers, 40 SMs of its own now");
  EXPECT_EQ(findings[2].what, "on GPU 1: mode free, all SMs, as without gpuctl");
  EXPECT_EQ(findings[3].what, "on GPU 2: mode common, 96 SMs in common with others");
  for (const char* state : {"disobeying", "faulted"}) {
    seen.client->state = state;
    EXPECT_EQ(worst(judge(seen)), warning) << state;
  }
  seen.client->usage = {{.granted = 0, .mode = "workers"}};
  EXPECT_EQ(judge(seen)[1].what, "on GPU 0: mode workers, 0 SMs of its own now; gpuctl explain says what is in force");
  seen.no_daemon = "cannot connect";
  EXPECT_EQ(worst(judge(seen)), error);
}

TEST(Doctor, InAContainerProgramsHaveOtherIds) {
  ProgramSeen seen{.pid = 1, .alive = true, .uses_cuda = true, .has_library = true, .container_slice = "batch"};
  EXPECT_EQ(the_one(judge(seen)).severity, note);
  seen.alive = false;  // as is said of an id of the host there
  EXPECT_NE(the_one(judge(seen)).fix.find("top --once"), std::string::npos);
  seen.client = ipc::Client{.pid = 1, .slice = "batch"};
  seen.alive = true;
  for (const Finding& finding : judge(seen)) EXPECT_EQ(finding.what.find("not found"), std::string::npos);
}

TEST(Doctor, SaysByWhatAProgramsMemoryIsKept) {
  ProgramSeen seen{.pid = 7, .alive = true, .uses_cuda = true, .has_library = true};
  seen.client.emplace();
  seen.cgroup = "/system.slice/a.service";
  const std::int64_t gib = std::int64_t{1} << 30;
  const auto kept = [&](std::optional<std::int64_t> slice, std::optional<std::int64_t> driver) {
    seen.memory = {{.device = 1, .slice = slice, .driver = driver}};
    return judge(seen).back();
  };
  EXPECT_EQ(kept({}, {}).topic, "program") << "nothing limits it";
  EXPECT_EQ(kept(2 * gib, {}).what, "on GPU 1: at most 2 GiB for its slice, kept by the library alone");
  EXPECT_EQ(kept(2 * gib, 3 * gib).what,
            "on GPU 1: at most 2 GiB for its slice, kept by the library; at most 3 GiB for /system.slice/a.service, "
            "kept by the driver");
  EXPECT_EQ(kept(2 * gib, 3 * gib).severity, good);
  for (const std::int64_t driver : {gib, 2 * gib}) {
    EXPECT_EQ(kept(2 * gib, driver).severity, warning) << "the driver's own part counts there";
    EXPECT_TRUE(kept(2 * gib, driver).what.ends_with(", which refuses memory that the slice allows"));
  }
  EXPECT_EQ(kept({}, gib).what, "on GPU 1: at most 1 GiB for /system.slice/a.service, kept by the driver");
  EXPECT_EQ(kept({}, gib).severity, note);
}

}  // namespace
}  // namespace gpuctl::cli
