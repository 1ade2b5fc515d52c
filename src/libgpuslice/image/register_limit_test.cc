#include "libgpuslice/image/register_limit.h"

#include <gtest/gtest.h>

namespace gpuslice {
namespace {

TEST(RegisterLimit, IsForTheFewThatAreTooMany) {
  EXPECT_EQ(register_limit(32, 34), 32);
  EXPECT_EQ(register_limit(21, 36), 32);
  EXPECT_EQ(register_limit(38, 42), 40);
  EXPECT_EQ(register_limit(21, 32), std::nullopt);  // as many threads fit as before
  EXPECT_EQ(register_limit(33, 40), std::nullopt);
  EXPECT_EQ(register_limit(32, 37), std::nullopt);  // would spill, or take time
  EXPECT_EQ(register_limit(40, 64), std::nullopt);
  EXPECT_EQ(register_limit(0, 34), std::nullopt);  // not known
}

constexpr char kText[] = R"(.version 8.0
.visible .entry first(
	.param .u64 a,
	.param .align 8 .b8 args[112]
)
{
	ret;
}
.visible .entry first__more(.param .u64 a)
.maxntid 256, 1, 1
{
	ret;
}
)";

TEST(RegisterLimit, IsWrittenBehindTheParameters) {
  const std::string limited = limit_registers(kText, {{"first", 40}});
  EXPECT_NE(limited.find("args[112]\n)\n.maxnreg 40\n{"), limited.npos) << limited;
  EXPECT_EQ(limited.size(), sizeof kText - 1 + std::string("\n.maxnreg 40").size());
}

TEST(RegisterLimit, IsLeftOutWhereItDoesNotGo) {
  EXPECT_EQ(limit_registers(kText, {{"first__more", 40}, {"fir", 40}, {"second", 40}}), kText);
}

}  // namespace
}  // namespace gpuslice
