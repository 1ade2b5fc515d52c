// Options that machine code was compiled with besides its PTX. The driver knows only one of them, the limit on
// registers; code made with others that matter cannot be replaced by what the driver makes of the same PTX.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace gpuslice {

/// The register limit (0 = none) among the options for ptxas that a fatbin records with PTX; nothing if others matter,
/// or are not known.
std::optional<int> fatbin_register_limit(std::string_view options);

/// The same among options for NVRTC. Those of its front end do not matter: the PTX shows what they did.
std::optional<int> nvrtc_register_limit(std::span<const char* const> options);

/// A run of ptxas that compiles one PTX text to one cubin.
struct PtxasRun {
  std::string input, output;  ///< paths as given
  int max_registers = 0;      ///< 0 = no limit
};

/// What a command line of ptxas (with the program's name) asks for; nothing if other options matter, or are not known.
std::optional<PtxasRun> read_ptxas_command(std::span<const std::string> command);

}  // namespace gpuslice
