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
#include <set>
#include <string_view>
#include <utility>

#include "base/cgroup.h"
#include "base/one_line.h"
#include "gpuctld/host/mapped.h"
#include "gpuctld/protocol/peer.h"
#include "gpuctld/protocol/process.h"
#include "ipc/fields.h"
#include "ipc/message.h"

namespace gpuctl::daemon {

namespace asio = boost::asio;
namespace json = boost::json;
using boost::system::error_code;

namespace {

constexpr std::string_view kMpsServer = "/nvidia-cuda-mps-server";
constexpr std::size_t kMostCgroup = 256;           // characters of a path that are told
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

/// Looks at descriptors of the process until it has looked at so many.
bool has_open(std::int32_t pid, const std::string& device, std::size_t& left) {
  const std::string directory = in_proc(pid, "fd");
  bool found = false;
  each_name(directory, [&](const char* name) {
    if (left == 0) return false;
    --left;
    found = link_text(directory + '/' + name) == device;
    return !found;
  });
  return found;
}

/// Its file has another one of that name now, after an upgrade.
constexpr std::string_view kReplaced = " (deleted)";

bool is_mps_server(std::int32_t pid) {
  std::string program = link_text(in_proc(pid, "exe"));
  if (program.ends_with(kReplaced)) program.resize(program.size() - kReplaced.size());
  return program.ends_with(kMpsServer);
}

std::int32_t parent_of(std::int32_t pid) {
  std::ifstream status(in_proc(pid, "status"));
  std::int32_t parent = 0;
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("PPid:")) return std::atoi(line.c_str() + std::string_view("PPid:").size());
  return parent;
}

/// Those that run for longest come first, so that nobody can put others before one that runs.
std::vector<GpuUser> who_have_open(const std::string& device, std::size_t most_descriptors_of_user) {
  std::vector<GpuUser> all;
  std::map<std::uint32_t, std::size_t> left;  // by user
  each_name(kProc, [&](std::string_view name) {
    std::int32_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || end != name.data() + name.size()) return true;
    const auto users = users_of(pid);
    if (!users) return true;
    std::size_t no_end = std::numeric_limits<std::size_t>::max();
    if (!has_open(pid, device,
                  users->effective == 0 ? no_end
                                        : left.try_emplace(users->effective, most_descriptors_of_user).first->second))
      return true;
    if (const std::uint64_t start = start_of(pid); start != 0)
      all.push_back({.pid = pid, .start = start, .uid = users->effective});
    return true;
  });
  std::ranges::stable_sort(all, {}, &GpuUser::start);
  return all;
}

}  // namespace

std::string gpu_users_answer(const std::string& device, std::size_t most_descriptors_of_user) {
  std::vector<GpuUser> users = who_have_open(device, most_descriptors_of_user);
  const std::map<std::int32_t, Mapped> mapped = mapped_by(users);
  std::erase_if(users, [&](const GpuUser& user) {
    return !mapped.contains(user.pid) || mapped.at(user.pid).library || is_mps_server(user.pid);
  });
  std::set<std::int32_t> having, told;
  for (const GpuUser& user : users) having.insert(user.pid);
  for (GpuUser& user : users) {
    user.driver = mapped.at(user.pid).driver;
    user.child = having.contains(parent_of(user.pid));
  }
  std::erase_if(users, [](const GpuUser& user) { return user.child && !user.driver; });
  std::ranges::stable_sort(users, {}, [](const GpuUser& user) { return !user.driver ? 2 : user.child ? 1 : 0; });
  json::array programs;
  std::map<std::pair<std::uint32_t, bool>, std::size_t> of_user;  // children take no place of others
  for (const GpuUser& user : users) {
    if (programs.size() == kMostGpuUsers) break;
    if (++of_user[{user.uid, user.child}] > kMostGpuUsersOfUser) continue;
    told.insert(user.pid);
    programs.push_back(json::object{{"pid", user.pid},
                                    {"start", user.start},
                                    {"uid", user.uid},
                                    {"name", ipc::to_utf8(one_line(name_of(user.pid)))},
                                    {"cgroup", ipc::to_utf8(one_line(cgroup_of(user.pid).substr(0, kMostCgroup)))},
                                    {"driver", user.driver},
                                    {"child", user.child && told.contains(parent_of(user.pid))}});
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
         .cgroup = program.text("cgroup"),
         .driver = program.boolean("driver"),
         .child = program.boolean("child")});
  if (!fields.ok()) return fields.error();
  return users;
}

bool cuda_may_be_used(const std::string& file) {
  std::string count;
  return !std::getline(std::ifstream(file), count) || count != "0";
}

GpuUserWatch::GpuUserWatch(asio::io_context& context, std::string socket, Seen seen, Pace pace)
    : socket_(socket.size() < sizeof(sockaddr_un::sun_path) ? std::move(socket) : ""),
      seen_(std::move(seen)),
      pace_(pace),
      connection_(context),
      timer_(context) {}

void GpuUserWatch::begin() {
  if (!socket_.empty()) look();
}

void GpuUserWatch::look_now() {
  if (socket_.empty() || looks_) return;
  timer_.cancel();
  look();
}

void GpuUserWatch::stop() {
  stopped_ = true;
  error_code ignored;
  connection_.close(ignored);
  timer_.cancel();
}

void GpuUserWatch::look() {
  answer_.clear();
  looks_ = true;
  if (latest_.empty() && !cuda_may_be_used()) {
    sees_ = true;
    return wait(pace_.every);
  }
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
  sees_ = heard.has_value();
  if (!heard) return wait(pace_.again);
  const std::vector<GpuUser> before = std::exchange(latest_, std::move(*heard));
  const auto is_in = [](const std::vector<GpuUser>& list, const GpuUser& user) {
    return std::ranges::any_of(list, [&](const GpuUser& other) { return same_process(user, other); });
  };
  std::vector<GpuUser> sure;
  std::ranges::copy_if(latest_, std::back_inserter(sure), [&](const GpuUser& user) { return is_in(before, user); });
  const bool waits = seen_(sure);
  if (!stopped_) wait(waits || sure.size() < latest_.size() ? pace_.again : pace_.every);
}

void GpuUserWatch::wait(std::chrono::milliseconds pause) {
  looks_ = false;
  timer_.expires_after(pause);
  timer_.async_wait([this](error_code error) {
    if (!error && !stopped_ && !looks_) look();
  });
}

}  // namespace gpuctl::daemon
