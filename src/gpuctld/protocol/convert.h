// Between the slice tree's types and those of the interface io.gpuctl.
#pragma once

#include "ipc/message.h"
#include "ipc/types.h"
#include "sched/slice.h"

namespace gpuctl::daemon {

/// Every setting of the slice, so that a fresh slice with them applied equals it.
ipc::SliceSettings to_settings(const sched::Slice& slice);

/// The settings alone; granted, demand and clients are left for the caller.
ipc::Slice describe(const std::string& path, const sched::Slice& slice);

/// An error of the tree as a reply by the interface's error names.
ipc::Reply to_reply(const sched::SliceError& error);

}  // namespace gpuctl::daemon
