#include "gpuctl/views/demangle.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace gpuctl::cli {
namespace {

using Names = std::vector<std::string>;

/// A function whose argument is a function of four of its own kind, and so on: each level is four times as long.
std::string name_that_grows(int levels) {
  std::string type = "Fv1aE", id = "S";
  std::string arguments = "P" + type;
  std::string name = "_Z1f" + arguments;
  for (int i = 1; i < levels; ++i) {
    // The pointer to the previous level is substitution 2 i - 1 or so; whichever it is, it has the latest number.
    const int latest = 2 * i;
    static constexpr char kDigits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const std::string before = "S" + std::string(1, kDigits[latest - 1]) + "_";
    name += "PFv" + before + before + before + before + "E";
  }
  return name;
}

TEST(Demangle, NamesOfKernels) {
  const std::string longer = "_Z" + std::to_string(70) + std::string(70, 'k') + "Pff";
  EXPECT_EQ(demangled({"_Z5scalePff", "vectorAdd", longer, "f", "_Zgarbage", longer + "i"}),
            (Names{"scale(float*, float)", "vectorAdd", std::string(70, 'k') + "(float*, float)", "f", "_Zgarbage",
                   std::string(70, 'k') + "(float*, float, int)"}));
  EXPECT_EQ(demangled({}), Names{});
}

TEST(Demangle, ANameThatStandsForGigabytesStaysAsItIs) {
  const std::string bomb = name_that_grows(17);
  ASSERT_LE(bomb.size(), 300u);
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  EXPECT_EQ(demangled({bomb, "_Z5scalePff"}), (Names{bomb, "scale(float*, float)"}));
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 64 << 10) << "KiB";
}

}  // namespace
}  // namespace gpuctl::cli
