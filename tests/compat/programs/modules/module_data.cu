// compat: cuModuleLoadData of PTX text and of a fatbin
// libs: cuda
// builds: both ptx shared
// args: ptx
// args: fatbin
// soft: yes
#include <elf.h>

#include <fstream>
#include <iterator>

#include "driver.h"

/// For the fatbin that nvcc puts into this program.
extern "C" __global__ void work(unsigned* data, unsigned count, unsigned depth) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  unsigned x = data[i];
  for (unsigned done = 0; done < depth; ++done) x = (x * 1664525u + 1013904223u) ^ (x >> 7);
  data[i] = x;
}

namespace {

/// The fatbin of this program, from its own file: the longest container in the section .nv_fatbin.
std::vector<char> own_fatbin() {
  struct Container {
    std::uint32_t magic;
    std::uint16_t version, header_bytes;
    std::uint64_t bytes;
  };
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const std::vector<char> program((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(program.data());
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(program.data() + header->e_shoff);
  const char* names = program.data() + sections[header->e_shstrndx].sh_offset;
  std::vector<char> longest;
  for (int i = 0; i < header->e_shnum; ++i) {
    if (std::strcmp(names + sections[i].sh_name, ".nv_fatbin") != 0) continue;
    const char* section = program.data() + sections[i].sh_offset;
    for (std::size_t at = 0; at + sizeof(Container) <= sections[i].sh_size;) {
      Container container;
      std::memcpy(&container, section + at, sizeof container);
      if (container.magic != 0xba55ed50) break;
      const std::size_t bytes = container.header_bytes + container.bytes;
      if (bytes > longest.size()) longest.assign(section + at, section + at + bytes);
      at += (bytes + 7) / 8 * 8;
    }
  }
  return longest;
}

}  // namespace

int main(int argc, char** argv) {
  const char* kind = argc > 1 ? argv[1] : "ptx";
  use_device();
  std::vector<char> image;
  if (std::strcmp(kind, "ptx") == 0) {
    image.assign(kWorkPtx, kWorkPtx + std::strlen(kWorkPtx) + 1);
  } else {
    image = own_fatbin();
  }
  CUmodule module;
  CUfunction function;
  if (std::strcmp(kind, "fatbin") == 0) {
    CHECK_DRIVER(cuModuleLoadFatBinary(&module, image.data()));
    CHECK_DRIVER(cuModuleGetFunction(&function, module, "work"));
    run_work("fatbin", function, amount());
    CHECK_DRIVER(cuModuleUnload(module));
  }
  CHECK_DRIVER(cuModuleLoadData(&module, image.data()));
  image.assign(image.size(), 0);
  CHECK_DRIVER(cuModuleGetFunction(&function, module, "work"));
  run_work(kind, function, amount());
  CUfunction absent;
  const char* name = nullptr;
  CHECK_DRIVER(cuGetErrorName(cuModuleGetFunction(&absent, module, "absent"), &name));
  std::printf("absent kernel: %s\n", name);
  int threads = 0;
  CHECK_DRIVER(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
  std::printf("threads %d\n", threads);
  CHECK_DRIVER(cuModuleUnload(module));
  CHECK_DRIVER(cuGetErrorName(cuModuleLoadData(&module, ".version 7.8\n.target sm_80\n.entry broken( {"), &name));
  std::printf("broken PTX: %s\n", name);
  return 0;
}
