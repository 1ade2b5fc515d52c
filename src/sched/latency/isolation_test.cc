#include "sched/latency/isolation.h"

#include <gtest/gtest.h>

#include <vector>

#include "sched/testing/latency_plant.h"

namespace gpuctl::sched::isolation_test {

using plant::ms;
using Why = IsolationChoice::Why;

namespace {

MeasuredIsolation took(double p99_ms, double others_per_s = 1000, std::uint64_t others = 1) {
  return {.bursts = 500, .p99 = ms(p99_ms), .others_per_s = others_per_s, .others = others};
}

struct Row {
  IsolationEvidence evidence;
  IsolationChoice choice;
  const char* words;
};

TEST(Isolation, IsChosenByWhatIsKnown) {
  const std::vector<Row> table{
      {{}, {false, Why::no_target}, "shared: it has no target of latency"},
      {{.measured = {took(9), took(1)}}, {false, Why::no_target}, "shared: it has no target of latency"},
      {{.has_target = true, .at_most = ms(4)}, {true, Why::nothing_known}, "isolated: not measured yet"},
      {{.has_target = true, .at_most = ms(0.4)},
       {false, Why::short_target},
       "shared: not measured yet, and 400 us is too short for turns"},
      {{.has_target = true, .at_most = ms(4), .others_isolated = 3},
       {true, Why::nothing_known},
       "isolated: not measured yet"},
      {{.has_target = true, .at_most = ms(4), .others_isolated = 4},
       {false, Why::many_isolated},
       "shared: not measured yet, and 4 other slices are isolated"},
      {{.has_target = true, .at_most = ms(4), .measured = {took(5.6), took(3.1)}, .exclusive = true},
       {false, Why::exclusive},
       "shared: a GPU is in compute mode EXCLUSIVE_PROCESS"},
      // Only one is known.
      {{.has_target = true, .at_most = ms(4), .measured = {took(3), {}}},
       {false, Why::meets_target},
       "shared: p99 3 ms is within 4 ms"},
      {{.has_target = true, .at_most = ms(4), .measured = {took(5.6), {}}},
       {true, Why::to_be_tried},
       "isolated, to be tried: shared it has p99 5.6 ms of 4 ms"},
      {{.has_target = true, .at_most = ms(4), .measured = {{}, took(3)}, .others_isolated = 9},
       {true, Why::meets_target},
       "isolated: p99 3 ms is within 4 ms"},
      {{.has_target = true, .at_most = ms(4), .measured = {{}, took(6)}},
       {true, Why::misses_little},
       "isolated: p99 6 ms of 4 ms, and shared it may wait for any kernel of others"},
      {{.has_target = true, .at_most = ms(4), .measured = {{}, took(7)}},
       {false, Why::to_be_tried},
       "shared, to be tried: isolated it has p99 7 ms of 4 ms"},
      {{.has_target = true, .at_most = ms(4), .measured = {took(4.1), {}}},
       {true, Why::to_be_tried},
       "isolated, to be tried: shared it has p99 4.1 ms of 4 ms"},
      {{.has_target = true, .measured = {took(3), {}}}, {false, Why::meets_target}, "shared: p99 3 ms"},
      // Both are.
      {{.has_target = true, .at_most = ms(4), .measured = {took(5.6), took(3.1)}},
       {true, Why::meets_target},
       "isolated: p99 3.1 ms is within 4 ms"},
      {{.has_target = true, .at_most = ms(3), .measured = {took(3.1, 2000), took(2.9, 1000)}},
       {true, Why::meets_target},
       "isolated: p99 2.9 ms is within 3 ms"},
      {{.has_target = true, .at_most = ms(2), .measured = {took(5.6), took(3.1)}},
       {true, Why::lower_p99},
       "isolated: p99 3.1 ms, shared 5.6 ms"},
      {{.has_target = true, .measured = {took(2), took(3)}},
       {false, Why::lower_p99},
       "shared: p99 2 ms, isolated 3 ms"},
      {{.has_target = true, .at_most = ms(9), .measured = {took(8, 1100), took(3, 1000)}},
       {false, Why::others_do_more},
       "shared: p99 8 ms, isolated 3 ms of 9 ms, and others do 1100 launches/s instead of 1000 launches/s"},
      {{.has_target = true, .at_most = ms(9), .measured = {took(8, 1100, 1), took(3, 1000, 2)}},
       {true, Why::lower_p99},
       "isolated: p99 3 ms, shared 8 ms"},
      {{.has_target = true, .at_most = ms(1), .measured = {took(3, 900), took(3.2, 1000)}},
       {true, Why::others_do_more},
       "isolated: p99 3.2 ms, shared about as much, and others do 1000 launches/s instead of 900 launches/s"},
      {{.has_target = true, .at_most = ms(1), .measured = {took(3.2, 1000), took(3, 1000)}},
       {false, Why::others_do_more},
       "shared: p99 3.2 ms, isolated about as much, and others do 1000 launches/s instead of 1000 launches/s"},
  };
  for (const Row& row : table) {
    SCOPED_TRACE(row.words);
    const IsolationChoice choice = choose_isolation(row.evidence);
    EXPECT_EQ(choice, row.choice);
    EXPECT_EQ(words(choice, row.evidence), row.words);
  }
}

}  // namespace
}  // namespace gpuctl::sched::isolation_test
