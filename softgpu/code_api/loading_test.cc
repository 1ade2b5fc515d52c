// Loading code waits until the device is idle: when the image is loaded or, with CUDA_MODULE_LOADING=LAZY, at a
// kernel's first use. The tests run in both modes.
#include <thread>

#include "softgpu/api/fixture.h"

namespace gpuctl::softgpu {
namespace {

class LoadingApi : public ApiTest {
 protected:
  void SetUp() override {
    ApiTest::SetUp();
    CUmoduleLoadingMode mode{};
    ASSERT_CU(cuModuleGetLoadingMode(&mode));
    lazy_ = mode == CU_MODULE_LAZY_LOADING;
    ASSERT_CU(cuStreamCreate(&busy_, CU_STREAM_NON_BLOCKING));
    ASSERT_CU(cuModuleLoadData(&other_, kTestPtx));
  }
  void TearDown() override {
    if (releases_.joinable()) releases_.join();
    ApiTest::TearDown();
  }

  /// Puts work into a stream that ends a moment after this call.
  void keep_busy() {
    go_on_ = false;
    ASSERT_CU(cuLaunchHostFunc(
        busy_,
        [](void* go_on) {
          while (!*static_cast<std::atomic<bool>*>(go_on)) usleep(100);
        },
        &go_on_));
    if (releases_.joinable()) releases_.join();
    releases_ = std::thread([this] {
      usleep(20'000);
      go_on_ = true;
    });
  }
  /// Whether the calls since then had to wait for that work.
  bool waited() { return cuStreamQuery(busy_) == CUDA_SUCCESS; }

  bool lazy_ = false;
  CUstream busy_ = nullptr;
  CUmodule other_ = nullptr;
  std::atomic<bool> go_on_{false};
  std::thread releases_;
};

TEST_F(LoadingApi, AnImageWaitsUnlessItsKernelsDo) {
  keep_busy();
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  EXPECT_CU(cuModuleLoadData(&module, kTestPtx));
  EXPECT_EQ(waited(), !lazy_);
  EXPECT_CU(cuStreamSynchronize(busy_));
  keep_busy();
  EXPECT_CU(cuLibraryLoadData(&library, kTestPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  EXPECT_EQ(waited(), !lazy_);
  EXPECT_CU(cuStreamSynchronize(busy_));
}

TEST_F(LoadingApi, AKernelWaitsAtItsFirstUseAlone) {
  CUfunction function = nullptr;
  ASSERT_CU(cuModuleGetFunction(&function, other_, "mark"));
  CUfunctionLoadingState state{};
  EXPECT_CU(cuFuncIsLoaded(&state, function));
  EXPECT_EQ(state, lazy_ ? CU_FUNCTION_LOADING_STATE_UNLOADED : CU_FUNCTION_LOADING_STATE_LOADED);
  for (const bool first : {true, false}) {
    keep_busy();
    EXPECT_CU(cuFuncLoad(function));
    EXPECT_EQ(waited(), lazy_ && first);
    EXPECT_CU(cuStreamSynchronize(busy_));
  }
  EXPECT_CU(cuFuncIsLoaded(&state, function));
  EXPECT_EQ(state, CU_FUNCTION_LOADING_STATE_LOADED);
}

TEST_F(LoadingApi, AKernelOfALibraryToo) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  ASSERT_CU(cuLibraryLoadData(&library, kTestPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  ASSERT_CU(cuLibraryGetKernel(&kernel, library, "mark"));
  for (const bool first : {true, false}) {
    keep_busy();
    EXPECT_CU(cuKernelGetFunction(&function, kernel));
    EXPECT_EQ(waited(), lazy_ && first);
    EXPECT_CU(cuStreamSynchronize(busy_));
  }
}

}  // namespace
}  // namespace gpuctl::softgpu
