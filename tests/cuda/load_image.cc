// Loads a file as a CUDA module, as a program with a damaged image would: load_image FILE [FUNCTION], by
// cuModuleLoadData unless another function of that shape is named. Exit status 0 when the driver takes it, 1 with one
// line when it refuses. Zeros follow the file in memory, so reading past its end is defined.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>

namespace {

constexpr std::size_t kZerosAfter = std::size_t{16} << 20;

template <class Function>
Function find(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

int refuse(const char* call, CUresult result) {
  std::fprintf(stderr, "%s: error %d\n", call, static_cast<int>(result));
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return 2;
  const char* load = argc == 3 ? argv[2] : "cuModuleLoadData";
  std::ifstream file(argv[1], std::ios::binary);
  std::vector<char> image{std::istreambuf_iterator<char>(file), {}};
  image.resize(image.size() + kZerosAfter);
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) return 2;

  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUresult result = find<decltype(&cuInit)>(library, "cuInit")(0);
  if (result != CUDA_SUCCESS) return refuse("cuInit", result);
  result = find<decltype(&cuDevicePrimaryCtxRetain)>(library, "cuDevicePrimaryCtxRetain")(&context, 0);
  if (result != CUDA_SUCCESS) return refuse("cuDevicePrimaryCtxRetain", result);
  find<decltype(&cuCtxSetCurrent)>(library, "cuCtxSetCurrent")(context);
  result = find<decltype(&cuModuleLoadData)>(library, load)(&module, image.data());
  return result == CUDA_SUCCESS ? 0 : refuse(load, result);
}
