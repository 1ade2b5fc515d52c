#include "softgpu/host/process.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <sstream>

namespace gpuctl::softgpu {
namespace {

std::string read_proc(std::uint32_t pid, const char* file) {
  const std::string path = "/proc/" + std::to_string(pid) + "/" + file;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  char buffer[1024];
  const ssize_t length = read(fd, buffer, sizeof buffer);
  close(fd);
  return length > 0 ? std::string(buffer, static_cast<std::size_t>(length)) : std::string();
}

}  // namespace

std::uint64_t process_start_time(std::uint32_t pid) {
  const std::string stat = read_proc(pid, "stat");
  const std::size_t name_end = stat.rfind(')');  // the name may hold spaces and parentheses
  if (name_end == std::string::npos) return 0;
  std::istringstream rest(stat.substr(name_end + 1));
  std::string field;
  char state = 0;
  long threads = 0;
  std::uint64_t start_time = 0;
  for (int number = 3; number <= 22 && rest >> field; ++number) {  // proc(5) counts the fields from 1
    if (number == 3) state = field[0];
    if (number == 20) threads = std::strtol(field.c_str(), nullptr, 10);
    if (number == 22) start_time = std::strtoull(field.c_str(), nullptr, 10);
  }
  // A main thread that ended with pthread_exit is shown as a zombie too, but then other threads are counted.
  const bool dead = (state == 'Z' && threads <= 1) || state == 'X';
  return dead ? 0 : start_time;
}

bool process_alive(std::uint32_t pid, std::uint64_t start_time) {
  if (pid == 0 || start_time == 0) return false;
  errno = 0;
  const std::uint64_t found = process_start_time(pid);
  if (found != 0 || (errno != EMFILE && errno != ENFILE && errno != ENOMEM)) return found == start_time;
  return kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM;
}

std::string process_name(std::uint32_t pid) {
  std::string name = read_proc(pid, "comm");
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

}  // namespace gpuctl::softgpu
