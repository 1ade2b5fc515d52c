#include "gpuctld/restart/holdings.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace gpuctl::daemon {
namespace {

class Holdings : public testing::Test {
 protected:
  Holdings() {
    std::string pattern = testing::TempDir() + "gpuctld-held-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    file_ = directory_ + "/attached.json";
  }
  ~Holdings() override { std::filesystem::remove_all(directory_); }

  std::string directory_, file_;
};

TEST_F(Holdings, ComeBackAsTheyWere) {
  EXPECT_TRUE(load_holdings(file_).value().empty());
  const std::vector<Holding> holdings{{{77, 12345678901, 1000}, "batch/a", "GPU-1", 132},
                                      {{78, 5, 0}, "/", "GPU-2", 1}};
  ASSERT_TRUE(save_holdings(file_, holdings));
  EXPECT_EQ(load_holdings(file_).value(), holdings);
  ASSERT_TRUE(save_holdings(file_, {}));
  EXPECT_TRUE(load_holdings(file_).value().empty());
}

TEST_F(Holdings, NoMoreThanABoundIsKept) {
  ASSERT_TRUE(save_holdings(file_, std::vector<Holding>(kMostHoldings + 1, {{77, 1, 1}, "/", "GPU-1", 1})));
  EXPECT_EQ(load_holdings(file_).value().size(), kMostHoldings);
}

TEST_F(Holdings, ABrokenFileIsAnErrorThatNamesIt) {
  for (const char* text : {"", "[]", "{\"version\":2,\"attached\":[]}",
                           "{\"version\":1,\"attached\":[{\"pid\":-1,\"start\":1,\"uid\":0,\"slice\":\"/\","
                           "\"device\":\"GPU-1\",\"sms\":3}]}"}) {
    std::ofstream(file_) << text;
    std::filesystem::permissions(file_, std::filesystem::perms::owner_read);
    const auto loaded = load_holdings(file_);
    ASSERT_FALSE(loaded) << text;
    EXPECT_EQ(loaded.error().message.find(file_), 0u) << loaded.error().message;
    std::filesystem::remove(file_);
  }
}

}  // namespace
}  // namespace gpuctl::daemon
