// Options that machine code was compiled with besides its PTX. The driver knows only one of them, the register limit.
// Code made with other options that matter cannot be replaced by code that the driver makes of the same PTX.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace gpuslice {

/// The register limit (0: none) among the ptxas options that a fatbin records with PTX. Nothing if other options matter
/// or are unknown.
std::optional<int> fatbin_register_limit(std::string_view options);

/// The same for NVRTC's options. Options of its front end do not matter, since their effect is in the PTX.
std::optional<int> nvrtc_register_limit(std::span<const char* const> options);

/// A run of ptxas that compiles one PTX text to one cubin.
struct PtxasRun {
  std::string input, output;  ///< paths as given
  int max_registers = 0;      ///< 0 = no limit
};

/// What a ptxas command line (with the program's name) asks for. Nothing if other options matter or are unknown.
std::optional<PtxasRun> read_ptxas_command(std::span<const std::string> command);

}  // namespace gpuslice
