// Block dispatch: which block goes to which SM next. Pure functions over the table; the caller holds its mutex.
#pragma once

#include <cstdint>

#include "softgpu/table_layout.h"

namespace gpuctl::softgpu {

/// Blocks of the kernel placed so far, finished ones included.
std::uint64_t placed_blocks(const KernelRow& kernel, std::uint32_t sms);

/// Places as many blocks as fit, and returns the clients (bit = index) that were given any.
///
/// The most urgent kernel goes first, whosever it is; among equals, first come, first served. Head-of-line blocking:
/// only the kernel at the head is placed, the next one starts when the head has all its blocks placed, even if the next
/// one would fit beside it. A more urgent kernel that comes takes the head's turn at the boundary of a block: what is
/// placed of the former head runs on, its other blocks wait.
///
/// Kernels that have no SM in common (KernelRow::allowed) do not hold up each other: there is a head among those that
/// do.
std::uint64_t place_blocks(TableData& table);

/// One block of that kernel on that SM has finished.
void free_block(TableData& table, KernelRow& kernel, std::uint32_t sm);

/// A free row, already counted in TableData::rows, or nullptr if the table is full. The caller fills it, ticket last.
KernelRow* find_free_row(TableData& table);

/// Takes a kernel out of the table, with whatever blocks it still has on the SMs.
void remove_kernel(TableData& table, KernelRow& kernel);

/// Computes SmUse and TableData::rows anew from the kernels: the repair after a process died inside one of the above.
void recount(TableData& table);

}  // namespace gpuctl::softgpu
