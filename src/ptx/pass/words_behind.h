// Puts the worker's shared words behind the dynamic shared memory, for kernels that have some. In front of it they
// would move it, and programs may rely on where it begins beyond the alignment that they declare: swizzled layouts go
// wrong unless it begins at a multiple of 1024 (layouts of wgmma and bulk tensor copies in hardware, others in the
// program's own arithmetic). Kernels whose static shared memory is full have the words there too.
#pragma once

#include <string>
#include <string_view>

#include "ptx/syntax/syntax.h"

namespace gpuctl::ptx::pass {

/// The worker's text with its words behind the launch's dynamic shared memory, which must have with_shared_words()
/// bytes. The text computes their address at each access: a register that held it would be one register less for the
/// body.
std::string put_words_behind(std::string_view worker);

/// The module variable that names the begin of dynamic shared memory in that text.
Item dynamic_shared_variable();

}  // namespace gpuctl::ptx::pass
