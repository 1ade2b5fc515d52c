// From the command line of nvcc to that of nvcc with what a preemptible program needs: PTX in the executable for each
// architecture that was asked for, the headers of gpuslice, and, when it links, libgpuslice.
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
  /// Words of nvcc's own environment variables, which it puts before and behind the arguments.
  std::vector<std::string> prepended, appended;
  /// The words of an options file; nothing where it cannot be read (nvcc will say so).
  std::function<std::optional<std::vector<std::string>>(const std::string& path)> read_options_file;
  /// The compute_ names that an architecture means which only this nvcc, on this machine, knows: "native", "all" or
  /// "all-major". May be empty.
  std::function<std::vector<std::string>(const std::string& architecture)> virtual_architectures;
};

/// The arguments for nvcc: `given`, all of them and in order, and what must be added behind. Of an nvcc that
/// is only asked something they are `given`.
std::vector<std::string> complete(const std::vector<std::string>& given, const Surroundings& surroundings);

}  // namespace gpuctl::nvcc
