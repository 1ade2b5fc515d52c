#include "libgpuslice/base/bypassing_libraries.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>

namespace gpuslice {
namespace {

TEST(BypassingLibraries, AreNoticedWhenTheyAreLoaded) {
  Dl_info some{};
  const std::uint64_t now_ns = 1'000'000'000;
  EXPECT_FALSE(bypassing_library_loaded(now_ns - kUnnoticedNs));
  EXPECT_FALSE(bypassing_library_loaded(now_ns));
  const std::filesystem::path copy = std::filesystem::path(testing::TempDir()) / "libnvoptix.so.1";
  void* maths = dlopen("libm.so.6", RTLD_NOW);
  ASSERT_NE(maths, nullptr);
  ASSERT_NE(dladdr(dlsym(maths, "cbrt"), &some), 0);
  std::filesystem::copy_file(some.dli_fname, copy, std::filesystem::copy_options::overwrite_existing);
  void* loaded = dlopen(copy.c_str(), RTLD_NOW);
  ASSERT_NE(loaded, nullptr) << dlerror();
  EXPECT_FALSE(bypassing_library_loaded(now_ns + kUnnoticedNs - 1)) << "it looked a moment ago";
  EXPECT_TRUE(bypassing_library_loaded(now_ns + kUnnoticedNs));
  EXPECT_TRUE(bypassing_library_loaded(now_ns + kUnnoticedNs + 1));
  std::filesystem::remove(copy);
}

TEST(BypassingLibraries, IsToldBeforeOneIsBoundDeeply) {
  static bool told = false;
  g_before_deep_binding = [] { told = true; };
  note_deep_binding();
  EXPECT_TRUE(told);
  EXPECT_TRUE(bypassing_library_loaded(0)) << "at once, whenever it last looked";
}

}  // namespace
}  // namespace gpuslice
