// The execution engine of the software GPU. It turns a PTX module into a Program, and runs one thread block of a kernel
// at a time on the calling OS thread.
//
// Device addresses are host addresses: `ld.global` loads from that address of this process. Shared, local and parameter
// memory belong to the running block. Different blocks may run at the same time on several OS threads. Device atomics
// are host atomics, so they are also atomic towards other threads and other processes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gpuctl::ptx {
struct Module;
}

namespace gpuctl::softgpu::engine {

struct Dim3 {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;
};

/// One kernel parameter: the position of its bytes in the parameter buffer.
struct Param {
  std::uint32_t offset;
  std::uint32_t size;
  std::uint32_t align;
};

struct Function;  // decoded code, internal

/// The properties of an entry that a launcher needs. Owned by its Program.
struct Kernel {
  std::string name;
  std::vector<Param> params;
  std::uint32_t param_bytes = 0;        ///< bytes of the whole parameter buffer
  std::uint32_t static_shared = 0;      ///< bytes of shared memory each block needs besides the dynamic part
  std::uint32_t local_bytes = 0;        ///< bytes of local memory a thread uses without recursion
  std::uint32_t const_bytes = 0;        ///< bytes of the module's `.const` variables
  std::uint32_t registers = 0;          ///< an estimate of 32-bit registers a thread, 16 to 255
  std::uint32_t max_threads = 1024;     ///< threads a block may have (`.maxntid`, `.reqntid`)
  Dim3 required{0, 0, 0};               ///< exact block shape (`.reqntid`), zeros if there is none
  Dim3 cluster{0, 0, 0};                ///< shape of its clusters (`.reqnctapercluster`), zeros if there are none
  std::uint32_t min_blocks_per_sm = 0;  ///< `.minnctapersm`, 0 if not given
  const Function* code = nullptr;
};

/// A `.global` or `.const` variable. The address is valid as long as the Program lives.
struct Symbol {
  std::uint64_t address;
  std::uint64_t size;
  bool constant;  ///< `.const`
};

/// A compiled module with its own copy of every variable. Immutable after compile(), so any thread may use it.
class Program {
 public:
  /// Allocates and initialises the variables (256-byte aligned) and decodes all functions. Fails if the module itself
  /// is wrong. A construct that the engine does not support only disables the kernels that can reach it; see kernel().
  static Result<std::shared_ptr<const Program>> compile(const ptx::Module& module);

  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// The kernel of that name, or why it cannot run: no such entry, or the line and the unsupported instruction.
  Result<const Kernel*> kernel(std::string_view name) const;

  /// Names of all entries, in the order of the text, including those that cannot run.
  const std::vector<std::string>& kernel_names() const;

  /// A `.global` or `.const` variable, or nullptr.
  const Symbol* symbol(std::string_view name) const;

  /// Names of all `.global` and `.const` variables.
  std::vector<std::string> symbol_names() const;

  struct Impl;  // internal
  const Impl& impl() const { return *impl_; }

 private:
  explicit Program(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Says which memory a kernel may access. Optional: without one, only null, misaligned, shared and local accesses are
/// checked, and a wild address ends the process.
class MemoryMap {
 public:
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;  ///< one past the last byte; equal to begin if there is none
  };
  virtual ~MemoryMap() = default;

  /// The valid range that holds `address`; empty if there is none. Called from the thread of run_block. The engine
  /// remembers answers until the block ends, so this function may take a lock. It need not know the variables of the
  /// Program.
  virtual Range find(std::uint64_t address) const = 0;
};

/// Receives the output of a kernel. Called from the thread of run_block.
class PrintSink {
 public:
  virtual ~PrintSink() = default;
  virtual void print(std::string_view text) = 0;
  /// The line of a failed assertion of one thread, with its line feed.
  virtual void assertion_failed(std::string_view) {}
};

/// What a kernel did wrong.
enum class FaultKind {
  kNone,            ///< run_block failed for another reason: it was aborted, or there was no memory for the block
  kTrap,            ///< `trap`, and faults without a kind of their own
  kAssertion,       ///< a failed assert()
  kIllegalAddress,  ///< memory that the kernel may not access
  kMisalignedAddress,
  kIllegalInstruction,  ///< an instruction that cannot be executed, or operands for which it has no meaning
  kInvalidPc,           ///< a branch or call to something that is not code
  kStackOverflow,
};

/// One block to run. Everything pointed to must stay alive until run_block returns.
struct BlockLaunch {
  const Program* program = nullptr;
  const Kernel* kernel = nullptr;
  Dim3 grid;
  Dim3 block;
  Dim3 ctaid{0, 0, 0};
  const std::byte* params = nullptr;  ///< Kernel::param_bytes bytes, laid out as Kernel::params say
  std::uint32_t dynamic_shared = 0;   ///< bytes
  std::uint32_t smid = 0;
  std::uint32_t nsmid = 1;
  std::uint64_t gridid = 0;
  const std::atomic<bool>* abort = nullptr;  ///< when it becomes true, run_block fails soon (within about 10 ms)
  const MemoryMap* memory = nullptr;
  PrintSink* print = nullptr;  ///< nullptr: the output of the kernel is dropped
  /// Called between rounds of the block's warps, with the warp instructions issued so far; may sleep. nullptr: not
  /// called.
  void (*pace)(void* context, std::uint64_t warp_instructions) = nullptr;
  void* pace_context = nullptr;
  FaultKind* fault = nullptr;  ///< receives what the kernel did wrong when run_block fails; nullptr: not wanted
};

struct BlockStats {
  std::uint64_t warp_instructions = 0;    ///< instructions issued, each for a group of lanes
  std::uint64_t thread_instructions = 0;  ///< the same, counted once for each active lane
};

/// Reusable memory of run_block (registers, shared and local memory). Each OS thread that runs blocks owns one.
class BlockScratch {
 public:
  BlockScratch();
  ~BlockScratch();
  BlockScratch(BlockScratch&&) noexcept;
  BlockScratch& operator=(BlockScratch&&) noexcept;

  struct Impl;  // internal
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

/// Runs one block to its end. `nanosleep` takes real time, and %globaltimer is CLOCK_MONOTONIC in nanoseconds. Fails on
/// a fault (the message names kernel, PTX line and cause), on abort, and if all remaining threads wait at barriers that
/// none can complete. Memory written so far stays written.
Result<BlockStats> run_block(const BlockLaunch& launch, BlockScratch& scratch);

}  // namespace gpuctl::softgpu::engine
