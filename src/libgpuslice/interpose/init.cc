// cuInit starts the client. A forked child starts over.
#include <pthread.h>

#include <chrono>
#include <cstdio>

#include "libgpuslice/agent/activity.h"
#include "libgpuslice/agent/contexts.h"
#include "libgpuslice/agent/swap.h"
#include "libgpuslice/base/allocations.h"
#include "libgpuslice/base/bypassing_libraries.h"
#include "libgpuslice/base/capture.h"
#include "libgpuslice/base/debug.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/base/graph_memory.h"
#include "libgpuslice/base/physical_memory.h"
#include "libgpuslice/base/pools.h"
#include "libgpuslice/base/stage.h"
#include "libgpuslice/client/client.h"
#include "libgpuslice/client/held_memory.h"
#include "libgpuslice/client/mps_variables.h"
#include "libgpuslice/client/told_sms.h"
#include "libgpuslice/graphs/graph_exec.h"
#include "libgpuslice/graphs/graph_levels.h"
#include "libgpuslice/image/compile_queue.h"
#include "libgpuslice/image/linked_ptx.h"
#include "libgpuslice/interpose/hooks.h"
#include "libgpuslice/modules/modules.h"
#include "libgpuslice/streams/joining.h"
#include "libgpuslice/streams/stream_priority.h"
#include "libgpuslice/streams/waiting_streams.h"
#include "libgpuslice/timeslice/channels.h"

namespace gpuslice {

namespace {

/// Between two looks of the client's thread while calls of the driver wait (swap.h): its sign of life needs no more.
constexpr std::chrono::milliseconds kWhileAway{200};

/// In the format of nvidia-smi -L: GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx.
std::string uuid_text(const CUuuid& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(static_cast<unsigned char>(uuid.bytes[i])));
    text += digits;
  }
  return text;
}

std::vector<std::string> device_uuids(int count) {
  std::vector<std::string> uuids;
  for (int i = 0; i < count && i < static_cast<int>(gpuctl::ipc::kMaxDevices); ++i) {
    CUuuid uuid{};
    driver().cuDeviceGetUuid_v2(&uuid, i);
    uuids.push_back(uuid_text(uuid));
  }
  return uuids;
}

void start_over_in_child() {
  CompileQueue::get().forget_after_fork();
  Client::get().forget_after_fork();
  Activity::get().forget_after_fork();
  Swap::get().forget_after_fork();
  StreamPriorities::get().forget_after_fork();
  forget_open_lanes_after_fork();
  Kernels::get().forget_after_fork();
  Modules::get().forget_after_fork();
  HeldMemory::get().forget_after_fork();
  Allocations::get().forget_after_fork();
  PhysicalMemory::get().forget_after_fork();
  GraphMemory::get().forget_after_fork();
  Pools::get().forget_after_fork();
  ToldSms::get().forget_after_fork();
  LinkedPtx::get().forget_after_fork();
  WaitingStreams::get().forget_after_fork();
  Captures::get().forget_after_fork();
  ChannelGroups::get().forget_after_fork();
  ExecutableGraph::forget_after_fork();
  GraphLevels::get().forget_after_fork();
  GraphSource::forget_after_fork();
  Contexts::forget_after_fork();
}

/// A child of a fork has none of the other threads: what one of them is making, at its first use, is never made there.
/// So all that start_over_in_child() uses is made before the first child can be.
template <class... Each>
void make() {
  (static_cast<void>(Each::get()), ...);
}

}  // namespace

void start_client_if_initialised() {
  int count = 0;
  if (!Client::get().wanted() || !driver().cuDeviceGetCount || driver().cuDeviceGetCount(&count) != CUDA_SUCCESS)
    return;
  make<CompileQueue, Client, Activity, StreamPriorities, Kernels, Modules, HeldMemory, Allocations, PhysicalMemory,
       GraphMemory, Pools, ToldSms, LinkedPtx, WaitingStreams, Captures, ChannelGroups, GraphLevels>();
  make_open_lanes();
  ExecutableGraph::make_registry();
  GraphSource::make_registry();
  Contexts::make_registry();
  static const int registered = pthread_atfork(nullptr, nullptr, start_over_in_child);
  (void)registered;
  Contexts::end_before_driver();
  g_before_deep_binding = [] { join_all(); };
  Client::get().set_kernel_source([](bool all) { return Swap::get().report_kernels(all); });
  Client::get().set_tick([] {
    if (Swap::get().look()) return kWhileAway;
    CompileQueue::get().tick();
    Contexts::rescue_stuck();
    return Activity::get().look();
  });
  std::vector<std::string> uuids = device_uuids(count);
  std::vector<int> mps_sms = sms_kept_by_mps(static_cast<int>(uuids.size()));
  note_isolation();
  Client::get().start(std::move(uuids), std::move(mps_sms));
}

}  // namespace gpuslice

using namespace gpuslice;

GPUSLICE_HOOK cuInit(unsigned flags) {
  if (!driver().cuInit) return CUDA_ERROR_NOT_INITIALIZED;
  bool asked = false;
  const CUresult result = [flags, &asked] {
    const MpsVariables variables;
    asked = variables.asked();
    // The program cannot go on: all else in the driver wants it to be initialised.
    if (variables.refused()) return CUDA_ERROR_NOT_PERMITTED;
    const Stage stage("the driver's cuInit");
    return driver().cuInit(flags);
  }();
  try {
    const Stage stage("becoming a client of gpuctld");
    if (result == CUDA_SUCCESS) start_client_if_initialised();
  } catch (...) {  // out of memory: the program's start is not to fail for that
    Client::get().give_up();
  }
  if (asked) Client::get().keep_no_promise();
  return result == CUDA_SUCCESS && Client::get().turned_away() ? CUDA_ERROR_NOT_PERMITTED : result;
}
