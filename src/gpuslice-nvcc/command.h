// Extends an nvcc command line by what a preemptible program needs: PTX in the executable for each architecture that
// was asked for, the headers of gpuslice, and, when it links, libgpuslice.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gpuctl::nvcc {

/// Where the parts of gpuslice are.
struct Places {
  std::string include_dir;  ///< holds gpuslice/; empty: the compiler finds it anyway
  std::string library;      ///< path of libgpuslice.so
};

struct Surroundings {
  Places places;
  /// Words of nvcc's own environment variables. nvcc puts them before and after the arguments.
  std::vector<std::string> prepended, appended;
  /// The words of an options file; empty if it cannot be read (nvcc will report that).
  std::function<std::optional<std::vector<std::string>>(const std::string& path)> read_options_file;
  /// The compute_ names of an architecture that only this nvcc, on this machine, can resolve: "native", "all" or
  /// "all-major". May be empty.
  std::function<std::vector<std::string>(const std::string& architecture)> virtual_architectures;
};

/// The arguments for nvcc: all of `given`, in order, followed by what must be added. If nvcc is only asked a question,
/// nothing is added.
std::vector<std::string> complete(const std::vector<std::string>& given, const Surroundings& surroundings);

}  // namespace gpuctl::nvcc
