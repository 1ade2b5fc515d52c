// The Lennard-Jones potential of the kernel md: lengths in units of the lattice spacing of its atoms.
#pragma once

namespace gpuctl::bench {

inline constexpr float kMdCutoffSquare = 5.25f;
inline constexpr float kMdRepulsion = 1.5f;   ///< of r^-14 times the distance vector
inline constexpr float kMdAttraction = 2.0f;  ///< of r^-8 times the distance vector

}  // namespace gpuctl::bench
