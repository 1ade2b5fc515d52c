// Block dispatch: decides which block goes to which SM next. Pure functions over the table; the caller holds its mutex.
#pragma once

#include <cstdint>

#include "softgpu/table/table_layout.h"

namespace gpuctl::softgpu {

/// Blocks of the kernel placed so far, finished ones included.
std::uint64_t placed_blocks(const KernelRow& kernel, std::uint32_t sms);

/// The context of the kernel's client.
std::uint32_t context_of(const TableData& table, const KernelRow& kernel);

/// Gives the turn to the next context with kernels, if that which has it has none, or has had it long enough. Blocks of
/// the former stay where they are, and wait. True if it did.
bool give_turn(TableData& table, std::uint64_t now_ns);

/// Places as many blocks as fit, and returns the clients (bit = index) that were given any.
///
/// Only kernels of the context that has the turn are placed.
///
/// The most urgent kernel of any client goes first; among equals, first come, first served. There is head-of-line
/// blocking: only the kernel at the head is placed. The next one starts when the head has all its blocks placed, even
/// if it would fit beside the head. A more urgent kernel that arrives becomes the head at the next block boundary:
/// blocks of the former head that are placed run on, its other blocks wait.
///
/// Kernels that have no SM in common (KernelRow::allowed) do not block each other: each set of kernels that share SMs
/// has its own head. A client whose blocks are on as many SMs as they may (ClientRow::most_sms) gets no further SM; its
/// waiting kernels then hold up only each other.
std::uint64_t place_blocks(TableData& table);

/// One block of that kernel on that SM has finished.
void free_block(TableData& table, KernelRow& kernel, std::uint32_t sm);

/// A free row, already counted in TableData::rows, or nullptr if the table is full. The caller fills it, with the
/// ticket last.
KernelRow* find_free_row(TableData& table);

/// Removes a kernel from the table, with the blocks it still has on the SMs.
void remove_kernel(TableData& table, KernelRow& kernel);

/// Recomputes SmUse and TableData::rows from the kernels, to repair the table after a process died inside one of the
/// functions above.
void recount(TableData& table);

}  // namespace gpuctl::softgpu
