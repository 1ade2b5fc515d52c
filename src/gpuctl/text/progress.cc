#include "gpuctl/text/progress.h"

#include <unistd.h>

#include <iostream>

namespace gpuctl::cli {

bool is_watched(const std::ostream& err) {
  return &err == &std::cerr && ::isatty(STDERR_FILENO) == 1;
}

void Progress::say(const std::string& line) {
  if (!terminal_ || line == said_) return;
  err_ << "\r\x1b[K" << line << std::flush;  // to the start of the line, and clears it
  said_ = line;
}

}  // namespace gpuctl::cli
