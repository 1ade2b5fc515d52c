// ptxas, started by a front end that loads its output itself, such as Triton. It inherits LD_PRELOAD, so libgpuslice is
// in that process too. There it only notes, when ptxas succeeds, which PTX its output was made of.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/read_write.h"
#include "ipc/unique_fd.h"
#include "libgpuslice/base/debug.h"
#include "libgpuslice/client/client.h"
#include "libgpuslice/image/compile_options.h"
#include "libgpuslice/image/known_ptx.h"
#include "libgpuslice/image/read_file.h"

namespace gpuslice {

namespace {

using gpuctl::ipc::UniqueFd;

/// No PTX of one front end's kernel is larger.
constexpr std::size_t kMostBytes = std::size_t{64} << 20;

std::vector<std::string> own_command() {
  std::vector<std::string> command;
  const UniqueFd file(open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC));
  std::string all;
  if (file) gpuctl::read_pieces(file.get(), [&all](std::string_view piece) { return all += piece, true; });
  for (std::size_t at = 0; at < all.size();) {
    command.emplace_back(all.c_str() + at);
    at += command.back().size() + 1;
  }
  return command;
}

void note_output(int status, void*) {
  if (status != 0) return;
  try {
    const std::optional<PtxasRun> run = read_ptxas_command(own_command());
    if (!run) return debug("ptxas: not a run whose output can be replaced");
    std::optional<std::string> text = read_file(run->input.c_str(), kMostBytes);
    const std::optional<std::string> output = read_file(run->output.c_str(), kMostBytes);
    const std::optional<std::string_view> cubin = output ? cubin_at(output->data(), output->size()) : std::nullopt;
    if (!text || !cubin) return debug("ptxas: its files are not there");
    remember_ptx(*cubin, {std::move(*text), run->max_registers}, CacheDirectory::of_user());
    debug("ptxas made %zu bytes of machine code from %s", cubin->size(), run->input.c_str());
  } catch (...) {  // out of memory: the PTX is not noted
  }
}

/// There are two names: Triton has a second ptxas for newer GPUs.
__attribute__((constructor)) void watch_ptxas() {
  const std::string_view name = program_invocation_short_name;
  if ((name == "ptxas" || name == "ptxas-blackwell") && Client::get().wanted()) on_exit(note_output, nullptr);
}

}  // namespace

}  // namespace gpuslice
