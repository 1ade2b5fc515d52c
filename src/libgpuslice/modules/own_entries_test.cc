#include "libgpuslice/modules/own_entries.h"

#include <gtest/gtest.h>

#include "libgpuslice/testing/fake_container.h"
#include "ptx/persistent_abi.h"

namespace gpuslice {
namespace {

/// A library has a CUmodule in each context. The driver is asked by the container that the program asks about.
constexpr Container kOther{true, nullptr, nullptr, nullptr, nullptr, nullptr};

/// Two kernels, the first with a persistent form.
struct OwnEntries : testing::Test {
  OwnEntries() {
    ImageKernel one, two;
    one.name = "one";
    one.persistent = true;
    two.name = "two";
    image.listed = {one, two};
    image.has_forms = true;
  }

  std::vector<void*> told(unsigned wanted) {
    std::vector<void*> entries(wanted, nullptr);
    EXPECT_EQ(enumerate_own(entries.data(), wanted, image, driver.container, image.handle), CUDA_SUCCESS);
    return entries;
  }

  FakeContainer driver{{std::string("one") + gpuctl::ptx::kPersistentSuffix, "one", "two"}};
  LoadedImage image{kOther};
  void* const one = FakeContainer::number(101);
  void* const two = FakeContainer::number(102);
};

TEST_F(OwnEntries, AddedOnesAreLeftOut) {
  EXPECT_EQ(added_entries(image), 1u);
  EXPECT_EQ(told(2), (std::vector<void*>{one, two}));
  EXPECT_EQ(told(1), std::vector<void*>{one});
  EXPECT_EQ(told(3), (std::vector<void*>{one, two, nullptr}));
}

TEST_F(OwnEntries, AnImageWithoutAddedOnesIsTheDrivers) {
  image.has_forms = false;
  EXPECT_EQ(added_entries(image), 0u);
  EXPECT_EQ(told(3), (std::vector<void*>{FakeContainer::number(100), one, two}));
}

}  // namespace
}  // namespace gpuslice
