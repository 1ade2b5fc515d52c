// The rewriter: adds persistent forms of a module's kernels to the module (persistent_abi.h).
//
// A kernel gets a persistent form only if every construct in it is understood and known to behave the same when fewer,
// longer-lived blocks run its blocks one after the other. Every other kernel stays as it is and is reported as opaque,
// with the reason.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ptx/blocks_wait.h"
#include "ptx/syntax/syntax.h"

namespace gpuctl::ptx {

enum class Form { kPersistent, kOpaque };

/// Position of a parameter in the parameter block of a kernel, in bytes.
struct ParamLayout {
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
  std::uint32_t align = 1;
};

/// Bits of EntryReport::reads_block_index.
inline constexpr std::uint8_t kReadsX = 1;
inline constexpr std::uint8_t kReadsY = 2;
inline constexpr std::uint8_t kReadsZ = 4;

struct EntryReport {
  std::string name;  ///< of the original entry; the added one has kPersistentSuffix behind it
  Form form = Form::kOpaque;
  std::string reason;               ///< one line: why the kernel has this form
  std::vector<ParamLayout> params;  ///< the program's parameters, in order
  /// Position of LaunchArgs in the added entry's parameter block.
  std::uint32_t args_offset = 0;
  std::uint32_t params_bytes = 0;      ///< size of all the program's parameters together
  std::uint8_t reads_block_index = 0;  ///< components of %ctaid that the kernel or a called function reads
  bool uses_barrier = false;
  bool uses_shared = false;
  bool needs_finished_barrier = false;  ///< threads may return while others go on to a barrier
  /// The added form is valid only for blocks whose x size is a multiple of 32, in grids of fewer than 2^31 threads in
  /// x.
  bool needs_whole_warps = false;
  bool returns_only_first = false;        ///< if so: each thread returns before all barriers or comes to all of them
  std::uint32_t static_shared_bytes = 0;  ///< of the original entry, with the module's variables it uses
  BlocksWait blocks_wait = BlocksWait::kUnknown;
  /// The worker's shared words lie behind the dynamic shared memory; see with_shared_words().
  bool words_behind = false;
};

struct RewriteResult {
  Module module;  ///< the original's items, in order; the added functions stand before the debug sections
  std::vector<EntryReport> entries;  ///< one for each entry with a body, in order
};

/// Called after each pass over each entry: the pass's name and the entry as text.
using DumpHook = std::function<void(std::string_view pass, std::string_view entry)>;

/// Never fails: a kernel that cannot be rewritten is opaque.
RewriteResult rewrite(const Module& module, const DumpHook& dump = {});

struct RewrittenText {
  std::string text;  ///< of the whole module
  std::vector<EntryReport> entries;
  bool stands_alone = false;  ///< stands_alone() of the module
};

/// Whether a second copy of the module, loaded beside the first, would behave the same. It has no variables that
/// outlive a kernel (except the compiler's own strings, `$str`, which no code writes), and it calls nothing through
/// pointers, which may come from the other copy.
bool stands_alone(const Module& module);

/// Parses, rewrites and prints. Errors: the errors of parse().
Result<RewrittenText> rewrite_text(std::string_view text);

}  // namespace gpuctl::ptx
