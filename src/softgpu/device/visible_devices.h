// Which devices of the machine a process sees, and in which order (CUDA_VISIBLE_DEVICES).
#pragma once

#include <cstddef>
#include <vector>

namespace gpuctl::softgpu {

/// The numbers of the devices, out of `count`, that a list names by number or by the beginning of a UUID that only one
/// has. As the driver does it: the first item that names none ends the list, and a list that names one twice names none
/// at all. `list` null: all.
std::vector<std::size_t> visible_devices(const char* list, std::size_t count);

}  // namespace gpuctl::softgpu
