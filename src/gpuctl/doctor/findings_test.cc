#include "gpuctl/doctor/findings.h"

#include <gtest/gtest.h>

#include <algorithm>

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
  seen.smi = {{"GPU-1", "Default", "Enabled"}};
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

TEST(Doctor, EachThingThatIsWrongIsOneFindingWithWhatToDo) {
  struct Case {
    const char* name;
    void (*change)(MachineSeen&);
    Severity severity;
    const char* part;
  };
  const Case cases[] = {
      {"no daemon", [](MachineSeen& s) { s.status.reset(), s.no_daemon = "cannot connect to X", s.mps_control = true; },
       error, "WITHOUT LIMITS"},
      {"a closed device", [](MachineSeen& s) { s.closed_devices = {"/dev/nvidia0"}; }, error, "/dev/nvidia0"},
      {"prohibited", [](MachineSeen& s) { s.smi[0].compute_mode = "Prohibited"; }, error, "PROHIBITED"},
      {"no persistence", [](MachineSeen& s) { s.smi[0].persistence = "Disabled"; }, note, "persistence"},
      {"MPS elsewhere", [](MachineSeen& s) { s.mps_control = false; }, error, "look for it in /tmp/nvidia-mps"},
      {"MPS of another user", [](MachineSeen& s) { s.mps_reachable = false; }, error, "may not use MPS"},
      {"no MPS",
       [](MachineSeen& s) {
         s.status->devices[0].mode = "time-sliced";
         s.mps_control = false;
         s.status->notes = {"MPS is not active: programs take turns"};
       },
       warning, "take turns"},
      {"MPS that gpuctld does not know", [](MachineSeen& s) { s.status->devices[0].mode = "time-sliced"; }, warning,
       "does not know it"},
      {"MPS of gpuctld, and another one asked for",
       [](MachineSeen& s) { s.status->mps_directory = "/run/x", s.mps_directory_set = true; }, warning,
       "/tmp/nvidia-mps"},
      {"MPS that gpuctld cannot start",
       [](MachineSeen& s) {
         s.status->devices[0].mode = "time-sliced";
         s.mps_control = false;
         s.status->notes = {"MPS is not active: programs take turns; there is no nvidia-cuda-mps-control"};
       },
       warning, "keeps no SMs; there is no nvidia-cuda-mps-control"},
      {"another library", [](MachineSeen& s) { s.library_says = "version `GLIBC_2.99' not found"; }, error,
       "GLIBC_2.99"},
      {"no library", [](MachineSeen& s) { s.library.clear(), s.no_library = "cannot read /x"; }, error,
       "cannot read /x"},
      {"no helper", [](MachineSeen& s) { s.helper = false; }, warning, "compile helper"},
      {"a mistake in the configuration",
       [](MachineSeen& s) {
         s.configuration_read = true, s.configuration = {"/etc/gpuctl.toml:3: daemon.x: no such key"};
       },
       error, "gpuctl.toml:3"},
      {"a note of the daemon", [](MachineSeen& s) { s.status->notes = {"reserves do not fit"}; }, note, "do not fit"},
      {"a wrong software GPU", [](MachineSeen& s) { s.no_software_gpu = "cannot read /x/libcuda.so.1"; }, warning,
       "cannot read /x/libcuda.so.1"},
      {"a slice without SMs",
       [](MachineSeen& s) {
         s.slices.resize(2);
         s.slices[0].path = "ls";
         s.slices[1].path = "batch";
         s.slices[1].max = 0;
       },
       warning, "slice batch has max 0"},
      {"a container", [](MachineSeen& s) { s.in_container = true; }, note, "container"},
  };
  for (const Case& one : cases) {
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
