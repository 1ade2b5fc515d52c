// The rewriter: to the kernels of a module it adds their persistent or guarded forms (persistent_abi.h).
//
// A kernel gets a persistent form only when every construct in it is understood and known to behave the same when its
// blocks are run one after the other by fewer, longer-lived blocks. Where only the second run of a block is in doubt,
// it gets a guarded form: each of its blocks claims one block-task, or finds that it must not, and ends. All else stays
// as it is and is reported as opaque, with the reason.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ptx/syntax.h"

namespace gpuctl::ptx {

enum class Form { kPersistent, kGuarded, kOpaque };

/// Where a parameter lies in the parameter block of a kernel, in bytes.
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
  std::string name;  ///< of the original entry; the persistent or guarded one is called name + kPersistentSuffix
  Form form = Form::kOpaque;
  std::string reason;                  ///< one line: why this form
  std::vector<ParamLayout> params;     ///< of the program, in order
  std::uint32_t args_offset = 0;       ///< of LaunchArgs in the added entry's parameter block
  std::uint32_t params_bytes = 0;      ///< of the program's parameters together
  std::uint8_t reads_block_index = 0;  ///< components of %ctaid read, by called functions too
  bool uses_barrier = false;
  bool uses_shared = false;
  bool needs_finished_barrier = false;  ///< threads may return while others go on to a barrier
  /// Only for blocks whose x size is a multiple of 32, and fewer than 2^31 threads in x.
  bool needs_whole_warps = false;
  bool returns_only_first = false;        ///< then: each thread returns before all barriers or comes to all of them
  std::uint32_t static_shared_bytes = 0;  ///< of the original entry's own variables
  /// The worker's shared words lie behind the dynamic shared memory: with_shared_words().
  bool words_behind = false;
};

struct RewriteResult {
  Module module;  ///< the original's items, untouched and in order, then the added entries and what they call
  std::vector<EntryReport> entries;  ///< one for each entry with a body, in order
};

/// Called after each pass over each entry: the pass's name and the entry as text.
using DumpHook = std::function<void(std::string_view pass, std::string_view entry)>;

/// Whether there are to be guarded forms: without, what could be guarded is opaque, for the same reason.
enum class Guards { kNo, kYes };

/// Never fails: what cannot be rewritten is opaque.
RewriteResult rewrite(const Module& module, const DumpHook& dump = {}, Guards guards = Guards::kYes);

struct RewrittenText {
  std::string text;  ///< of the whole module
  std::vector<EntryReport> entries;
  bool stands_alone = false;  ///< stands_alone() of the module
};

/// Whether a second copy of the module beside the first would do the same: it has no variables that outlive a kernel
/// (but for the compiler's own strings, `$str`, which nobody writes), and calls nothing through pointers, which may
/// come from the other copy.
bool stands_alone(const Module& module);

/// Parses, rewrites and prints. Errors: those of parse().
Result<RewrittenText> rewrite_text(std::string_view text, Guards guards = Guards::kYes);

}  // namespace gpuctl::ptx
