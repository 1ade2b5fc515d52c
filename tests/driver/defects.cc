// Kernels that other rewriters got wrong (tests/ptx/defects): defects DIRECTORY ROUNDS. Launches each of them so many
// times, one behind the other, and checks every word of what it leaves. ROUNDS 0: until SIGTERM. A line for each round,
// "round N most M", M being the most blocks of one_warp_blocks that ran at the same time; then exit status 0, or 3 at
// the first word that is wrong, which is named on stderr.
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>

#include "defect_kernels.h"
#include "driver.h"

namespace {

volatile std::sig_atomic_t over = 0;

class Runner {
 public:
  Runner(DefectKernel kernel, const std::string& directory)
      : kernel_(std::move(kernel)), read_(kernel_.expected.size()) {
    const std::string path = directory + "/" + kernel_.name + ".ptx";
    std::ifstream file(path);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (text.empty()) {
      std::fprintf(stderr, "%s cannot be read\n", path.c_str());
      std::exit(1);
    }
    CUmodule module = nullptr;
    DRIVER_CHECK(cuModuleLoadData(&module, text.c_str()));
    DRIVER_CHECK(cuModuleGetFunction(&function_, module, kernel_.name));
    if (kernel_.shared != 0) {
      const auto bytes = static_cast<int>(kernel_.shared);
      DRIVER_CHECK(cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes));
    }
    std::size_t size = 0;
    if (kernel_.parameter) {
      DRIVER_CHECK(cuMemAlloc(&words_, bytes()));
    } else {
      DRIVER_CHECK(cuModuleGetGlobal(&words_, &size, module, "results"));
    }
  }

  /// False when a word is wrong.
  bool run(CUstream stream) {
    DRIVER_CHECK(cuMemsetD32Async(words_, 0, read_.size(), stream));
    void* parameters[] = {&words_};
    void** given = kernel_.parameter ? parameters : nullptr;
    const auto& [x, y, z] = kernel_.grid;
    if (kernel_.cooperative) {
      DRIVER_CHECK(cuLaunchCooperativeKernel(function_, x, y, z, kernel_.threads, 1, 1, kernel_.shared, stream, given));
    } else {
      DRIVER_CHECK(cuLaunchKernel(function_, x, y, z, kernel_.threads, 1, 1, kernel_.shared, stream, given, nullptr));
    }
    DRIVER_CHECK(cuMemcpyDtoHAsync(read_.data(), words_, bytes(), stream));
    DRIVER_CHECK(cuStreamSynchronize(stream));
    for (std::size_t i = 0; i < read_.size(); ++i) {
      if (read_[i] == kernel_.expected[i] || static_cast<int>(i) == kernel_.free_word) continue;
      std::fprintf(stderr, "%s: word %zu is %u, not %u\n", kernel_.name, i, read_[i], kernel_.expected[i]);
      return false;
    }
    return true;
  }

  /// The word that may differ, 0 if there is none.
  unsigned free_word() const { return kernel_.free_word < 0 ? 0 : read_[static_cast<std::size_t>(kernel_.free_word)]; }

 private:
  std::size_t bytes() const { return read_.size() * sizeof(unsigned); }

  DefectKernel kernel_;
  std::vector<unsigned> read_;
  CUfunction function_ = nullptr;
  CUdeviceptr words_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int rounds = std::atoi(argv[2]);
  std::signal(SIGTERM, [](int) { over = 1; });
  DRIVER_CHECK(cuInit(0));
  use_first_gpu();
  CUstream stream = nullptr;
  DRIVER_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  std::vector<Runner> runners;
  for (DefectKernel& kernel : defect_kernels()) runners.emplace_back(std::move(kernel), argv[1]);
  for (int round = 1; !over && (rounds == 0 || round <= rounds); ++round) {
    unsigned most = 0;
    for (Runner& runner : runners) {
      if (!runner.run(stream)) return 3;
      most = std::max(most, runner.free_word());
    }
    std::printf("round %d most %u\n", round, most);
    std::fflush(stdout);
  }
  return 0;
}
