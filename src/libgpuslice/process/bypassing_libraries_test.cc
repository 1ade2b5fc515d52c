#include "libgpuslice/process/bypassing_libraries.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace gpuslice {
namespace {

TEST(BypassingLibraries, AreNoticedWhenTheyAreLoaded) {
  Dl_info some{};
  EXPECT_FALSE(bypassing_library_loaded());
  EXPECT_FALSE(bypassing_library_loaded());
  const std::filesystem::path copy = std::filesystem::path(testing::TempDir()) / "libnvoptix.so.1";
  void* maths = dlopen("libm.so.6", RTLD_NOW);
  ASSERT_NE(maths, nullptr);
  ASSERT_NE(dladdr(dlsym(maths, "cbrt"), &some), 0);
  std::filesystem::copy_file(some.dli_fname, copy, std::filesystem::copy_options::overwrite_existing);
  void* loaded = dlopen(copy.c_str(), RTLD_NOW);
  ASSERT_NE(loaded, nullptr) << dlerror();
  EXPECT_TRUE(bypassing_library_loaded());
  EXPECT_TRUE(bypassing_library_loaded());
  std::filesystem::remove(copy);
}

}  // namespace
}  // namespace gpuslice
