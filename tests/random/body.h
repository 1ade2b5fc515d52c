// Writes random statements of one function.
//
// Two kinds of registers hold values: varying ones, and uniform ones, which are the same in all threads of the block
// that have not returned, and are written only where all these threads come. Conditions over uniform registers are what
// barriers may depend on.
#pragma once

#include <string>
#include <vector>

#include "code.h"
#include "rng.h"

namespace gpuctl::random_kernels {

/// Which threads may return before the end.
enum class Returns {
  kNone,
  kBounds,    ///< those behind a bound, before all barriers and before shared memory is touched
  kFirst,     ///< any, before all barriers
  kAnywhere,  ///< any, anywhere
};

/// What one function is to have.
struct Traits {
  bool entry = false;  ///< has cells, sums and input
  Returns returns = Returns::kNone;
  bool block_returns = false;  ///< whole blocks may return
  bool shared = false;         ///< shared memory, and so barriers
  bool initialised = false;    ///< all threads cleared it first
  bool warp = false;           ///< shuffles and votes: warps are whole and nobody returns
  bool reductions = false;     ///< barriers that reduce: nobody returns
  /// Some warps arrive at a barrier without waiting: nobody returns, warps are whole.
  bool hands_over = false;
  bool local = false;                  ///< a local array
  std::vector<std::string> functions;  ///< that may be called: of (word, word) -> word
  bool calls_apart = true;             ///< also where not all threads come
  std::string meeting;                 ///< one with a barrier: of (word, thread, cells) -> word; none if empty
};

/// Where a statement stands.
struct Place {
  bool together = true;     ///< all threads of the block that have not returned come here
  bool may_return = false;  ///< a thread may return here, whatever the others do
  unsigned depth = 0;       ///< of nesting
  unsigned rounds = 1;      ///< how often this is run at most
};

class Body {
 public:
  Body(Rng& rng, Code& code, const Traits& traits) : rng_(rng), code_(code), traits_(traits) {}

  // The registers everything starts from.
  std::vector<std::string> varying;
  std::vector<std::string> uniform;
  std::string thread;  ///< number of the thread in its block
  std::string cells;   ///< address of the thread's cells
  std::string sums;    ///< addresses
  std::string input;
  std::string array;       ///< name of the shared array of words
  std::string array_size;  ///< register: words of it that may be read
  std::string counters;    ///< name of 8 shared words, if the memory is initialised
  std::string local;       ///< name of 8 local words
  std::string end;         ///< label before the function's last ret
  std::string result;      ///< of a .func: the name of its return parameter

  void statements(unsigned count, const Place& place);

  // body_arithmetic.cc
  void arithmetic(const Place& place);
  std::string operand(bool together);
  std::string special(bool together);

  // body_control.cc
  std::string condition(bool together);
  void branch(const Place& place);
  void loop(const Place& place);
  void thread_return(const Place& place);
  void block_return(const Place& place);
  void leave(const std::string& predicate);

  // body_memory.cc
  void own_cells(const Place& place);
  void add_to_sums(const Place& place);
  void read_input(const Place& place);
  void local_array(const Place& place);
  void call(const Place& place);

  // body_shared.cc
  void barrier();
  void exchange(const Place& place);
  void read_shared(const Place& place);
  void count(const Place& place);
  void reduce(const Place& place);
  void meet(const Place& place);
  void warp(const Place& place);

 private:
  std::string& target(const Place& place);
  std::string word() { return code_.reg(Kind::kWord); }
  std::string call_function(const std::string& name, const std::vector<std::string>& arguments);
  std::string cell_address(const std::string& name, const std::string& index);

  Rng& rng_;
  Code& code_;
  const Traits& traits_;
  bool read_since_barrier_ = false;  ///< shared memory: it must not be written before the next barrier
  bool readable_ = false;            ///< shared memory: all was written before a barrier
};

}  // namespace gpuctl::random_kernels
