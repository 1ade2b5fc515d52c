// Finds loops in which a block may wait for what another block writes.
//
// What separates waiting from walking through data: a loop waits if there is a way round it after which nothing that
// decides about its end has changed by the loop's own doing, and what decides depends on memory that other blocks can
// write. So a loop that reads the same address again until it finds another value waits. One that reads the next
// address each time does not, nor one in which a counter decides too, nor one that reads what its own block wrote.
//
// - Reads are followed through registers, predicates, shared and local memory, votes and called functions
//   (memory_flow.h), whatever their cache operator.
// - A plain load counts like the others, but it is told apart by less: the compiler reads an address again also because
//   the loop stores something, and a loop that a counter ends in any case does not wait.
// - Where a loop shows that it reads what others write (volatile, acquire, a fence, a pause), only a steady step counts
//   as change: a loop over a few flags, round and round, waits.
// - The lock-free update waits for nobody. It reads a value, computes a new one, and tries compare-and-swap until no
//   other thread has changed the value in between. A failed try means that another thread succeeded.
#pragma once

#include "ptx/waiting/memory_flow.h"

namespace gpuctl::ptx {

bool may_wait(const MemoryFlow& memory, const FlowLoop& loop);

}  // namespace gpuctl::ptx
