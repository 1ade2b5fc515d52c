// The devices of the machine that a process sees, and their order (CUDA_VISIBLE_DEVICES).
#pragma once

#include <cstddef>
#include <vector>

namespace gpuctl::softgpu {

/// The numbers of the devices, out of `count`, that a list names by number or by the unique beginning of a UUID. As in
/// the driver, the first item that names no device ends the list, and a list that names a device twice names none at
/// all. `list` null: all.
std::vector<std::size_t> visible_devices(const char* list, std::size_t count);

}  // namespace gpuctl::softgpu
