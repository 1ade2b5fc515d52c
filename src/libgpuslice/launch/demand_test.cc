#include "libgpuslice/launch/demand.h"

#include <gtest/gtest.h>

#include "ipc/stub_map.h"
#include "libgpuslice/testing/fake_driver.h"

namespace gpuslice {
namespace {

constexpr std::uint32_t kSms = 100;

class DemandTest : public testing::Test {
 protected:
  /// A launch that could fill so many SMs, two workers on each.
  Launch& add(std::uint32_t sms) {
    auto launch = std::make_unique<Launch>();
    launch->instance = &kernel_.instance;
    launch->slot = slots_.take().value();
    launch->per_sm = 2;
    launch->chunk = 10;
    launch->args.total = sms * launch->per_sm * launch->chunk;
    stream_.outstanding.push_back(std::move(launch));
    return *stream_.outstanding.back();
  }
  void start(const Launch& launch) { gpuctl::ipc::store(slots_.host(launch.slot).started, 1u); }
  std::uint32_t demand() const { return demand_of(stream_, slots_, kSms); }

  FakeKernel kernel_;
  Slots slots_ = fake_slots();
  Stream stream_;
};

TEST_F(DemandTest, OfALaunchFallsAsItsBlockTasksAreClaimed) {
  const Launch& launch = add(30);
  EXPECT_EQ(demand_of(launch, slots_, kSms), 30u);
  gpuctl::ipc::store(slots_.host(launch.slot).progress, launch.args.total - 25);
  EXPECT_EQ(demand_of(launch, slots_, kSms), 2u);
  gpuctl::ipc::store(slots_.host(launch.slot).progress, launch.args.total);
  EXPECT_EQ(demand_of(launch, slots_, kSms), 1u);
}

TEST_F(DemandTest, IsAtMostTheDevice) {
  EXPECT_EQ(demand_of(add(1000), slots_, kSms), kSms);
}

TEST_F(DemandTest, OfAStreamIsThatOfItsOldestLaunch) {
  add(30);
  add(50);
  EXPECT_EQ(demand(), 30u);
}

TEST_F(DemandTest, OfAStreamIsThatOfTheNextLaunchIfThatIsMore) {
  start(add(30));
  EXPECT_EQ(demand(), 30u);
  add(50);
  EXPECT_EQ(demand(), 50u);
}

TEST_F(DemandTest, OfAGraphLaunchIsThatOfAllThatRuns) {
  for (const std::uint32_t sms : {30, 20, 10}) {
    Launch& launch = add(sms);
    launch.graph = {.number = 1, .beside = true};
    if (sms > 10) start(launch);
  }
  EXPECT_EQ(demand(), 50u);
}

}  // namespace
}  // namespace gpuslice
