// Random trees of slices, for property tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sched/slice_tree.h"

namespace gpuctl::sched {

/// Tries to make `count` slices at random places at or below `top`, each with what `settings()` gives; the tree refuses
/// some. `below(n)`: a random number from 0 to n - 1.
template <class Below, class Settings>
void add_random_slices(SliceTree& tree, const std::string& top, std::uint64_t count, const Caller& caller, Below below,
                       Settings settings) {
  std::vector<std::string> paths{top};
  for (std::uint64_t n = count; n > 0; --n) {
    const std::string& above = paths[below(paths.size())];
    const std::string path = (above == "/" ? "" : above + "/") + "s" + std::to_string(n);
    if (tree.create(path, settings(), caller)) paths.push_back(path);
  }
}

}  // namespace gpuctl::sched
