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
  Lines lines{"in force on GPU 0: nothing; mode free", "  kernels run as the program launches them",
              "in force on GPU 1: reserve; mode part", "  kernels keep their original form, on 33 SMs of its own",
              "  priority 2 of 3 from below"};
  EXPECT_EQ(in_force_lines(client), lines);
  client.usage[1].priorities = 1;
  client.usage[1].sms_told = 1;
  lines.back() = "  told of 1 SM";
  EXPECT_EQ(in_force_lines(client), lines);
  client.usage[1].mps_sms = 98;
  lines.insert(lines.end() - 1, "  MPS keeps it to 98 SMs until it starts again");
  EXPECT_EQ(in_force_lines(client), lines);
}

TEST(InForceLines, NameThePolicyForJobs) {
  ipc::Client client;
  client.usage.resize(2);
  client.usage[0].in_force = "jobs";
  client.usage[1].in_force = "max";
  const Lines lines = in_force_lines(client, "policy srt of /");
  EXPECT_EQ(lines[0].substr(0, lines[0].find(';')), "in force on GPU 0: jobs (policy srt of /)");
  EXPECT_EQ(lines[2].substr(0, lines[2].find(';')), "in force on GPU 0: max");
}

TEST(InForceLines, SayHowKernelsRun) {
  ipc::Client client;
  client.usage.resize(1);
  ipc::ClientUsage& usage = client.usage[0];
  usage.in_force = "max";
  usage.granted = 33;
  const auto says = [&](const std::string& mode, Lines how) {
    usage.mode = mode;
    how.insert(how.begin(), "in force on GPU 0: max; mode " + mode);
    EXPECT_EQ(in_force_lines(client), how);
    for (const std::string& line : how) EXPECT_LE(line.size(), 80u) << line;
  };
  const std::string rewritten = "  rewritten kernels give SMs back between two blocks";
  says("turns", {"  programs take turns, and this one has 33 SMs"});
  says("workers", {rewritten, "  the others run on 33 SMs"});
  usage.common_sms = 118;
  says("common", {"  kernels keep their original form, on 118 SMs in common with other programs"});
  says("lent", {rewritten, "  the others run on 118 SMs in common with other programs"});
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
            (Lines{"turns on GPU 1: 50 us, then others' (time slice of its 5 channel groups)",
                   "  the hardware stops any kernel for that",
                   "turns on GPU 2: as long as the driver has it, which refused to set time slices",
                   "turns on GPU 3: as long as the driver has it, whose channel groups were not seen"}));
}

}  // namespace
}  // namespace gpuctl::cli
