#include "gpuctl/views/kernel_lines.h"

#include <gtest/gtest.h>

namespace gpuctl::cli {
namespace {

using Lines = std::vector<std::string>;

TEST(KernelLines, OneLineEach) {
  const Table table = kernel_table({
      {"_Z5scalePff", "m0", "opaque", "grid barrier: cooperative_groups sync", 3, 0, 40, 0, 0},
      {"vectorAdd", "m0", "persistent", "all rules met", 12400, 34, 30, 8, 21260},
      {"never", "m0", "opaque", "cluster launch", 0, 0, 0, 2, 0},
  });
  EXPECT_EQ(table.lines(),
            (Lines{"FORM        LAUNCHES  REGISTERS  WORKERS/SM  BLOCK-TASK  KERNEL                REASON",
                   "persistent     12.4k   30 -> 34           8     21.3 us  vectorAdd             all rules met",
                   "opaque             3         40           -           -  scale(float*, float)  grid barrier: "
                   "cooperative_groups sync",
                   "opaque             0          -           2           -  never                 cluster launch"}));
}

TEST(InForceLines, SayWhatAndHowThePriorityStands) {
  ipc::Client client;
  EXPECT_EQ(in_force_lines(client), Lines{});
  client.usage.resize(2);
  client.usage[1].device = 1;
  client.usage[1].in_force = "reserve";
  client.usage[1].mode = "part";
  client.usage[1].granted = 33;
  client.usage[1].priority_rank = 1;
  client.usage[1].priorities = 3;
  const std::string part =
      "in force on GPU 1: reserve; mode part: kernels keep their original form, on 33 SMs of its own";
  EXPECT_EQ(in_force_lines(client),
            (Lines{"in force on GPU 0: nothing; mode free: kernels run as the program launches them",
                   part + "; priority 2 of 3 from below"}));
  client.usage[1].priorities = 1;
  client.usage[1].sms_told = 1;
  EXPECT_EQ(in_force_lines(client)[1], part + "; told of 1 SM");
  client.usage[1].mps_sms = 98;
  EXPECT_EQ(in_force_lines(client)[1], part + "; MPS keeps it to 98 SMs until it starts again; told of 1 SM");
}

TEST(InForceLines, NameThePolicyForJobs) {
  ipc::Client client;
  client.usage.resize(2);
  client.usage[0].in_force = "jobs";
  client.usage[1].in_force = "max";
  const Lines lines = in_force_lines(client, "policy srt of /");
  EXPECT_EQ(lines[0].substr(0, lines[0].find(';')), "in force on GPU 0: jobs (policy srt of /)");
  EXPECT_EQ(lines[1].substr(0, lines[1].find(';')), "in force on GPU 0: max");
}

TEST(InForceLines, SayHowKernelsRun) {
  ipc::Client client;
  client.usage.resize(1);
  ipc::ClientUsage& usage = client.usage[0];
  usage.in_force = "max";
  usage.granted = 33;
  const auto says = [&](const std::string& mode, const std::string& how) {
    usage.mode = mode;
    EXPECT_EQ(in_force_lines(client), (Lines{"in force on GPU 0: max; mode " + mode + ": " + how}));
  };
  says("turns", "programs take turns, and this one has 33 SMs");
  says("workers", "rewritten kernels give SMs back between two blocks, and the others run on 33 SMs");
  usage.common_sms = 118;
  says("common", "kernels keep their original form, on 118 SMs that it has in common with other programs");
  says("lent",
       "rewritten kernels give SMs back between two blocks, and the others run on 118 SMs that it has in common with "
       "other programs");
}

TEST(TurnLines, SayHowLongAndWhy) {
  ipc::Client client;
  EXPECT_EQ(turn_lines(client), Lines{});
  client.usage.resize(4);
  client.usage[1].device = 1;
  client.usage[1].time_slice = "in force";
  client.usage[1].time_slice_us = 50;
  client.usage[1].channel_groups = 5;
  client.usage[2].device = 2;
  client.usage[2].time_slice = "refused";
  client.usage[3].device = 3;
  client.usage[3].time_slice = "no channel groups";
  EXPECT_EQ(turn_lines(client),
            (Lines{"turns on GPU 1: 50 us, then others' (time slice of its 5 channel groups; the hardware stops any "
                   "kernel for that)",
                   "turns on GPU 2: as long as the driver has it, which refused to set time slices",
                   "turns on GPU 3: as long as the driver has it, whose channel groups were not seen"}));
}

}  // namespace
}  // namespace gpuctl::cli
