#include "slurm/job_slice.h"

#include <gtest/gtest.h>

#include "base/slurm_job.h"

namespace gpuctl::slurm {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

ipc::Device device(std::int64_t sms, std::int64_t memory) {
  ipc::Device made;
  made.sms = sms;
  made.memory_bytes = memory;
  return made;
}

ipc::Slice slice(const std::string& path, std::int64_t uid = 0, std::int64_t clients = 0, std::int64_t gid = kNoGroup) {
  ipc::Slice made;
  made.path = path;
  made.owner_uid = uid;
  made.owner_gid = gid;
  made.clients = clients;
  return made;
}

Job job_with(std::int64_t shards, std::int64_t gpus = 1) {
  Job job;
  job.id = 7;
  job.uid = 1000;
  job.groups = {1000, 2000};
  job.shards = shards;
  job.gpus = gpus;
  return job;
}

Arguments with_shards(std::int64_t shards) {
  Arguments arguments;
  arguments.shards = shards;
  return arguments;
}

TEST(SlurmJobSlice, NamesOfJobs) {
  EXPECT_EQ(job_name(123), "job-123");
  EXPECT_EQ(slurm_job_of("slurm/job-123"), 123u);
  EXPECT_EQ(slurm_job_of("job-5"), 5u);
  for (const char* path :
       {"slurm", "/", "slurm/job-", "slurm/job-1x", "slurm/job-1/step-0", "slurm/ajob-1", "job-99999999999"})
    EXPECT_EQ(slurm_job_of(path), 0u) << path;
}

TEST(SlurmJobSlice, JobsThatAskAndJobsWithShardsHaveOne) {
  Request asks;
  asks.sms = 4;
  EXPECT_TRUE(wants_slice(asks, {}, job_with(0)));
  EXPECT_TRUE(wants_slice({}, with_shards(8), job_with(1)));
  EXPECT_FALSE(wants_slice({}, with_shards(8), job_with(0))) << "it has no shards";
  EXPECT_FALSE(wants_slice({}, {}, job_with(1))) << "the administrator did not say how many there are";
}

TEST(SlurmJobSlice, ShardsAreAShareOfTheGpu) {
  const std::vector<ipc::Device> gpu{device(132, 80 * kGiB)};
  const Limits limits = limits_of({}, with_shards(8), job_with(3), gpu);
  EXPECT_EQ(limits.sms, 49) << "132 * 3 / 8, rounded down";
  EXPECT_EQ(limits.memory, 30 * kGiB);
  EXPECT_EQ(limits_of({}, with_shards(200), job_with(1), gpu).sms, 1) << "never none";
  EXPECT_EQ(limits_of({}, with_shards(8), job_with(8), gpu).sms, std::nullopt) << "all of it";
  EXPECT_EQ(limits_of({}, with_shards(8), job_with(6, 2), gpu).sms, 49) << "three on each of two GPUs";
  EXPECT_EQ(limits_of({}, with_shards(8), job_with(4), {device(132, kGiB), device(8, kGiB)}).sms, 4)
      << "the smallest GPU decides";
}

TEST(SlurmJobSlice, NobodyGetsMoreThanTheShards) {
  const std::vector<ipc::Device> gpu{device(132, 80 * kGiB)};
  Request asks;
  asks.sms = 100;
  asks.memory = kGiB;
  const Limits limits = limits_of(asks, with_shards(8), job_with(3), gpu);
  EXPECT_EQ(limits.sms, 49);
  EXPECT_EQ(limits.memory, kGiB);
  EXPECT_EQ(limits_of(asks, {}, job_with(0), gpu).sms, 100);
}

TEST(SlurmJobSlice, WithShardsOnlyTheBatchScriptsLimitsAreTheJobs) {
  const Request asks{.slice = "batch", .sms = 2, .memory = kGiB, .latency = "5ms"};
  Job job = job_with(4);
  const Request whole = of_whole_job(asks, with_shards(8), job);
  EXPECT_EQ(whole.slice, "batch");
  EXPECT_EQ(whole.sms, std::nullopt);
  EXPECT_EQ(whole.memory, std::nullopt);
  EXPECT_EQ(whole.latency, "5ms");
  EXPECT_EQ(of_whole_job(asks, {}, job).sms, 2) << "the administrator did not say how many shards there are";
  EXPECT_EQ(of_whole_job(asks, with_shards(8), job_with(0)).sms, 2) << "nothing else bounds it";
  job.batch = true;
  EXPECT_EQ(of_whole_job(asks, with_shards(8), job).sms, 2);
  EXPECT_EQ(of_whole_job(asks, with_shards(8), job).memory, kGiB);
}

TEST(SlurmJobSlice, AStepHasItsOwnForLessAndForAnotherTarget) {
  ipc::Slice job = slice("slurm/job-7", 1000);
  job.max = 49;
  job.latency = "5ms";
  EXPECT_FALSE(needs_own({}, job));
  EXPECT_FALSE(needs_own({.slice = "slurm", .sms = 49, .memory = {}, .latency = {}}, job));
  EXPECT_TRUE(needs_own({.slice = {}, .sms = 48, .memory = {}, .latency = {}}, job));
  EXPECT_TRUE(needs_own({.slice = {}, .sms = {}, .memory = kGiB, .latency = {}}, job));
  EXPECT_TRUE(needs_own({.slice = {}, .sms = {}, .memory = {}, .latency = "2x"}, job));
  EXPECT_TRUE(needs_own({.slice = {}, .sms = {}, .memory = {}, .latency = "nonsense"}, job)) << "the daemon refuses it";
  for (const char* same : {"5ms", "0.005s", "5000us"})
    EXPECT_FALSE(needs_own({.slice = {}, .sms = {}, .memory = {}, .latency = same}, job)) << same;
  job.latency = "none";
  EXPECT_TRUE(needs_own({.slice = {}, .sms = {}, .memory = {}, .latency = "5ms"}, job));
}

TEST(SlurmJobSlice, OfAStepAloneByItsLastName) {
  EXPECT_TRUE(is_of_one_step("slurm/job-7/step-0"));
  EXPECT_TRUE(is_of_one_step("team/step-1/job-7/step-12"));
  for (const char* path : {"slurm/job-7", "team/step-1/job-7", "step-1/job-7", ""})
    EXPECT_FALSE(is_of_one_step(path)) << path << ": the whole job would end with the step";
}

TEST(SlurmJobSlice, OwnersAndOwnersOfSlicesAbove) {
  const std::vector<ipc::Slice> slices{
      slice("/"),    slice("mine", 1000), slice("ours", 0, 0, 2000), slice("theirs", 1001), slice("theirs/below"),
      slice("mine2")};
  const Job job = job_with(0);
  EXPECT_TRUE(is_owner("mine", job, slices));
  EXPECT_TRUE(is_owner("mine/below", job, slices));
  EXPECT_TRUE(is_owner("ours", job, slices));
  EXPECT_FALSE(is_owner("theirs/below", job, slices));
  EXPECT_FALSE(is_owner("mine2", job, slices));
  EXPECT_FALSE(is_owner("none", job, slices));
  Job root = job;
  root.uid = 0;
  EXPECT_TRUE(is_owner("theirs", root, slices));
}

TEST(SlurmJobSlice, OfAJobWhereverTheyAre) {
  const std::vector<ipc::Slice> slices{slice("slurm/job-7", 1000), slice("ls/job-7", 1000), slice("x/job-7", 1001),
                                       slice("slurm/job-8", 1000)};
  EXPECT_EQ(slices_of(7, 1000, slices), (std::vector<std::string>{"slurm/job-7", "ls/job-7"}));
}

TEST(SlurmJobSlice, LeftoversAreOfJobsThatAreGoneAndHaveNoPrograms) {
  Arguments arguments;
  arguments.slices = {"batch"};
  const std::vector<ipc::Slice> slices{slice("slurm"),       slice("slurm/job-1"),
                                       slice("slurm/job-2"), slice("slurm/job-3", 0, 1),
                                       slice("slurm/job-4"), slice("slurm/job-4/step-0", 0, 2),
                                       slice("batch/job-5"), slice("users/job-6"),
                                       slice("slurm/other")};
  EXPECT_EQ(leftovers(slices, {2}, arguments), (std::vector<std::string>{"slurm/job-1", "batch/job-5"}));
}

}  // namespace
}  // namespace gpuctl::slurm
