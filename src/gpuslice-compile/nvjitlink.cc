#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "gpuslice-compile/compiler.h"
#include "gpuslice-compile/symbols.h"

namespace gpuctl::compile {
namespace {

namespace fs = std::filesystem;

// The declarations of nvJitLink.h, so that the build does not need it.
using Handle = struct nvJitLink*;
constexpr int kInputPtx = 2;
constexpr int kSuccess = 0;

struct Functions {
  int (*create)(Handle*, unsigned, const char**) = nullptr;
  int (*add)(Handle, int, const void*, std::size_t, const char*) = nullptr;
  int (*complete)(Handle) = nullptr;
  int (*destroy)(Handle*) = nullptr;
  int (*cubin_size)(Handle, std::size_t*) = nullptr;
  int (*cubin)(Handle, void*) = nullptr;
  int (*info_size)(Handle, std::size_t*) = nullptr;
  int (*info)(Handle, char*) = nullptr;
  int (*error_size)(Handle, std::size_t*) = nullptr;
  int (*error)(Handle, char*) = nullptr;
  bool whole = false;
};

Functions find_functions(void* library) {
  Functions api{.whole = true};
  const auto find = [&](auto& function, const char* name) { api.whole &= find_symbol(library, function, name); };
  find(api.create, "nvJitLinkCreate");
  find(api.add, "nvJitLinkAddData");
  find(api.complete, "nvJitLinkComplete");
  find(api.destroy, "nvJitLinkDestroy");
  find(api.cubin_size, "nvJitLinkGetLinkedCubinSize");
  find(api.cubin, "nvJitLinkGetLinkedCubin");
  find(api.info_size, "nvJitLinkGetInfoLogSize");
  find(api.info, "nvJitLinkGetInfoLog");
  find(api.error_size, "nvJitLinkGetErrorLogSize");
  find(api.error, "nvJitLinkGetErrorLog");
  return api;
}

/// Where toolkits and distributions install it, newest first.
std::vector<std::string> candidates(const std::string& where) {
  std::vector<std::string> paths;
  if (!where.empty()) paths.push_back(where);
  for (const char* name : {"libnvJitLink.so.13", "libnvJitLink.so.12"}) {
    paths.emplace_back(name);
    std::vector<std::string> here = {"/usr/local/cuda/lib64/" + std::string(name)};
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::directory_iterator("/usr/local", ignored)) {
      const std::string path = entry.path();
      if (path.starts_with("/usr/local/cuda-")) here.push_back(path + "/lib64/" + name);
    }
    std::sort(here.begin() + 1, here.end(), std::greater<>());
    paths.insert(paths.end(), here.begin(), here.end());
  }
  return paths;
}

const Functions& api(const std::string& where) {
  static const Functions found = [&] {
    for (const std::string& path : candidates(where)) {
      void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (!library) continue;
      if (const Functions functions = find_functions(library); functions.whole) return functions;
      dlclose(library);
    }
    return Functions();
  }();
  return found;
}

std::string text_of(Handle handle, int (*size)(Handle, std::size_t*), int (*get)(Handle, char*)) {
  std::size_t bytes = 0;
  if (size(handle, &bytes) != kSuccess || bytes == 0) return {};
  std::string text(bytes, '\0');
  if (get(handle, text.data()) != kSuccess) return {};
  return text.substr(0, text.find('\0'));
}

}  // namespace

Result<MachineCode> compile_by_nvjitlink(const Source& source, const std::string& where) {
  const Functions& functions = api(where);
  if (!functions.whole) return fail("there is no nvJitLink");
  std::vector<std::string> options = {"-arch=" + architecture(source), "-verbose", "-Xptxas=-v",
                                      "-split-compile=" + std::to_string(threads_for(source.text.size()))};
  if (source.max_registers > 0) options.push_back("-maxrregcount=" + std::to_string(source.max_registers));
  std::vector<const char*> pointers;
  for (const std::string& option : options) pointers.push_back(option.c_str());
  Handle handle = nullptr;
  if (functions.create(&handle, static_cast<unsigned>(pointers.size()), pointers.data()) != kSuccess)
    return fail("nvJitLink does not take " + architecture(source));
  MachineCode made;
  std::size_t bytes = 0;
  // Some versions need the NUL after the text.
  bool done = functions.add(handle, kInputPtx, source.text.c_str(), source.text.size() + 1, "rewritten") == kSuccess &&
              functions.complete(handle) == kSuccess && functions.cubin_size(handle, &bytes) == kSuccess;
  if (done) {
    made.image.resize(bytes);
    done = functions.cubin(handle, made.image.data()) == kSuccess;
    made.kernels = gpuslice::read_compiler_log(text_of(handle, functions.info_size, functions.info));
  }
  const std::string error = done ? "" : text_of(handle, functions.error_size, functions.error);
  functions.destroy(&handle);
  if (!done) return fail("nvJitLink: " + error.substr(0, error.find('\n')));
  return made;
}

}  // namespace gpuctl::compile
