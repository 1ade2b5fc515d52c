#include "softgpu/table/placement.h"

#include <gtest/gtest.h>

#include <bit>
#include <memory>

#include "softgpu/table/device_limits.h"

namespace gpuctl::softgpu {
namespace {

class PlacementTest : public testing::Test {
 protected:
  PlacementTest() { table_->sms = 2; }

  KernelRow& queue(std::uint32_t client, std::uint64_t blocks, std::uint32_t threads, std::uint32_t shared = 1024,
                   std::int32_t urgency = 0) {
    KernelRow* row = find_free_row(*table_);
    for (std::uint32_t sm = 0; sm < kMaxSms; ++sm) row->granted[sm] = row->freed[sm] = 0;
    row->client = client;
    row->blocks = blocks;
    row->threads = threads;
    row->shared = shared;
    row->urgency = urgency;
    row->allowed = kAnySm;
    row->ticket = ++ticket_;
    return *row;
  }

  std::uint64_t placed(const KernelRow& row) { return placed_blocks(row, 2); }

  std::unique_ptr<TableData> table_ = std::make_unique<TableData>();
  std::uint64_t ticket_ = 0;
};

TEST_F(PlacementTest, SpreadsOverSmsFirst) {
  KernelRow& kernel = queue(0, 3, 256);
  EXPECT_EQ(place_blocks(*table_), 1U);
  EXPECT_EQ(kernel.granted[0].load(), 2U);
  EXPECT_EQ(kernel.granted[1].load(), 1U);
}

TEST_F(PlacementTest, StopsAtThreadsBlocksAndShared) {
  KernelRow& wide = queue(0, 100, 1024);
  place_blocks(*table_);
  EXPECT_EQ(placed(wide), 4U);  // 2048 threads on each of 2 SMs
  remove_kernel(*table_, wide);

  KernelRow& small = queue(0, 100, 32);
  place_blocks(*table_);
  EXPECT_EQ(placed(small), 64U);  // 32 blocks on each
  remove_kernel(*table_, small);

  KernelRow& hungry = queue(0, 100, 32, occupied_shared(kBlockSharedOptin));
  place_blocks(*table_);
  EXPECT_EQ(placed(hungry), 2U);  // one block has all the shared memory of its SM
}

TEST_F(PlacementTest, TheHeadBlocksWhoeverIsBehindIt) {
  KernelRow& head = queue(0, 5, 1024);
  KernelRow& next = queue(1, 1, 32);
  EXPECT_EQ(place_blocks(*table_), 1U);
  EXPECT_EQ(placed(head), 4U);
  EXPECT_EQ(placed(next), 0U);
  free_block(*table_, head, 1);
  EXPECT_EQ(place_blocks(*table_), 1U);  // the slot goes to the head's last block
  EXPECT_EQ(placed(next), 0U);
  free_block(*table_, head, 0);
  EXPECT_EQ(place_blocks(*table_), 2U);  // now the head is placed, and client 1 follows
  EXPECT_EQ(next.granted[0].load(), 1U);
}

TEST_F(PlacementTest, ContextsTakeTurnsInTheMiddleOfTheirKernels) {
  table_->clients[1].context = 2;
  KernelRow& shared = queue(0, 8, 1024);
  KernelRow& apart = queue(1, 8, 1024);
  EXPECT_FALSE(give_turn(*table_, 0));
  EXPECT_EQ(place_blocks(*table_), 1U);
  EXPECT_EQ(placed(apart), 0U);
  EXPECT_FALSE(give_turn(*table_, kUsualTurnNs - 1));
  EXPECT_TRUE(give_turn(*table_, kUsualTurnNs));
  EXPECT_EQ(table_->turn.load(), context_of(*table_, apart));
  EXPECT_EQ(place_blocks(*table_), 2U);
  EXPECT_EQ(placed(apart), 4U) << "the blocks of the other wait where they are, and it has all SMs";
  free_block(*table_, shared, 0);  // one that was over when its turn ended
  EXPECT_EQ(place_blocks(*table_), 0U);
  table_->turn_us[table_->turn] = 3000;
  EXPECT_FALSE(give_turn(*table_, kUsualTurnNs + 2'999'999));
  EXPECT_TRUE(give_turn(*table_, kUsualTurnNs + 3'000'000));
  EXPECT_EQ(place_blocks(*table_), 1U);
  EXPECT_EQ(placed(shared), 5U);
  EXPECT_EQ(placed(apart), 4U);
}

TEST_F(PlacementTest, AContextWithNothingToRunGivesItsTurnAwayAtOnce) {
  table_->clients[1].context = 2;
  KernelRow& apart = queue(1, 1, 1024);
  EXPECT_TRUE(give_turn(*table_, 5));
  KernelRow& shared = queue(0, 1, 1024);
  EXPECT_FALSE(give_turn(*table_, 6));
  remove_kernel(*table_, apart);
  EXPECT_TRUE(give_turn(*table_, 7));
  EXPECT_EQ(place_blocks(*table_), 1U);
  EXPECT_EQ(placed(shared), 1U);
  EXPECT_EQ(table_->turns[kSharedContext].load(), 1U);
}

TEST_F(PlacementTest, TheMostUrgentGoesFirstWhosoeverItIs) {
  KernelRow& head = queue(0, 6, 1024, 1024, 0);
  place_blocks(*table_);
  KernelRow& same = queue(1, 1, 1024, 1024, 0);
  KernelRow& behind = queue(2, 1, 1024, 1024, -6);
  KernelRow& urgent = queue(1, 1, 1024, 1024, 4);
  KernelRow& most = queue(2, 1, 1024, 1024, 5);
  EXPECT_EQ(place_blocks(*table_), 0U);
  EXPECT_EQ(placed(head), 4U);  // placed blocks stay
  KernelRow* const order[] = {&most, &urgent, &head, &head, &same, &behind};
  for (KernelRow* next : order) {
    const std::uint64_t before = placed(*next);
    free_block(*table_, head, head.granted[0].load() != head.freed[0].load() ? 0 : 1);
    EXPECT_EQ(place_blocks(*table_), std::uint64_t{1} << next->client.load());
    EXPECT_EQ(placed(*next), before + 1);
  }
}

TEST_F(PlacementTest, AnUrgentKernelThatDoesNotFitHoldsUpTheOthers) {
  KernelRow& running = queue(0, 3, 1024);
  place_blocks(*table_);
  KernelRow& urgent = queue(1, 1, 32, occupied_shared(kBlockSharedOptin), 5);
  KernelRow& small = queue(2, 1, 32);
  EXPECT_EQ(place_blocks(*table_), 0U);
  EXPECT_EQ(placed(small), 0U);
  remove_kernel(*table_, urgent);
  EXPECT_EQ(place_blocks(*table_), 4U);
  EXPECT_EQ(placed(running), 3U);
}

TEST_F(PlacementTest, AClientComesToNoMoreSmsThanItMay) {
  table_->sms = 4;
  table_->clients[0].most_sms = 2;
  KernelRow& first = queue(0, 3, 1024);
  KernelRow& second = queue(0, 5, 1024);
  KernelRow& other = queue(1, 4, 1024);
  const auto on = [](const KernelRow& kernel) {
    std::uint32_t sms = 0;
    for (std::uint32_t sm = 0; sm < 4; ++sm)
      if (kernel.granted[sm] != kernel.freed[sm]) sms |= 1U << sm;
    return sms;
  };
  EXPECT_EQ(place_blocks(*table_), 0b11U);
  EXPECT_EQ(std::popcount(on(first) | on(second)), 2);
  EXPECT_EQ(placed_blocks(first, 4) + placed_blocks(second, 4), 4U);
  EXPECT_EQ(placed_blocks(other, 4), 4U);  // what waits for SMs of its own is in nobody else's way
  // An SM that the client has left counts no more: it may come to another one.
  for (int block = 0; block < 2; ++block) free_block(*table_, first, 0);
  free_block(*table_, other, 3);
  free_block(*table_, other, 3);
  KernelRow& wide = queue(2, 1, 2048, 1024, 5);
  place_blocks(*table_);
  EXPECT_EQ(placed_blocks(wide, 4), 1U);
  EXPECT_EQ(std::popcount(on(first) | on(second)), 2);
  EXPECT_EQ(placed_blocks(second, 4), 3U);
}

TEST_F(PlacementTest, BlocksComeToAllowedSmsAlone) {
  KernelRow& kernel = queue(0, 3, 1024);
  kernel.allowed = 0b10;
  EXPECT_EQ(place_blocks(*table_), 1U);
  EXPECT_EQ(kernel.granted[0].load(), 0U);
  EXPECT_EQ(kernel.granted[1].load(), 2U);
}

TEST_F(PlacementTest, KernelsWithoutAnSmInCommonDoNotHoldUpEachOther) {
  KernelRow& head = queue(0, 3, 1024);
  head.allowed = 0b01;
  KernelRow& apart = queue(1, 3, 1024);
  apart.allowed = 0b10;
  KernelRow& anywhere = queue(2, 1, 32);
  EXPECT_EQ(place_blocks(*table_), 0b011U);
  EXPECT_EQ(placed(head), 2U);
  EXPECT_EQ(placed(apart), 2U);
  EXPECT_EQ(placed(anywhere), 0U);
  free_block(*table_, apart, 1);
  EXPECT_EQ(place_blocks(*table_), 0b010U);  // a kernel further ahead waits for every SM that is left
  EXPECT_EQ(placed(anywhere), 0U);
  free_block(*table_, head, 0);
  EXPECT_EQ(place_blocks(*table_), 0b001U);
  free_block(*table_, head, 0);
  EXPECT_EQ(place_blocks(*table_), 0b100U);
}

TEST_F(PlacementTest, WhoWaitsForOneThatWaitsIsNotAhead) {
  table_->sms = 3;
  KernelRow& head = queue(0, 3, 1024);
  head.allowed = 0b001;
  KernelRow& both = queue(1, 1, 32);
  both.allowed = 0b011;
  KernelRow& behind = queue(2, 1, 32);
  behind.allowed = 0b010;
  KernelRow& free = queue(3, 1, 32);
  free.allowed = 0b100;
  EXPECT_EQ(place_blocks(*table_), 0b1001U);
  EXPECT_EQ(placed_blocks(behind, 3), 0U);
  EXPECT_EQ(placed_blocks(free, 3), 1U);
}

TEST_F(PlacementTest, RecountRepairsWhatAnInterruptedPlacementLeft) {
  KernelRow& kernel = queue(0, 4, 512);
  place_blocks(*table_);
  kernel.granted[1].store(3);  // a block granted, but its SM not charged yet
  table_->rows.store(0);
  recount(*table_);
  EXPECT_EQ(table_->rows.load(), 1U);
  EXPECT_EQ(table_->use[1].blocks.load(), 3U);
  EXPECT_EQ(table_->use[1].threads.load(), 1536U);
  EXPECT_EQ(table_->use[0].threads.load(), 1024U);
}

TEST_F(PlacementTest, RemovingAKernelFreesItsResidentBlocks) {
  KernelRow& kernel = queue(0, 10, 1024);
  place_blocks(*table_);
  remove_kernel(*table_, kernel);
  EXPECT_EQ(table_->use[0].threads.load(), 0U);
  EXPECT_EQ(table_->use[1].blocks.load(), 0U);
  EXPECT_EQ(table_->rows.load(), 0U);
}

TEST_F(PlacementTest, AFullTableHasNoRow) {
  for (std::uint32_t i = 0; i < kMaxKernels; ++i) queue(0, 1, 32);
  EXPECT_EQ(find_free_row(*table_), nullptr);
}

}  // namespace
}  // namespace gpuctl::softgpu
