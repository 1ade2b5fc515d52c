// Facts about the functions of a module, each alone and with everything it calls.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ptx/syntax/syntax.h"

namespace gpuctl::ptx {

/// One bit for each component of %ctaid and %nctaid that a function reads.
enum GridReads : std::uint8_t {
  kReadsCtaidX = 1,
  kReadsCtaidY = 2,
  kReadsCtaidZ = 4,
  kReadsNctaidX = 8,
  kReadsNctaidY = 16,
  kReadsNctaidZ = 32,
};

/// Facts of one function body.
struct FunctionFacts {
  const Function* function = nullptr;
  std::string refusal;  ///< why no kernel that runs this function can have another form; empty if one can
  std::string once;     ///< why its blocks can run but one block-task each, so it cannot be persistent
  std::uint8_t grid_reads = 0;
  bool has_barrier = false;        ///< any barrier among threads of the block
  bool has_other_barrier = false;  ///< a barrier other than plain `bar.sync 0`: a named one, or one that reduces
  bool has_warp_sync = false;
  std::uint16_t memory = 0;  ///< what it does with memory that other blocks can reach (memory_use.h)
  bool uses_shared = false;
  bool uses_dynamic_shared = false;  ///< names shared memory whose size each launch sets
  bool reads_dynamic_size = false;   ///< reads that size
  bool uses_async_copy = false;      ///< cp.async, whose writes to shared memory may be outstanding at the end
  bool calls_indirectly = false;
  std::set<std::string> calls;  ///< names called directly
};

/// The same facts for a function and everything it may call.
struct Closure {
  std::string refusal;  ///< "f: reason" for a called function, or the name of one that has no body
  std::string once;
  std::uint8_t grid_reads = 0;
  bool has_barrier = false;
  bool has_other_barrier = false;
  bool has_warp_sync = false;
  std::uint16_t memory = 0;
  bool uses_shared = false;
  bool uses_dynamic_shared = false;
  bool reads_dynamic_size = false;
  bool uses_async_copy = false;
  bool calls_indirectly = false;
  bool whole = true;                 ///< all that it calls is in sight
  std::set<std::string> functions;   ///< with bodies, called directly or not; itself only if it is recursive
  std::set<std::string> by_address;  ///< those of `functions` that may be called through a pointer
};

class ModuleFacts {
 public:
  /// `module` must outlive the facts.
  explicit ModuleFacts(const Module& module);

  const Module& module() const { return module_; }

  /// Null for a function without a body here.
  const FunctionFacts* find(std::string_view name) const;

  const Closure& closure(const std::string& name) const;

  /// True for a variable of module scope in shared space.
  bool is_shared_variable(const std::string& name) const { return shared_.count(name) != 0; }

 private:
  FunctionFacts read(const Function& function) const;
  void note_addresses(const Initializer& init);

  const Module& module_;
  std::map<std::string, FunctionFacts, std::less<>> functions_;
  std::set<std::string> names_;  // every function, prototypes included
  std::set<std::string> shared_, dynamic_shared_;
  std::set<std::string> address_taken_;
  mutable std::unordered_map<std::string, Closure> closures_;
};

}  // namespace gpuctl::ptx
