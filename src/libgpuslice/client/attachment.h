// The calls by which a program becomes a client of gpuctld (MakePage and Attach of io.gpuctl), and what the daemon
// answers. Pure but for the memory that is mapped.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ipc/connection.h"
#include "ipc/message.h"
#include "ipc/stub_map.h"
#include "ipc/unique_fd.h"

namespace gpuslice {

/// Durations that the daemon sets at attachment.
struct Targets {
  std::chrono::microseconds latency{50};     ///< kernels shorter than this run in their original form
  std::chrono::microseconds block_task{20};  ///< a chunk of block-tasks takes at most about this long
};

/// What a program says of itself.
struct Introduction {
  std::string slice;    ///< empty: the one that the daemon chooses
  std::string command;  ///< its command line, to be shown; empty: the daemon shows its name
  std::string exe;      ///< the file that it runs, by which a slice may take it in; empty: not known
  std::vector<std::string> device_uuids;
  std::vector<int> mps_sms;    ///< on how many SMs of each device MPS keeps it; empty: MPS was not asked to
  bool isolated = false;       ///< it shares no context with programs of other slices, as gpuctld said
  std::string pipe_directory;  ///< where it looked for MPS, where gpuctld had an MPS for it; empty: gpuctld had none
  unsigned queues = 0;         ///< hardware queues, as gpuctld said or as the program asks for; 0: not under MPS
};

/// The command line of this process, arguments separated by spaces, as much of it as the daemon shows.
std::string own_command_line();

/// The file that this process runs, "/usr/bin/python3.11"; empty if no slice could name it. Where it was replaced
/// since, as by an upgrade, it keeps its name.
std::string own_exe();

/// `resumed`: the program was a client before.
gpuctl::ipc::Call attach_call(const Introduction& of, bool resumed);

/// Whether the daemon refuses the field, which it may not know.
bool refuses(const gpuctl::ipc::Reply& reply, std::string_view field);

struct Attachment {
  gpuctl::ipc::StubMap page;
  gpuctl::ipc::UniqueFd kick;  ///< an eventfd: writing to it wakes the daemon; it never blocks
  std::string slice;           ///< the daemon's answer: where none was asked for, the root
  Targets targets;
};

/// What the daemon answers to a call that needs a page (MakePage).
struct Answered {
  gpuctl::ipc::Reply reply;
  gpuctl::ipc::StubMap page;  ///< that the daemon has begun, if it does not refuse
};

/// Has a page made, takes it, and calls. Where this process was too slow, so that the page was given up, it tries
/// again. `timeout`: of each call. `before`: the page of this program so far, if it has one. An error: there is no
/// answer, or no page came with it.
gpuctl::Result<Answered> call_with_page(gpuctl::ipc::Connection& daemon, const gpuctl::ipc::Call& call,
                                        std::chrono::milliseconds timeout, const gpuctl::ipc::Stub* before = nullptr);

/// `page`: which the daemon has begun. `fds`: what came with the answer. Returns an error if the daemon refused, or if
/// the answer is not as it should be.
gpuctl::Result<Attachment> read_attachment(const gpuctl::ipc::Reply& reply, gpuctl::ipc::StubMap page,
                                           std::vector<gpuctl::ipc::UniqueFd> fds, const std::string& asked_for);

}  // namespace gpuslice
