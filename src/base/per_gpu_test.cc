#include "base/per_gpu.h"

#include <gtest/gtest.h>

namespace gpuctl {
namespace {

std::string again(std::string_view text, AmountOf of = AmountOf::sms) {
  const auto parsed = parse_per_gpu(text, of);
  return parsed ? parsed->text(of) : "refused";
}

TEST(PerGpu, IsReadAndWritten) {
  for (const char* text : {"none", "25%", "0:8", "1:16,0:8", "25%,1:8", "8,1:50%", "0:none", "none,0:8",
                           "GPU-1b2c3d4e-0000-1111-2222-333344445555:8"})
    EXPECT_EQ(again(text), text);
  EXPECT_EQ(again("0:16G,1:25%", AmountOf::bytes), "0:16G,1:25%");
  EXPECT_EQ(again("0:17179869184", AmountOf::bytes), "0:16G");
}

TEST(PerGpu, RefusesWhatIsNone) {
  for (const char* text :
       {"",    ",",    "0:",   ":8",    "8,9",    "0:8,0:9",   "0:8,9",      "101%",    "-1%",  "1.5%", "0:x",
        "x:8", "00:8", "0:8,", "0:1:8", "GPU-:8", "GPU-xyz:8", "0:16777215", "99999:8", "0 :8", "0:+8", "0:16G"})
    EXPECT_EQ(again(text), "refused") << text;
  std::string many = "0:1";
  for (std::size_t gpu = 1; gpu <= kMostPerGpu; ++gpu) many += "," + std::to_string(gpu) + ":1";
  EXPECT_EQ(again(many), "refused");
}

TEST(PerGpu, FindsTheAmountOfAGpu) {
  const auto parsed = parse_per_gpu("25%,1:8,GPU-ab:none", AmountOf::sms);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(*parsed->find(0, "GPU-00"), (PerGpu::Amount{.number = 25, .per_cent = true}));
  EXPECT_EQ(*parsed->find(1, "GPU-00"), (PerGpu::Amount{.number = 8}));
  EXPECT_EQ(*parsed->find(2, "GPU-abcd"), (PerGpu::Amount{.lifted = true}));
  EXPECT_EQ(parse_per_gpu("1:8", AmountOf::sms)->find(0, "GPU-00"), nullptr);
  EXPECT_EQ(parse_per_gpu("1:8", AmountOf::sms)->find(11, "GPU-1:8"), nullptr);
}

TEST(PerGpu, IsWrittenWithTheNumberForEveryGpu) {
  EXPECT_EQ(amount_text("8", "0", "none"), "8");
  EXPECT_EQ(amount_text("0", "0", "25%"), "25%");
  EXPECT_EQ(amount_text("8", "0", "1:16"), "8,1:16");
  EXPECT_EQ(amount_text("0", "0", "1:16"), "1:16");
  EXPECT_EQ(amount_text("none", "none", "1:16"), "1:16");
  EXPECT_EQ(amount_text("40", "none", "25%,1:16"), "25%,1:16");
}

}  // namespace
}  // namespace gpuctl
