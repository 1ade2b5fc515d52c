#include "libgpuslice/base/traced.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace gpuslice {

bool is_traced() {
  std::FILE* status = std::fopen("/proc/self/status", "re");
  if (!status) return false;
  constexpr std::string_view kField = "TracerPid:";
  char line[256];
  long tracer = 0;
  while (std::fgets(line, sizeof line, status))
    if (std::string_view(line).starts_with(kField)) tracer = std::strtol(line + kField.size(), nullptr, 10);
  std::fclose(status);
  return tracer != 0;
}

}  // namespace gpuslice
