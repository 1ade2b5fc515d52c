#include "libgpuslice/client/attachment.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/join_text.h"
#include "base/one_line.h"
#include "base/read_write.h"
#include "ipc/fields.h"
#include "ipc/swap.h"

namespace gpuslice {

using gpuctl::fail;
using gpuctl::Result;
namespace ipc = gpuctl::ipc;

namespace {

/// More than any administrator means; in ns it fits all that is counted with it.
constexpr std::int64_t kLongestTargetUs = 3'600'000'000;
/// Of one try to attach. A process that gets no CPU takes each of them too late.
constexpr int kMostPages = 20;

/// A program whose memory is on the host says so to the next daemon before that says what is wanted.
void carry_over(const ipc::Stub& before, ipc::Stub& page) {
  const std::uint32_t word = ipc::load(before.swap);
  if (!ipc::swap_of(word).on_host()) return;
  ipc::store(page.swap, word);
  for (std::size_t device = 0; device < ipc::kMaxDevices; ++device)
    ipc::store(page.usage[device].memory, ipc::load(before.usage[device].memory));
}

/// What OtherVersion says.
std::string about_versions(const boost::json::object& parameters) {
  ipc::Fields fields(parameters);
  const std::int64_t theirs = fields.integer("daemon");
  return "this library has stub page version " + std::to_string(ipc::stub_version()) + ", gpuctld has " +
         std::to_string(theirs) + ": no limits are kept";
}

}  // namespace

std::string own_command_line() {
  std::array<char, 256> text;
  const ipc::UniqueFd file(open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC));
  const ssize_t size = file ? gpuctl::read_some(file.get(), text.data(), text.size()) : -1;
  std::string command(text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  while (!command.empty() && command.back() == '\0') command.pop_back();
  return ipc::to_utf8(gpuctl::one_line(command));
}

std::string own_exe() {
  constexpr std::string_view kReplaced = " (deleted)";
  std::array<char, gpuctl::kMostJoinText + kReplaced.size() + 1> text;
  const ssize_t size = readlink("/proc/self/exe", text.data(), text.size());
  std::string_view exe(text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  if (exe.ends_with(kReplaced)) exe.remove_suffix(kReplaced.size());
  return gpuctl::is_full_path(exe) ? std::string(exe) : std::string();
}

ipc::Call attach_call(const Introduction& of, bool resumed) {
  ipc::Call call{.method = "io.gpuctl.Attach",
                 .parameters = {{"slice", of.slice},
                                {"device_uuids", boost::json::array(of.device_uuids.begin(), of.device_uuids.end())},
                                {"resumed", resumed},
                                {"stub_version", ipc::stub_version()}}};
  if (!of.mps_sms.empty()) call.parameters["mps_sms"] = boost::json::array(of.mps_sms.begin(), of.mps_sms.end());
  if (of.isolated) call.parameters["isolated"] = true;
  if (!of.pipe_directory.empty()) call.parameters["pipe_directory"] = ipc::to_utf8(of.pipe_directory);
  if (of.queues != 0) call.parameters["queues"] = of.queues;
  if (!of.command.empty()) call.parameters["command"] = of.command;
  if (!of.exe.empty()) call.parameters["exe"] = of.exe;
  return call;
}

bool refuses(const ipc::Reply& reply, std::string_view name) {
  const boost::json::value* field = reply.parameters.if_contains("field");
  return reply.error == "io.gpuctl.InvalidValue" && field != nullptr && field->is_string() &&
         field->get_string().starts_with(name);
}

Result<Answered> call_with_page(ipc::Connection& daemon, const ipc::Call& call, std::chrono::milliseconds timeout,
                                const ipc::Stub* before) {
  for (int tries = 1;; ++tries) {
    Result<ipc::Reply> made = daemon.call({.method = "io.gpuctl.MakePage", .parameters = {}}, timeout);
    if (!made) return made.error();
    if (!made->error.empty()) return Answered{std::move(*made), {}};
    const std::vector<ipc::UniqueFd> fds = daemon.take_fds();
    if (fds.size() != 1) return fail("gpuctld: MakePage: expected a file descriptor");
    Result<ipc::StubMap> page = ipc::StubMap::take(fds[0].get());
    if (!page) return page.error();
    if (before != nullptr) carry_over(*before, *page->get());
    Result<ipc::Reply> reply = daemon.call(call, timeout);
    if (!reply) return reply.error();
    if (reply->error != "io.gpuctl.NoPage" || tries == kMostPages) return Answered{std::move(*reply), std::move(*page)};
  }
}

Result<Attachment> read_attachment(const ipc::Reply& reply, ipc::StubMap page, std::vector<ipc::UniqueFd> fds,
                                   const std::string& asked_for) {
  if (reply.error == "io.gpuctl.OtherVersion") return fail(about_versions(reply.parameters));
  if (!reply.error.empty()) return fail("gpuctld: " + reply.error + ": slice '" + asked_for + "'");
  if (fds.size() != 1) return fail("gpuctld: Attach: expected a file descriptor");
  if (auto begun = page.check(); !begun) return begun.error();
  ipc::Fields fields(reply.parameters);
  std::string slice = fields.text("slice");
  const Targets targets{
      .latency = std::chrono::microseconds(fields.integer("latency_target_us", 0, kLongestTargetUs)),
      .block_task = std::chrono::microseconds(fields.integer("block_target_us", 0, kLongestTargetUs))};
  if (!fields.ok()) return fields.error();
  const int flags = fcntl(fds[0].get(), F_GETFL);
  if (flags < 0 || !(flags & O_NONBLOCK)) return fail("gpuctld: Attach: a wake-up could block the program");
  return Attachment{.page = std::move(page), .kick = std::move(fds[0]), .slice = std::move(slice), .targets = targets};
}

}  // namespace gpuslice
