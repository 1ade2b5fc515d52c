// Workloads for `gpuctl simulate`.
#include "fuzz.h"
#include "gpuctl/simulate/workload_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto workload = gpuctl::cli::parse_workload(gpuctl::fuzz::as_text(data, size), "w.toml");
  if (workload) return 0;
  gpuctl::fuzz::require(workload.error().message.starts_with("w.toml:"), "an error names the file");
  return 0;
}
