#include "gpuctld/host/group_limits.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <charconv>
#include <cstdint>
#include <utility>

#include "base/one_line.h"
#include "base/read_write.h"
#include "base/utf8.h"
#include "ipc/fields.h"
#include "ipc/message.h"

namespace gpuctl::daemon {

namespace asio = boost::asio;
namespace json = boost::json;
using boost::system::error_code;

namespace {

/// nvmlSetMemoryLimits_v1_t. nvml.h of the toolkit that this is built with may be older.
struct ToSet {
  const char* name_space;  // the directory of the cgroup
  unsigned long long soft, hard;
};

/// Of nvmlReturn_t: what may be answered here.
std::string nvml_words(int error) {
  constexpr std::array<std::pair<int, const char*>, 6> kWords{{{2, "INVALID_ARGUMENT"},
                                                               {3, "NOT_SUPPORTED"},
                                                               {4, "NO_PERMISSION"},
                                                               {15, "GPU_IS_LOST"},
                                                               {17, "OPERATING_SYSTEM"},
                                                               {999, "UNKNOWN"}}};
  const auto found = std::ranges::find(kWords, error, [](const auto& one) { return one.first; });
  return "NVML answers " + (found == kWords.end() ? "error " + std::to_string(error) : std::string(found->second));
}

/// Bytes travel as decimal text: no limit is more than JSON's numbers hold here.
std::uint64_t read_bytes(ipc::Fields& fields, const char* name) {
  const std::string text = fields.text(name);
  std::uint64_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error != std::errc() || end != text.data() + text.size()) fields.complain(name, "must be a number of bytes");
  return bytes;
}

Result<GroupLimits> read_question(std::string_view question) {
  error_code broken;
  const json::value value = json::parse(question, broken);
  if (broken || !value.is_object()) return fail("the question is no object in JSON");
  ipc::Fields fields(value.as_object());
  GroupLimits wanted{.cgroup = fields.text("cgroup"), .gpus = {}};
  if (fields.ok() && !is_cgroup_path(wanted.cgroup)) fields.complain("cgroup", "must be the path of a control group");
  for (ipc::Fields& gpu : fields.objects("gpus"))
    wanted.gpus.push_back({.uuid = gpu.text("uuid"), .bytes = read_bytes(gpu, "bytes")});
  if (wanted.gpus.size() > kMostGpusAtOnce) fields.complain("gpus", "are too many");
  fields.refuse_unknown();
  if (!fields.ok()) return fields.error();
  return wanted;
}

}  // namespace

bool is_cgroup_path(std::string_view path) {
  if (path.size() < 2 || path.size() > kMostCgroupPath || !path.starts_with('/')) return false;
  for (std::string_view rest = path.substr(1);; rest.remove_prefix(rest.find('/') + 1)) {
    const std::string_view name = rest.substr(0, rest.find('/'));
    if (name.empty() || name == "." || name == "..") return false;
    if (name.size() == rest.size()) break;
  }
  return one_line(path) == path;
}

bool has_unified_cgroups() {
  struct stat found {};
  return ::stat((std::string(kCgroups) + "/cgroup.controllers").c_str(), &found) == 0;
}

std::uint64_t id_of_cgroup(const std::string& path) {
  struct stat found {};
  return is_cgroup_path(path) && ::stat((kCgroups + path).c_str(), &found) == 0 ? found.st_ino : 0;
}

std::string NvmlLimits::set(const std::string& cgroup, const LimitOnGpu& wanted) const {
  auto* const set = library_.function<int(NvmlLibrary::Device, ToSet*)>();
  const NvmlLibrary::Device device = library_.device(wanted.uuid);
  if (device == nullptr) return kNothingLimited;
  const std::string directory = cgroups_ + cgroup;
  ToSet limits{.name_space = directory.c_str(), .soft = 0, .hard = wanted.bytes};
  const int error = set(device, &limits);
  if (error == NvmlLibrary::kSuccess) return kLimitSet;
  struct stat found {};
  return ::stat(directory.c_str(), &found) != 0 ? kNothingLimited : nvml_words(error);
}

std::string read_limits_question(int in) {
  std::string text;
  read_pieces(in, [&text](std::string_view piece) {
    text += piece;
    return text.size() <= ChildProgram::kMostInput && text.find('\n') == text.npos;
  });
  return text.substr(0, text.find('\n'));
}

std::string limits_question(const GroupLimits& wanted) {
  json::array gpus;
  for (const LimitOnGpu& gpu : wanted.gpus)
    gpus.push_back(json::object{{"uuid", gpu.uuid}, {"bytes", std::to_string(gpu.bytes)}});
  return ipc::to_text(json::object{{"cgroup", wanted.cgroup}, {"gpus", std::move(gpus)}}) + "\n";
}

std::string limits_answer(std::string_view question, const std::string& nvml, const std::string& cgroups) {
  const auto wanted = read_question(question);
  if (!wanted) return ipc::to_text(json::object{{"error", ipc::to_utf8(one_line(wanted.error().message))}}) + "\n";
  json::array outcomes;
  if (const NvmlLimits limits(nvml, cgroups); limits.can())
    for (const LimitOnGpu& gpu : wanted->gpus) outcomes.emplace_back(limits.set(wanted->cgroup, gpu));
  return ipc::to_text(json::object{{"outcomes", std::move(outcomes)}}) + "\n";
}

Result<std::vector<std::string>> read_limits_answer(const std::string& answer) {
  error_code broken;
  const json::value value = json::parse(answer, broken);
  if (broken || !value.is_object()) return fail("who sets limits of the driver's did not answer");
  ipc::Fields fields(value.as_object());
  if (const auto error = fields.maybe_text("error")) return fail(one_line(*error));
  std::vector<std::string> outcomes = fields.texts("outcomes");
  if (!fields.ok()) return fields.error();
  for (std::string& outcome : outcomes) outcome = one_line(outcome);
  return outcomes;
}

LimitsHelper::LimitsHelper(asio::io_context& context, Place place)
    : context_(context), place_(std::move(place)), timer_(context) {}

/// A socket that is not there was not wanted: its unit is masked, or of an earlier version.
bool LimitsHelper::is_there() const {
  struct stat found {};
  return place_.socket.empty() ? !place_.program.empty() : ::stat(place_.socket.c_str(), &found) == 0;
}

void LimitsHelper::ask(const GroupLimits& wanted, Done done) {
  done_ = std::move(done);
  timer_.expires_after(place_.patience);
  timer_.async_wait([this](error_code error) {
    if (error || !done_) return;
    if (child_) child_->kill();
    hear(fail("who sets limits of the driver's did not answer in time"));
  });
  place_.socket.empty() ? ask_child(limits_question(wanted)) : ask_socket(limits_question(wanted));
}

void LimitsHelper::stop() {
  done_ = nullptr;
  timer_.cancel();
  if (question_) question_->cancel();
  question_.reset();
  if (child_) child_->kill();
  child_.reset();
}

/// Never from within ask().
void LimitsHelper::hear_soon(const Error& error) {
  timer_.expires_after(std::chrono::milliseconds(0));
  timer_.async_wait([this, error](error_code cancelled) {
    if (!cancelled && done_) hear(error);
  });
}

void LimitsHelper::ask_child(const std::string& question) {
  auto started = ChildProgram::start(context_, place_.program, {}, question,
                                     [this](const Result<std::string>& output) { hear(output); }, {"--limit-memory"});
  if (started)
    child_ = *started;
  else
    hear_soon(started.error());
}

void LimitsHelper::ask_socket(const std::string& question) {
  auto asked = HelperQuestion::ask(context_, place_.socket, question, "cannot set limits",
                                   [this](const Result<std::string>& answer) { hear(answer); });
  if (asked)
    question_ = *asked;
  else
    hear_soon(asked.error());
}

void LimitsHelper::hear(const Result<std::string>& answer) {
  const Done done = std::exchange(done_, nullptr);
  const auto outcomes = answer ? read_limits_answer(*answer) : Result<std::vector<std::string>>(answer.error());
  stop();
  if (done) done(outcomes);
}

}  // namespace gpuctl::daemon
