#include "gpuctld/host/mps_start.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/installed.h"
#include "base/one_line.h"
#include "base/read_write.h"
#include "gpuctld/config/trusted_file.h"
#include "gpuctld/host/mps.h"
#include "gpuctld/host/mps_helper.h"
#include "ipc/interface.h"

namespace gpuctl::daemon {

namespace {

constexpr std::size_t kMostName = 16;
constexpr std::uintmax_t kMostLog = 1 << 20;

/// They are in memory, and each program adds some lines.
void empty_long_logs(const std::string& directory) {
  for (const char* name : {"control.log", "server.log"}) {
    const std::filesystem::path log = std::filesystem::path(directory) / name;
    std::error_code ignored;
    if (std::filesystem::file_size(log, ignored) > kMostLog && !ignored) std::filesystem::resize_file(log, 0, ignored);
  }
}

/// libgpuslice.so beside the running program in a build tree, else the installed one.
std::string preloaded_library() {
  std::error_code error;
  const std::filesystem::path self = own_executable();
  const auto beside = self.parent_path().parent_path() / "libgpuslice" / "libgpuslice.so";
  if (!self.empty() && std::filesystem::exists(beside, error)) return beside.string();
  const auto directory = std::filesystem::path(GPUCTL_SOFTGPU_DIR).parent_path();
  return installed(self, GPUCTL_SBINDIR, directory, "libgpuslice.so").string();
}

Result<void> may_begin(const std::string& name, const std::string& directory, const std::string& program) {
  if (!is_mps_name(name)) return fail("'" + one_line(name) + "' is no name of an MPS");
  if (mps_process_in(directory, "/proc", ::geteuid())) return fail(directory + ": an MPS runs there");
  if (::access(program.c_str(), X_OK) != 0) return fail(program + ": " + std::strerror(errno));
  return make_mps_directory(directory);
}

}  // namespace

bool is_mps_name(std::string_view name) {
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !name.empty() && name.size() <= kMostName && std::ranges::all_of(name, fits);
}

std::string_view service_mps_name(std::string_view pipe_directory) {
  if (!pipe_directory.starts_with(kServiceMps) || pipe_directory.size() <= kServiceMps.size() + 1) return "";
  const std::string_view name = pipe_directory.substr(kServiceMps.size() + 1);
  return pipe_directory[kServiceMps.size()] == '/' && is_mps_name(name) ? name : "";
}

std::vector<std::string> mps_environment(const std::string& pipe_directory, const std::string& socket) {
  const char* before = std::getenv("LD_PRELOAD");
  const std::string more = before == nullptr || *before == '\0' ? "" : ":" + std::string(before);
  return {"CUDA_MPS_PIPE_DIRECTORY=" + pipe_directory, "CUDA_MPS_LOG_DIRECTORY=" + pipe_directory,
          "LD_PRELOAD=" + preloaded_library() + more, "GPUCTL_MPS_SERVER=" + socket,
          // It is no program of a slice.
          "GPUCTL_SOCKET=", "GPUCTL_SLICE="};
}

Result<void> make_mps_directory(const std::string& directory) {
  for (const std::string& path : {std::filesystem::path(directory).parent_path().string(), directory}) {
    if (::mkdir(path.c_str(), 0755) == 0) ::chmod(path.c_str(), 0755);  // whatever the umask
    if (const auto trusted = check_trusted_directory(path, ::geteuid()); !trusted) return trusted.error();
  }
  empty_long_logs(directory);
  return {};
}

std::vector<std::string> mps_arguments(const std::string& program, const std::string& how, bool one_user) {
  std::vector<std::string> arguments{how};
  if (!one_user && ::geteuid() == 0 && knows_several_users(program)) arguments.emplace_back(kSeveralUsers);
  return arguments;
}

int become_mps(int in, int out) {
  std::string name = read_mps_command(in);
  const std::string program = mps_control_program();
  const bool one_user = name.ends_with(kOneUser);
  if (one_user) name.resize(name.size() - kOneUser.size());
  const std::string directory = std::string(kServiceMps) + "/" + name;
  const Result<void> begun = may_begin(name, directory, program);
  (void)write_all(out, to_mps_answer(begun ? Result<std::string>(std::string()) : begun.error()));
  if (!begun) return 1;
  ::shutdown(out, SHUT_RDWR);  // whoever asked is to see the end of the answer; systemd has this connection too
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0 || ::dup2(null, in) < 0 || ::dup2(null, out) < 0) return 1;
  for (std::string& variable : mps_environment(directory, std::string(ipc::kDefaultSocket))) {
    const std::size_t equals = variable.find('=');
    ::setenv(variable.substr(0, equals).c_str(), variable.c_str() + equals + 1, 1);
  }
  std::vector<std::string> arguments = mps_arguments(program, "-f", one_user);
  arguments.insert(arguments.begin(), program);
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  ::execv(program.c_str(), words.data());
  return 1;
}

}  // namespace gpuctl::daemon
