#include "softgpu/contexts/machine.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace gpuctl::softgpu {

Machine::Machine(Config settings, std::vector<SeenDevice> seen)
    : config(std::move(settings)), memory(memory_of(config, seen)), devices(make_devices(std::move(seen))) {
  for (const auto& device : devices)
    memory.share(device->ordinal, *device->table, config.devices[device->number].shared_bytes);
}

std::vector<std::size_t> Machine::memory_of(const Config& config, const std::vector<SeenDevice>& seen) {
  std::vector<std::size_t> bytes;
  for (const SeenDevice& one : seen) bytes.push_back(config.devices[one.number].memory_bytes);
  return bytes;
}

std::vector<std::unique_ptr<Device>> Machine::make_devices(std::vector<SeenDevice> seen) {
  std::vector<std::unique_ptr<Device>> made;
  for (SeenDevice& one : seen)
    made.push_back(std::make_unique<Device>(static_cast<int>(made.size()), one.number, std::move(one.table), activity,
                                            config.warp_instruction_ns));
  return made;
}

Device* Machine::device(CUdevice ordinal) const {
  const bool known = ordinal >= 0 && static_cast<std::size_t>(ordinal) < devices.size();
  return known ? devices[static_cast<std::size_t>(ordinal)].get() : nullptr;
}

std::shared_ptr<Function> Machine::function(CUfunction handle, const Device& device) const {
  if (std::shared_ptr<Function> function = functions.find(handle)) return function;
  const std::shared_ptr<Kernel> kernel = kernels.find(reinterpret_cast<CUkernel>(handle));
  return kernel == nullptr ? nullptr : kernel->on(device);
}

void Machine::debug(const std::string& line) {
  const char* path = std::getenv("SOFTGPU_DEBUG");
  if (path == nullptr || *path == '\0') return;
  if (std::FILE* file = std::fopen(path, "ae")) {
    std::fprintf(file, "%s\n", line.c_str());
    std::fclose(file);
  }
}

}  // namespace gpuctl::softgpu
