// Functions (.func) that kernels call.
#pragma once

#include <string>
#include <vector>

#include "rng.h"

namespace gpuctl::random_kernels {

/// A function of (word, word) -> word that reads the grid and may call those of `callable`.
std::string make_function(Rng& rng, const std::string& name, const std::vector<std::string>& callable);

/// A function of (word, thread, cells) -> word with a barrier: each thread writes its cell of kMeetingArray and reads
/// another of the first `cells`. To be called by all threads of the block that have not returned.
std::string make_meeting(Rng& rng, const std::string& name);

/// A shared variable of the module, of kMeetingWords.
inline constexpr char kMeetingArray[] = "meeting_cells";
inline constexpr unsigned kMeetingWords = 256;

}  // namespace gpuctl::random_kernels
