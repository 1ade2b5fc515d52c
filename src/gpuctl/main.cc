#include <clocale>
#include <exception>
#include <iostream>

#include "gpuctl/line/command_line.h"
#include "gpuctl/text/failure.h"

int main(int argc, char** argv) {
  std::setlocale(LC_CTYPE, "");
  try {
    return gpuctl::cli::run_command_line({argv + (argc > 0 ? 1 : 0), argv + argc}, std::cout, std::cerr);
  } catch (const std::exception& e) {
    std::cerr << "gpuctl: unexpected: " << e.what() << std::endl;
    return gpuctl::cli::kExitRunFailed;
  }
}
