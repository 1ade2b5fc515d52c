#include "gpuctld/host/gpu_users.h"

#include <dirent.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/read.hpp>
#include <boost/json.hpp>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "base/one_line.h"
#include "gpuctld/protocol/peer.h"
#include "gpuctld/protocol/process.h"
#include "ipc/fields.h"
#include "ipc/message.h"

namespace gpuctl::daemon {

namespace asio = boost::asio;
namespace json = boost::json;
using boost::system::error_code;

namespace {

constexpr std::string_view kMpsServer = "/nvidia-cuda-mps-server", kLibrary = "/libgpuslice.so";
constexpr std::size_t kMostCgroup = 256;           // characters of a path that are told
constexpr std::size_t kMostDescriptors = 65536;    // of a process: a server may open the GPU after many connections
constexpr std::size_t kMostLookAnswer = 1u << 20;  // of kMostGpuUsers less than half of this

std::string in_proc(std::int32_t pid, std::string_view name) {
  return std::string(kProc) + "/" + std::to_string(pid) + "/" + std::string(name);
}

/// Calls `visit` with the names in the directory until it returns false.
template <class Visit>
void each_name(const std::string& directory, Visit visit) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(directory.c_str()), ::closedir);
  if (!open) return;
  while (const dirent* entry = ::readdir(open.get()))
    if (entry->d_name[0] != '.' && !visit(entry->d_name)) return;
}

/// Follows nothing: what a link of another process leads to may answer as late as that process likes.
std::string link_text(const std::string& path) {
  std::array<char, 4096> text{};
  const ssize_t size = ::readlink(path.c_str(), text.data(), text.size());
  return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : std::string();
}

bool has_open(std::int32_t pid, const std::string& device) {
  const std::string directory = in_proc(pid, "fd");
  bool found = false;
  std::size_t looked_at = 0;
  each_name(directory, [&](const char* name) {
    found = link_text(directory + '/' + name) == device;
    return !found && ++looked_at < kMostDescriptors;
  });
  return found;
}

/// Which is there in a child of such a program too.
bool has_library(std::int32_t pid) {
  std::ifstream maps(in_proc(pid, "maps"));
  for (std::string line; std::getline(maps, line);)
    if (line.find(kLibrary) != line.npos) return true;
  return false;
}

std::int32_t parent_of(std::int32_t pid) {
  std::ifstream status(in_proc(pid, "status"));
  std::int32_t parent = 0;
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("PPid:")) return std::atoi(line.c_str() + std::string_view("PPid:").size());
  return parent;
}

bool same_process(const GpuUser& a, const GpuUser& b) {
  return a.pid == b.pid && a.start == b.start;
}

}  // namespace

std::string gpu_users_answer(const std::string& device) {
  std::vector<std::int32_t> having;
  each_name(kProc, [&](std::string_view name) {
    std::int32_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error == std::errc() && end == name.data() + name.size() && has_open(pid, device)) having.push_back(pid);
    return true;
  });
  std::erase_if(having, [](std::int32_t pid) {
    return link_text(in_proc(pid, "exe")).ends_with(kMpsServer) || has_library(pid);
  });
  std::ranges::sort(having);
  json::array programs;
  std::map<std::uint32_t, std::size_t> of_user;
  for (const std::int32_t pid : having) {
    if (std::ranges::binary_search(having, parent_of(pid))) continue;
    const std::uint64_t start = start_of(pid);
    const auto users = users_of(pid);
    if (start == 0 || !users || programs.size() == kMostGpuUsers) continue;
    if (++of_user[users->effective] > kMostGpuUsersOfUser) continue;
    programs.push_back(json::object{{"pid", pid},
                                    {"start", start},
                                    {"uid", users->effective},
                                    {"name", ipc::to_utf8(one_line(name_of(pid)))},
                                    {"cgroup", ipc::to_utf8(one_line(cgroup_of(pid).substr(0, kMostCgroup)))}});
  }
  return ipc::to_text(json::object{{"programs", std::move(programs)}});
}

Result<std::vector<GpuUser>> read_gpu_users(const std::string& answer) {
  error_code broken;
  const json::value value = json::parse(answer, broken);
  if (broken || !value.is_object()) return fail("who looks for programs that use the GPUs did not answer");
  ipc::Fields fields(value.as_object());
  std::vector<GpuUser> users;
  for (ipc::Fields& program : fields.objects("programs"))
    users.push_back(
        {.pid = static_cast<std::int32_t>(program.integer("pid", 1, std::numeric_limits<std::int32_t>::max())),
         .start = static_cast<std::uint64_t>(program.integer("start", 1)),
         .uid = static_cast<std::uint32_t>(program.integer("uid", 0, std::numeric_limits<std::uint32_t>::max())),
         .name = program.text("name"),
         .cgroup = program.text("cgroup")});
  if (!fields.ok()) return fields.error();
  return users;
}

bool cuda_may_be_used(const std::string& file) {
  std::string count;
  return !std::getline(std::ifstream(file), count) || count != "0";
}

GpuUserWatch::GpuUserWatch(asio::io_context& context, std::string socket, Seen seen, Pace pace)
    : socket_(std::move(socket)), seen_(std::move(seen)), pace_(pace), connection_(context), timer_(context) {}

void GpuUserWatch::begin() {
  if (!socket_.empty() && socket_.size() < sizeof(sockaddr_un::sun_path)) look();
}

void GpuUserWatch::stop() {
  stopped_ = true;
  error_code ignored;
  connection_.close(ignored);
  timer_.cancel();
}

void GpuUserWatch::look() {
  answer_.clear();
  if (latest_.empty() && !cuda_may_be_used()) return wait(pace_.every);
  timer_.expires_after(pace_.patience);
  timer_.async_wait([this](error_code error) {
    error_code ignored;
    if (!error) connection_.close(ignored);
  });
  connection_.async_connect(socket_, [this](error_code error) {
    if (stopped_) return;
    if (error) return hear(false);
    read();
  });
}

void GpuUserWatch::read() {
  asio::async_read(connection_, asio::dynamic_buffer(answer_, kMostLookAnswer), [this](error_code error, std::size_t) {
    if (!stopped_) hear(error == asio::error::eof);
  });
}

void GpuUserWatch::hear(bool whole) {
  error_code ignored;
  connection_.close(ignored);
  auto heard = whole ? read_gpu_users(answer_) : fail("no answer");
  if (!heard) return wait(pace_.every);
  const std::vector<GpuUser> before = std::exchange(latest_, std::move(*heard));
  const auto is_in = [](const std::vector<GpuUser>& list, const GpuUser& user) {
    return std::ranges::any_of(list, [&](const GpuUser& other) { return same_process(user, other); });
  };
  std::vector<GpuUser> sure;
  std::ranges::copy_if(latest_, std::back_inserter(sure), [&](const GpuUser& user) { return is_in(before, user); });
  const bool of_all = sure.size() == latest_.size();
  seen_(sure);
  if (!stopped_) wait(of_all ? pace_.every : pace_.again);
}

void GpuUserWatch::wait(std::chrono::milliseconds pause) {
  timer_.expires_after(pause);
  timer_.async_wait([this](error_code error) {
    if (!error && !stopped_) look();
  });
}

}  // namespace gpuctl::daemon
