// share: the spatial policy, and the default.
//
// Good at: work of different importance side by side. A reserve is there at once, weights hold in the long run, and
// outside of kept reserves no SM is idle that a client could use. With one reserved and one limited task it decides as
// Algorithm 1 of SMGuard does.
// Bad at: finishing work early. It knows no durations and no deadlines. More busy clients than SMs can only take turns.
#include "sched/policy/share.h"

namespace gpuctl::sched {

void divide_share(std::span<const Claim> claims, CapSM capacity, std::uint64_t turn, WaterFiller& filler,
                  std::span<CapSM> given) {
  filler.claimants.resize(claims.size());
  filler.parts.resize(claims.size());
  CapSM left = capacity;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    left -= claims[i].floor;
    filler.claimants[i] = {claims[i].want - claims[i].floor, claims[i].weight};
  }
  filler.fill(filler.claimants, left, turn, filler.parts);
  for (std::size_t i = 0; i < claims.size(); ++i) given[i] = claims[i].floor + filler.parts[i];
}

}  // namespace gpuctl::sched
