// What a client's kernels are counted as is at least the memory that the daemon has for them.
#include <gtest/gtest.h>
#include <malloc.h>

#include <string>

#include "gpuctld/clients/client.h"

namespace gpuctl::daemon {
namespace {

std::size_t in_use() {
  return mallinfo2().uordblks;
}

TEST(KernelText, CountsWhatIsKept) {
  if (in_use() == 0) GTEST_SKIP() << "this build's allocator does not say what is in use";
  for (const std::size_t length : {1, 8, 16, 24, 100, 1000}) {
    Client client = Client::create({4711, 1000, "program"}, "/", {0}).value();
    const std::size_t before = in_use();
    for (int i = 0; i < 500; ++i) {
      std::vector<ipc::Kernel> one(1);
      one[0].name = std::to_string(1000 + i) + std::string(length, 'n');
      one[0].module = std::string(length, 'm');
      one[0].form = std::string(length, 'f');
      one[0].reason = std::string(length, 'r');
      client.report(std::move(one));
    }
    const std::size_t kept = in_use() - before;
    EXPECT_LE(kept, client.kernel_text()) << length;
    EXPECT_GE(2 * kept, client.kernel_text()) << length << ": and not much more";
  }
}

}  // namespace
}  // namespace gpuctl::daemon
