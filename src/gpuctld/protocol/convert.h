// Converts between the slice tree's types and those of the interface io.gpuctl.
#pragma once

#include "ipc/message.h"
#include "ipc/types.h"
#include "sched/effective/effective.h"
#include "sched/pressure.h"
#include "sched/slice_tree.h"
#include "sched/temporal/fairness.h"

namespace gpuctl::daemon {

/// Every setting of the slice. Applied to a fresh slice they make it equal to this one.
ipc::SliceSettings to_settings(const sched::Slice& slice);

/// The settings alone, and what is in force of them; the caller fills in granted, demand and clients.
ipc::Slice describe(const std::string& path, const sched::SliceTree& tree, const sched::Effective& effective);

/// What is in force on one device.
ipc::SliceOnGpu describe(std::int64_t device, const sched::Effective& effective);

/// Empty: nothing has waited.
std::vector<ipc::Pressure> describe(const sched::Pressure::Seen& pressure);
ipc::Fairness describe(const std::string& path, const sched::FairnessFigures& figures);

/// An error of the tree as a reply, with the interface's error names.
ipc::Reply to_reply(const sched::SliceError& error);

}  // namespace gpuctl::daemon
