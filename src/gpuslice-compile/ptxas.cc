#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "base/read_write.h"
#include "gpuslice-compile/compiler.h"
#include "ipc/unique_fd.h"

extern char** environ;

namespace gpuctl::compile {
namespace {

using ipc::UniqueFd;

std::string find_ptxas() {
  std::vector<std::string> directories;
  std::string path = std::getenv("PATH") ? std::getenv("PATH") : "";
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    if (end > begin) directories.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  if (const char* home = std::getenv("CUDA_HOME")) directories.push_back(std::string(home) + "/bin");
  directories.emplace_back("/usr/local/cuda/bin");
  for (const std::string& directory : directories) {
    if (access((directory + "/ptxas").c_str(), X_OK) == 0) return directory + "/ptxas";
  }
  return {};
}

UniqueFd memory_file(const char* name, const std::string& content = {}) {
  UniqueFd file(memfd_create(name, 0));
  if (file && !gpuctl::write_all(file.get(), content)) return UniqueFd();
  return file;
}

std::string path_of(const UniqueFd& file) {
  return "/proc/self/fd/" + std::to_string(file.get());
}

std::string content_of(const UniqueFd& file) {
  std::string content;
  char piece[65536];
  off_t at = 0;
  for (ssize_t got; (got = pread(file.get(), piece, sizeof piece, at)) > 0; at += got)
    content.append(piece, static_cast<std::size_t>(got));
  return content;
}

/// The command's exit status; -1 if it could not be run. Both of its outputs go to `log`.
int run(std::vector<std::string> command, const UniqueFd& log) {
  std::vector<char*> arguments;
  for (std::string& argument : command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, log.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, log.get(), STDERR_FILENO);
  pid_t child = -1;
  const int failed = posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (failed != 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

Result<MachineCode> compile_by_ptxas(const Source& source, const std::string&) {
  const std::string program = find_ptxas();
  if (program.empty()) return fail("there is no ptxas");
  const UniqueFd text = memory_file("ptx", source.text), cubin = memory_file("cubin"), log = memory_file("log");
  if (!text || !cubin || !log) return fail("no memory for the files of ptxas");
  std::vector<std::string> command = {program,       "-arch=" + architecture(source), "-v", path_of(text), "-o",
                                      path_of(cubin)};
  if (source.max_registers > 0)
    command.insert(command.begin() + 1, "-maxrregcount=" + std::to_string(source.max_registers));
  const int status = run(std::move(command), log);
  const std::string said = content_of(log);
  if (status != 0) return fail("ptxas: " + said.substr(0, said.find('\n')));
  return MachineCode{.image = content_of(cubin), .kernels = gpuslice::read_compiler_log(said)};
}

}  // namespace gpuctl::compile
