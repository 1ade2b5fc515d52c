#include "libgpuslice/launch/stream_limits.h"

#include <gtest/gtest.h>

#include "ipc/stub_map.h"
#include "libgpuslice/testing/fake_driver.h"

namespace gpuslice {

/// Without a daemon.
std::uint32_t GrantView::granted() const {
  return gpuctl::ipc::load(polled()->capsm);
}

namespace {

constexpr std::uint32_t kGpuSms = 40;

class StreamLimitsTest : public testing::Test {
 protected:
  StreamLimitsTest() {
    polled_.capsm = kGpuSms;
    view_.set_polled(&polled_);
  }
  /// A stream with a launch that could fill the device.
  Stream& add(std::uintptr_t number) {
    Stream& stream = book_.stream_of(reinterpret_cast<CUstream>(number * 16));
    limits_.choose(stream);
    auto launch = std::make_unique<Launch>();
    launch->instance = &kernel_.instance;
    launch->slot = book_.take_slot(stream).value();
    launch->args.total = 1000;
    book_.add(stream, std::move(launch));
    limits_.divide();
    return stream;
  }

  FakeKernel kernel_;
  gpuctl::Polled polled_{};
  GrantView view_{0, kGpuSms};
  LaunchBook book_{fake_slots()};
  StreamLimits limits_{view_, book_};
};

TEST_F(StreamLimitsTest, OneStreamMayUseTheWholeGrant) {
  const Stream& stream = add(1);
  EXPECT_EQ(limits_.allowed(stream), gpuctl::pack_range(kGpuSms, gpuctl::kNoLimit));
  polled_.capsm = 10;
  EXPECT_EQ(gpuctl::range_size(limits_.allowed(stream)), 10u);
}

TEST_F(StreamLimitsTest, TwoStreamsShareItAndTheirWorkersReadThat) {
  const Stream& one = add(1);
  const Stream& other = add(2);
  EXPECT_NE(one.limit, other.limit);
  for (const Stream* stream : {&one, &other}) {
    EXPECT_EQ(gpuctl::range_size(limits_.allowed(*stream)), kGpuSms / 2);
    EXPECT_EQ(gpuctl::pack_range(kGpuSms, polled_.limits[stream->limit]), limits_.allowed(*stream));
  }
  EXPECT_EQ(gpuctl::range_size(gpuctl::pack_range(kGpuSms, polled_.limits[0])), kGpuSms);
}

TEST_F(StreamLimitsTest, WithMoreStreamsThanLimitsSomeHaveNone) {
  std::vector<std::uint32_t> limits;
  for (std::uintptr_t i = 1; i <= std::size(polled_.limits) + 1; ++i) limits.push_back(add(i).limit);
  EXPECT_EQ(limits, (std::vector<std::uint32_t>{1, 2, 3, 4, 5, 0, 0}));
}

TEST_F(StreamLimitsTest, ALimitIsFreeAgainWhenItsStreamHasNothingLeft) {
  add(1);
  const Stream& second = add(2);
  Launch& launch = *book_.stream_of(reinterpret_cast<CUstream>(16)).outstanding.front();
  launch.issued = true;
  launch.failed = true;
  book_.take_out(0, [](const Launch&) {});
  limits_.divide();
  EXPECT_EQ(gpuctl::range_size(limits_.allowed(second)), kGpuSms);
  EXPECT_EQ(add(3).limit, 1u);
}

}  // namespace
}  // namespace gpuslice
