// The execution engine of the software GPU: a PTX module becomes a Program, and one thread block of one of its
// kernels runs at a time on the calling OS thread.
//
// Device addresses are host addresses: `ld.global` loads from that address of this process. Shared, local and
// parameter memory belong to the block being run. Different blocks may run at the same time on several OS threads;
// device atomics are host atomics, so they also work against other threads and other processes.
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

/// One kernel parameter: where its bytes stand in the parameter buffer.
struct Param {
  std::uint32_t offset;
  std::uint32_t size;
  std::uint32_t align;
};

struct Function;  // decoded code, internal

/// What a launcher needs to know of an entry. Owned by its Program.
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
  /// is wrong; a construct the engine does not run only spoils the kernels that can reach it, see kernel().
  static Result<std::shared_ptr<const Program>> compile(const ptx::Module& module);

  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// The kernel of that name, or why it cannot run: no such entry, or the line and instruction that is not supported.
  Result<const Kernel*> kernel(std::string_view name) const;

  /// Names of all entries in the order of the text, those that cannot run too.
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

/// Tells which memory a kernel may touch. Optional: without one, only null, misaligned, shared and local accesses are
/// checked and a wild address ends the process.
class MemoryMap {
 public:
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;  ///< one past the last byte; equal to begin if there is none
  };
  virtual ~MemoryMap() = default;

  /// The valid range that holds `address`, empty if there is none. Called from the thread of run_block; the engine
  /// remembers answers until the block ends, so this may take a lock. Variables of the Program need not be known here.
  virtual Range find(std::uint64_t address) const = 0;
};

/// Receives what a kernel prints. Called from the thread of run_block.
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
  kTrap,            ///< `trap`, and whatever has no kind of its own
  kAssertion,       ///< a failed assert()
  kIllegalAddress,  ///< memory that is not the kernel's
  kMisalignedAddress,
  kIllegalInstruction,  ///< an instruction that cannot be executed, or operands for which it has no meaning
  kInvalidPc,           ///< a branch or call to what is no code
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
  PrintSink* print = nullptr;  ///< nullptr: what the kernel prints is dropped
  /// Called between rounds of the block's warps with the warp instructions issued so far; may sleep. nullptr: not.
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

/// Runs one block to its end. `nanosleep` takes real time and %globaltimer is CLOCK_MONOTONIC in nanoseconds.
/// Fails on a fault (the message names kernel, PTX line and cause), on abort, and when all remaining threads wait at
/// barriers nobody can complete; memory written so far stays written.
Result<BlockStats> run_block(const BlockLaunch& launch, BlockScratch& scratch);

}  // namespace gpuctl::softgpu::engine
