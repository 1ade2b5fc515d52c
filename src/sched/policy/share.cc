// share: the spatial policy, and the default.
//
// Good at: work of different importance side by side. A reserve is there at once, weights hold in the long run, and
// outside of kept reserves no SM is idle that a client could use. With one reserved and one limited task it decides as
// Algorithm 1 of SMGuard does.
// Bad at: finishing work early. It knows no durations and no deadlines. More busy clients than SMs can only take turns.
#include "sched/policy/share.h"

namespace gpuctl::sched {

void divide_share(std::span<const Claim> claims, Due capacity, WaterFiller& filler, std::span<Due> dues) {
  filler.claimants.resize(claims.size());
  Due left = capacity;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    left -= due_of(claims[i].floor);
    filler.claimants[i] = {claims[i].want - claims[i].floor, claims[i].weight};
  }
  filler.share(filler.claimants, left, dues);
  for (std::size_t i = 0; i < claims.size(); ++i) dues[i] += due_of(claims[i].floor);
}

}  // namespace gpuctl::sched
