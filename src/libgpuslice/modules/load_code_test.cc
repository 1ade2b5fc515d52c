#include <gtest/gtest.h>

#include "libgpuslice/modules/image_load.h"
#include "libgpuslice/testing/fake_container.h"
#include "ptx/persistent_abi.h"

namespace gpuslice {
namespace {

using Calls = std::vector<std::string>;

constexpr char kRefused[] = "the driver refused the machine code of its other forms";

/// An image with a kernel that has a persistent form, and a driver that accepts what it is not told to refuse.
struct LoadCode : testing::Test {
  LoadCode() {
    load.container = &driver.container;
    load.out = &handle;
    load.image = std::make_shared<LoadedImage>(driver.container);
    load.forms = Forms{.code = "forms", .kernels = {kernel()}, .stands_alone = true, .reason = {}};
    load.plain = [this] { return driver.container.load(&handle, "image", {}); };
  }

  static ImageKernel kernel() {
    ImageKernel one;
    one.name = "one";
    one.persistent = true;
    return one;
  }
  CUresult run(LoadPlan plan) {
    load.plan = plan;
    return load_code(load);
  }

  FakeContainer driver{{"one", std::string("one") + gpuctl::ptx::kPersistentSuffix}};
  void* handle = nullptr;
  ImageLoad load;
};

TEST_F(LoadCode, TheImageAlone) {
  EXPECT_EQ(run(LoadPlan::kOriginal), CUDA_SUCCESS);
  EXPECT_EQ(driver.calls, Calls{"load image"});
  EXPECT_EQ(load.image->handle, handle);
  EXPECT_FALSE(load.image->has_forms);
  EXPECT_EQ(load.reason, "");
}

TEST_F(LoadCode, InPlaceOfTheImage) {
  EXPECT_EQ(run(LoadPlan::kInPlace), CUDA_SUCCESS);
  EXPECT_EQ(driver.calls, Calls{"load forms"});
  EXPECT_TRUE(load.image->has_forms);
  EXPECT_NE(handle, nullptr);
  EXPECT_EQ(load.image->handle, handle);
}

TEST_F(LoadCode, TheImageIfTheFormsAreRefused) {
  driver.refused = {"forms"};
  EXPECT_EQ(run(LoadPlan::kInPlace), CUDA_SUCCESS);
  EXPECT_EQ(driver.calls, (Calls{"load forms", "load image"}));
  EXPECT_FALSE(load.image->has_forms);
  EXPECT_EQ(load.image->handle, handle);
  EXPECT_EQ(load.reason, kRefused);
}

TEST_F(LoadCode, TheImageIfTheFormsLackTheirEntries) {
  driver.entries = {"one"};
  EXPECT_EQ(run(LoadPlan::kInPlace), CUDA_SUCCESS);
  EXPECT_EQ(driver.calls, (Calls{"load forms", "unload 1", "load image"}));
  EXPECT_FALSE(load.image->has_forms);
  EXPECT_EQ(load.reason, kRefused);
}

TEST_F(LoadCode, BesideTheImage) {
  EXPECT_EQ(run(LoadPlan::kBeside), CUDA_SUCCESS);
  EXPECT_EQ(driver.calls, (Calls{"load image", "load forms"}));
  EXPECT_EQ(load.image->handle, FakeContainer::number(1));
  EXPECT_EQ(load.image->forms, FakeContainer::number(2));
  EXPECT_FALSE(load.image->has_forms);
  EXPECT_EQ(load.reason, "");
  load.image->unload_beside();
  load.image->unload_beside();
  EXPECT_EQ(driver.calls, (Calls{"load image", "load forms", "unload 2"}));
}

TEST_F(LoadCode, SaysWhyTheFormsAreNotBeside) {
  driver.refused = {"forms"};
  EXPECT_EQ(run(LoadPlan::kBeside), CUDA_SUCCESS);
  EXPECT_EQ(load.image->forms, nullptr);
  EXPECT_EQ(load.reason, kRefused);
}

TEST_F(LoadCode, TheProgramSeesTheDriversRefusal) {
  driver.refused = {"image"};
  for (const LoadPlan plan : {LoadPlan::kOriginal, LoadPlan::kBeside}) EXPECT_EQ(run(plan), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(driver.calls, (Calls{"load image", "load image"}));
  EXPECT_EQ(handle, nullptr);
}

TEST_F(LoadCode, TheFormsWhereTheImageCannotBe) {
  driver.refused = {"image"};
  EXPECT_EQ(run(LoadPlan::kBesideOrInPlace), CUDA_SUCCESS);
  EXPECT_EQ(driver.calls, (Calls{"load image", "load forms"}));
  EXPECT_TRUE(load.image->has_forms);
  EXPECT_EQ(load.image->handle, handle);
  EXPECT_EQ(load.reason, "");
}

}  // namespace
}  // namespace gpuslice
