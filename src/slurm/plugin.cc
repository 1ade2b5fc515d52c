// The hooks of Slurm's SPANK plugin. In the order of a job's life on a node:
//   job_prolog            a process of its own, root: leftovers of other jobs go; DCGM's files
//   init, init_post_opt   slurmstepd, root: options; the slice is made and named in the tasks' environment
//   task_init_privileged  each task's process, root: the first place whose messages the user reads and whose failure
//                         fails the task
//   task_exit             slurmstepd, root: after each task. After the last one processes may be left
//   exit                  slurmstepd, root: the slice of a step goes
//   job_epilog            a process of its own, root, when no step is left: the slice goes
// Slurm signals a job's processes without asking a plugin: no hook comes before SIGTERM or SIGKILL of scancel.
//
// No exception leaves a hook, and a job that asks for nothing never depends on gpuctl.
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

extern "C" {
#include <slurm/slurm.h>
#include <slurm/spank.h>
}

#include "slurm/account.h"
#include "slurm/job_slice.h"
#include "slurm/node.h"
#include "slurm/request.h"

namespace gpuctl::slurm {
namespace {

/// Of the step that this slurmstepd, or command, is for.
struct Step {
  Request request;
  std::string path;     ///< of its slice; empty: it has none
  std::string failure;  ///< why a step that asked for a slice has none
  std::uint32_t ended = 0;
};
Step step;

Arguments arguments_of(int count, char** words) {
  const char* node = std::getenv("SLURMD_NODENAME");
  const Result<Arguments> read = read_arguments({words, words + count}, node != nullptr ? node : "");
  return read ? *read : throw std::runtime_error(read.error().message);
}

template <class T>
T item(spank_t spank, spank_item_t which) {
  T value{};
  if (spank_get_item(spank, which, &value) != ESPANK_SUCCESS)
    throw std::runtime_error("Slurm does not say whose step it is");
  return value;
}

std::string variable(spank_t spank, const char* name) {
  std::string value(1 << 16, '\0');
  if (spank_getenv(spank, name, value.data(), static_cast<int>(value.size())) != ESPANK_SUCCESS) return {};
  return value.c_str();
}

std::int64_t number(const std::string& text) {
  return std::strtoll(text.c_str(), nullptr, 10);
}

Job job_of_step(spank_t spank) {
  Job job{item<std::uint32_t>(spank, S_JOB_ID), item<std::uint32_t>(spank, S_JOB_STEPID),
          item<uid_t>(spank, S_JOB_UID)};
  job.groups.push_back(item<gid_t>(spank, S_JOB_GID));
  gid_t* groups = nullptr;
  int count = 0;
  if (spank_get_item(spank, S_JOB_SUPPLEMENTARY_GIDS, &groups, &count) == ESPANK_SUCCESS && groups != nullptr)
    job.groups.insert(job.groups.end(), groups, groups + count);
  job.shards = number(variable(spank, "SLURM_SHARDS_ON_NODE"));
  job.gpus = std::max<std::int64_t>(number(variable(spank, "SLURM_GPUS_ON_NODE")), 1);
  job.batch = job.step == SLURM_BATCH_SCRIPT;
  return job;
}

/// A job that was submitted from within another one brings that one's environment.
void forget_other_job(spank_t spank, const Arguments& arguments, std::uint32_t job) {
  const std::string slice = variable(spank, "GPUCTL_SLICE");
  const std::size_t name = slice.rfind("/job-");
  if (name == std::string::npos || slice.substr(name + 1, slice.find('/', name + 1) - name - 1) == job_name(job))
    return;
  spank_unsetenv(spank, "GPUCTL_SLICE");
  const std::string preload = preload_without(variable(spank, "LD_PRELOAD"), arguments.library);
  preload.empty() ? spank_unsetenv(spank, "LD_PRELOAD") : spank_setenv(spank, "LD_PRELOAD", preload.c_str(), 1);
}

void set_up(spank_t spank, const Arguments& arguments) {
  const Job job = job_of_step(spank);
  if (job.step == SLURM_EXTERN_CONT) return;
  forget_other_job(spank, arguments, job.id);
  if (!wants_slice(step.request, arguments, job)) return;
  Answer<Daemon> daemon = Daemon::open(arguments.socket);
  const auto made = daemon ? make_slice(*daemon, step.request, arguments, job) : Answer<std::string>(daemon.error());
  if (!made) {
    // A job that has shards, and asked for nothing of gpuctl, runs as it would without.
    if (!step.request.any())
      return slurm_error("gpuctl: job %u runs without a slice: %s", job.id, made.error().message.c_str());
    step.failure = made.error().message;
    return;
  }
  step.path = *made;
  spank_setenv(spank, "GPUCTL_SLICE", step.path.c_str(), 1);
  spank_setenv(spank, "GPUCTL_SOCKET", arguments.socket.c_str(), 1);
  spank_setenv(spank, "LD_PRELOAD", preload_behind(variable(spank, "LD_PRELOAD"), arguments.library).c_str(), 1);
}

void clear_leftovers(const Arguments& arguments, std::uint32_t job) {
  Answer<Daemon> daemon = Daemon::open(arguments.socket);
  if (!daemon) return;
  const auto slices = list_slices(*daemon);
  // In this order: a step that makes a slice meanwhile is seen.
  auto living = living_jobs();
  if (!slices || !living) return;
  living->insert(job);
  for (const std::string& path : leftovers(*slices, *living, arguments)) {
    slurm_info("gpuctl: slice %s is left of a job that is gone", path.c_str());
    for (const std::string& failed : end_slice(*daemon, path)) slurm_error("gpuctl: %s", failed.c_str());
  }
}

void end_job(spank_t spank, const Arguments& arguments) {
  const auto job = item<std::uint32_t>(spank, S_JOB_ID);
  const auto uid = item<uid_t>(spank, S_JOB_UID);
  Answer<Daemon> daemon = Daemon::open(arguments.socket);
  const auto slices = daemon ? list_slices(*daemon) : Answer<std::vector<ipc::Slice>>(daemon.error());
  // Where no job has a slice nobody needs a daemon.
  if (!slices) return slurm_verbose("gpuctl: %s", slices.error().message.c_str());
  for (const std::string& path : slices_of(job, uid, *slices))
    for (const std::string& failed : end_slice(*daemon, path)) slurm_error("gpuctl: %s", failed.c_str());
}

/// After the last task of the step on this node.
void end_step(spank_t spank, const Arguments& arguments) {
  Answer<Daemon> daemon = Daemon::open(arguments.socket);
  if (!daemon) return slurm_error("gpuctl: %s", daemon.error().message.c_str());
  const Job job = job_of_step(spank);
  end_left_behind(*daemon, step.path, job);
  if (!arguments.admin_comment || item<std::uint32_t>(spank, S_JOB_NODEID) != 0) return;
  const Answer<std::string> line = account(*daemon, step.path);
  if (!line) return slurm_error("gpuctl: %s", line.error().message.c_str());
  job_desc_msg_t change;
  slurm_init_job_desc_msg(&change);
  std::string text = *line;
  change.job_id = job.id;
  change.admin_comment = text.data();
  if (slurm_update_job(&change) != SLURM_SUCCESS)
    slurm_error("gpuctl: AdminComment of job %u: %s", job.id, slurm_strerror(errno));
}

void tell(spank_t spank, const Arguments& arguments, bool runs) {
  const char* gpus = std::getenv("SLURM_JOB_GPUS");
  if (arguments.dcgm.empty() || gpus == nullptr) return;
  const auto told = tell_dcgm(arguments.dcgm, gpus, item<std::uint32_t>(spank, S_JOB_ID), runs);
  if (!told) slurm_error("gpuctl: %s", told.error().message.c_str());
}

int take(int which, const char* value, int) {
  const auto taken = take_option(static_cast<Option>(which), value != nullptr ? value : "", step.request);
  if (taken) return ESPANK_SUCCESS;
  slurm_error("gpuctl: %s", taken.error().message.c_str());
  return -1;
}

int register_options(spank_t spank) {
  for (const OptionRow& row : kOptions) {
    std::string name = row.name, argument = row.argument, help = row.help;
    spank_option option{name.data(), argument.data(), help.data(), 1, static_cast<int>(row.option), take};
    if (spank_option_register(spank, &option) != ESPANK_SUCCESS) return -1;
  }
  return ESPANK_SUCCESS;
}

/// A hook: what goes wrong in it is said, and is a failure.
template <class Body>
int hook(int count, char** words, Body body) noexcept {
  try {
    return body(arguments_of(count, words)), ESPANK_SUCCESS;
  } catch (const std::exception& error) {
    slurm_error("gpuctl: %s", error.what());
    return -1;
  }
}

bool is_remote() {
  return spank_context() == S_CTX_REMOTE;
}

}  // namespace
}  // namespace gpuctl::slurm

#pragma GCC visibility push(default)
extern "C" {

using namespace gpuctl::slurm;

int slurm_spank_init(spank_t spank, int count, char* words[]) {
  const int read = hook(count, words, [](const Arguments&) {});
  const spank_context_t context = spank_context();
  if (read != ESPANK_SUCCESS || context == S_CTX_SLURMD || context == S_CTX_JOB_SCRIPT) return read;
  return register_options(spank);
}

int slurm_spank_init_post_opt(spank_t spank, int count, char* words[]) {
  if (!is_remote()) return ESPANK_SUCCESS;
  return hook(count, words, [&](const Arguments& arguments) { set_up(spank, arguments); });
}

int slurm_spank_task_init_privileged(spank_t, int, char*[]) {
  if (step.failure.empty()) return ESPANK_SUCCESS;
  slurm_spank_log("gpuctl: %s", step.failure.c_str());
  return -1;
}

int slurm_spank_task_exit(spank_t spank, int count, char* words[]) {
  if (step.path.empty()) return ESPANK_SUCCESS;
  return hook(count, words, [&](const Arguments& arguments) {
    if (++step.ended == item<std::uint32_t>(spank, S_JOB_LOCAL_TASK_COUNT)) end_step(spank, arguments);
  });
}

int slurm_spank_exit(spank_t, int count, char* words[]) {
  if (!is_remote() || !is_of_one_step(step.path)) return ESPANK_SUCCESS;
  return hook(count, words, [&](const Arguments& arguments) {
    Answer<Daemon> daemon = Daemon::open(arguments.socket);
    if (!daemon) return slurm_error("gpuctl: %s", daemon.error().message.c_str());
    for (const std::string& failed : end_slice(*daemon, step.path)) slurm_error("gpuctl: %s", failed.c_str());
  });
}

// Neither fails: Slurm would take the node out of service.
int slurm_spank_job_prolog(spank_t spank, int count, char* words[]) {
  (void)hook(count, words, [&](const Arguments& arguments) {
    clear_leftovers(arguments, item<std::uint32_t>(spank, S_JOB_ID));
    tell(spank, arguments, true);
  });
  return ESPANK_SUCCESS;
}

int slurm_spank_job_epilog(spank_t spank, int count, char* words[]) {
  (void)hook(count, words, [&](const Arguments& arguments) {
    end_job(spank, arguments);
    tell(spank, arguments, false);
  });
  return ESPANK_SUCCESS;
}

}  // extern "C"
#pragma GCC visibility pop
