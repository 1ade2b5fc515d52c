// What a run found out, for a person or as one JSON object. Times are microseconds unless the name says otherwise.
//
// A launch here is a run of the whole problem, all its steps: times span them, counts add them up.
//
// Keys: kernel, device, sms; grid, block (arrays of three, of the step with the most blocks); steps (launch calls of
// one run), block_tasks (blocks of all of them); extent (array of three; for work: blocks, iterations); repeats
// (how often a launch does its blocks); launches;
// window_s (start of the measured launches to the last completion); kernels_per_s, block_tasks_per_s; latency_us (issue
// to completion, host clock), response_us (from when the launch was due), gpu_us (between events; null without):
// objects of p50, p90, p99, max, mean; launch_call_us (median CPU time of the launch call); checked, mismatches,
// first_mismatch (null: none); output_hash (16 hex digits, null: no check).
#pragma once

#include <cstdio>
#include <span>
#include <string>

#include "kernels/run/gpu.h"
#include "kernels/run/kernel_table.h"
#include "kernels/run/runner.h"
#include "kernels/run/workbench.h"

namespace gpuctl::bench {

struct Report {
  const Gpu& gpu;
  const KernelSpec& spec;
  Extent extent;
  std::uint32_t repeats;
  const Problem& problem;
  const RunOptions& options;
  const RunResult& result;
};

void print_table(const Report& report, std::FILE* out);
void print_json(const Report& report, std::FILE* out);

/// One line per launch: due_ns issue_ns issued_ns complete_ns gpu_us, and with `hints` its priority hint, under a
/// header. Throws Failure.
void write_samples(const RunResult& result, bool hints, const std::string& path);

/// The kernel table, for a person or as {"kernels": [...]}.
void print_kernels(std::span<const KernelSpec> kernels, bool json, std::FILE* out);

}  // namespace gpuctl::bench
