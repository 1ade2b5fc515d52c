#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <vector>

#include "base/read_write.h"
#include "gpuslice-compile/compiler.h"
#include "ipc/unique_fd.h"

extern char** environ;

namespace gpuctl::compile {
namespace {

using ipc::UniqueFd;

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

Result<MachineCode> compile_with(const std::string& program, const Source& source, unsigned threads) {
  const UniqueFd text = memory_file("ptx", source.text), cubin = memory_file("cubin"), log = memory_file("log");
  if (!text || !cubin || !log) return fail("no memory for the files of ptxas");
  std::vector<std::string> command = {program, "-arch=" + architecture(source), "-v"};
  if (threads > 1) command.push_back("-split-compile=" + std::to_string(threads));
  if (source.max_registers > 0) command.push_back("-maxrregcount=" + std::to_string(source.max_registers));
  command.insert(command.end(), {path_of(text), "-o", path_of(cubin)});
  const int status = run(std::move(command), log);
  const std::string said = content_of(log);
  if (status != 0) return fail("ptxas: " + said.substr(0, said.find('\n')));
  return MachineCode{.image = content_of(cubin), .kernels = gpuslice::read_compiler_log(said)};
}

}  // namespace

std::vector<std::string> ptxas_programs(const std::string& nvjitlink) {
  std::vector<std::string> found;
  const auto look_in = [&found](const std::string& directory) {
    const std::string program = directory + "/ptxas";
    if (access(program.c_str(), X_OK) == 0 && std::ranges::find(found, program) == found.end())
      found.push_back(program);
  };
  for (std::string above = nvjitlink; above.rfind('/') != above.npos && above.rfind('/') > 0;) {
    above.resize(above.rfind('/'));
    for (const char* there : {"/bin", "/cuda_nvcc/bin", "/triton/backends/nvidia/bin"}) look_in(above + there);
  }
  const char* path = secure_getenv("PATH");
  std::istringstream directories(path ? path : "");
  for (std::string directory; std::getline(directories, directory, ':');)
    if (!directory.empty()) look_in(directory);
  if (const char* home = secure_getenv("CUDA_HOME")) look_in(std::string(home) + "/bin");
  look_in("/usr/local/cuda/bin");
  return found;
}

Result<MachineCode> compile_by_ptxas(const Source& source, const std::string& where) {
  Result<MachineCode> made = fail("there is no ptxas");
  for (const std::string& program : ptxas_programs(where)) {
    const unsigned threads = threads_for(source.text.size());
    made = compile_with(program, source, threads);
    if (!made && threads > 1) made = compile_with(program, source, 1);  // older ones do not know threads
    if (made) break;
  }
  return made;
}

}  // namespace gpuctl::compile
