#include "libgpuslice/streams/priority_band.h"

#include <gtest/gtest.h>

namespace gpuslice {
namespace {

constexpr PriorityRange kSix{0, -5};

TEST(PriorityBand, WithOnePriorityThereIsAllButTheAgentsLevel) {
  EXPECT_EQ(banded(0, {}, kSix), 0);
  EXPECT_EQ(banded(-3, {}, kSix), -3);
  EXPECT_EQ(banded(-5, {}, kSix), -4);
  EXPECT_EQ(banded(-100, {}, kSix), -4);
  EXPECT_EQ(banded(7, {}, kSix), 0);
}

TEST(PriorityBand, AGreaterSliceComesBeforeAllStreamsOfALesserOne) {
  EXPECT_EQ(banded(0, {0, 2}, kSix), 0);
  EXPECT_EQ(banded(-1, {0, 2}, kSix), -1);
  EXPECT_EQ(banded(-5, {0, 2}, kSix), -1);
  EXPECT_EQ(banded(0, {1, 2}, kSix), -2);
  EXPECT_EQ(banded(-5, {1, 2}, kSix), -4);
}

TEST(PriorityBand, RanksNeverChangePlacesHoweverManyThereAre) {
  for (unsigned count = 1; count < 20; ++count) {
    for (unsigned rank = 1; rank < count; ++rank) {
      for (int own = 0; own >= -5; --own) {
        EXPECT_LE(banded(own, {rank, count}, kSix), banded(own, {rank - 1, count}, kSix));
        EXPECT_GE(banded(own, {rank, count}, kSix), -4);
      }
    }
    EXPECT_EQ(banded(0, {0, count}, kSix), 0);
  }
  for (unsigned rank = 1; rank < 5; ++rank)
    EXPECT_LT(banded(0, {rank, 5}, kSix), banded(-5, {rank - 1, 5}, kSix)) << "five levels hold five ranks";
}

TEST(PriorityBand, OnADeviceWithTwoLevelsBothAreTheSlices) {
  EXPECT_EQ(banded(0, {0, 2}, {0, -1}), 0);
  EXPECT_EQ(banded(-1, {0, 2}, {0, -1}), 0);
  EXPECT_EQ(banded(0, {1, 2}, {0, -1}), -1);
  EXPECT_EQ(banded(0, {1, 2}, {0, 0}), 0);
}

TEST(PriorityBand, ALevelSaysWhatWasAskedFor) {
  for (unsigned count = 1; count < 7; ++count) {
    for (unsigned rank = 0; rank < count; ++rank) {
      for (int own = 0; own >= -5; --own) {
        const int level = banded(own, {rank, count}, kSix), asked = asked_for(level, {rank, count}, kSix);
        EXPECT_EQ(banded(asked, {rank, count}, kSix), level);
        EXPECT_GE(asked, own) << "the least that has this level";
      }
    }
  }
  EXPECT_EQ(asked_for(-1, {0, 2}, kSix), -1);
  EXPECT_EQ(asked_for(-3, {1, 2}, kSix), -1);
}

TEST(PriorityBand, ALevelOfAnotherBandIsTheNearestOne) {
  EXPECT_EQ(asked_for(0, {1, 2}, kSix), 0);
  EXPECT_EQ(asked_for(-4, {0, 2}, kSix), -1);
  EXPECT_EQ(asked_for(-5, {}, kSix), -4);
}

TEST(PriorityBand, APageThatSaysNonsenseMeansAllLevels) {
  using gpuctl::ipc::band_of;
  using gpuctl::ipc::pack_band;
  using gpuctl::ipc::PriorityBand;
  EXPECT_EQ(band_of(0), PriorityBand{});
  EXPECT_EQ(band_of(pack_band({3, 2})), PriorityBand{});
  EXPECT_EQ(band_of(pack_band({1, 2}) | 0xff), (PriorityBand{1, 2}));
}

}  // namespace
}  // namespace gpuslice
