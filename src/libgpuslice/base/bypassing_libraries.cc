#include "libgpuslice/base/bypassing_libraries.h"

#include <link.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace gpuslice {

namespace {

constexpr std::string_view kBypassingLibraries[] = {"libnvcuvid.so",    "libnvidia-encode.so",
                                                    "libnvoptix.so",    "libnvidia-opticalflow.so",
                                                    "libEGL_nvidia.so", "libGLX_nvidia.so"};

constinit std::atomic<bool> g_deeply_bound{false};

bool bypasses(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  return std::any_of(std::begin(kBypassingLibraries), std::end(kBypassingLibraries),
                     [name](std::string_view known) { return name.starts_with(known); });
}

struct Search {
  std::uint64_t known;  ///< result of the search before
  std::uint64_t loaded = 0;
  bool found = false;
};

int look(dl_phdr_info* library, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  search.loaded = library->dlpi_adds;
  if (search.known >> 1 == search.loaded) {  // no library was loaded since
    search.found = (search.known & 1) != 0;
    return 1;
  }
  search.found = search.found || (library->dlpi_name && bypasses(library->dlpi_name));
  return 0;
}

}  // namespace

constinit std::atomic<void (*)()> g_before_deep_binding{nullptr};

void note_deep_binding() {
  g_deeply_bound.store(true);
  if (const auto before = g_before_deep_binding.load()) before();
}

bool bypassing_library_loaded(std::uint64_t now_ns) {
  if (g_deeply_bound.load(std::memory_order_relaxed)) return true;
  // number of libraries loaded so far << 1 | whether a bypassing library is among them
  static std::atomic<std::uint64_t> known{0};
  static std::atomic<std::uint64_t> next_look_ns{0};
  if (now_ns < next_look_ns.load(std::memory_order_acquire)) return (known.load(std::memory_order_relaxed) & 1) != 0;
  Search search{.known = known.load(std::memory_order_relaxed)};
  dl_iterate_phdr(look, &search);
  known.store(search.loaded << 1 | (search.found ? 1 : 0), std::memory_order_relaxed);
  next_look_ns.store(now_ns + kUnnoticedNs, std::memory_order_release);
  return search.found;
}

}  // namespace gpuslice
