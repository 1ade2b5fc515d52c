#include "body.h"

namespace gpuctl::random_kernels {
namespace {

constexpr unsigned kMostDepth = 3;

}  // namespace

std::string& Body::target(const Place& place) {
  const bool to_uniform = place.together && rng_.chance(30);
  std::vector<std::string>& registers = to_uniform ? uniform : varying;
  return registers[rng_.below(static_cast<std::uint32_t>(registers.size()))];
}

void Body::statements(unsigned count, const Place& place) {
  struct Choice {
    unsigned weight;
    bool possible;
    void (Body::*write)(const Place&);
  };
  const bool nest = place.depth < kMostDepth;
  const bool together = traits_.shared && place.together;
  const Choice choices[] = {
      {12, true, &Body::arithmetic},
      {5, nest, &Body::branch},
      {3, nest && place.rounds <= 8, &Body::loop},
      {3, place.may_return, &Body::thread_return},
      {1, traits_.block_returns && place.together, &Body::block_return},
      {3, traits_.entry, &Body::own_cells},
      {2, traits_.entry, &Body::add_to_sums},
      {2, traits_.entry, &Body::read_input},
      {3, traits_.local, &Body::local_array},
      {2, !traits_.functions.empty() && (place.together || traits_.calls_apart), &Body::call},
      {5, together, &Body::exchange},
      {3, traits_.shared, &Body::read_shared},
      {2, together && traits_.initialised, &Body::count},
      {2, together && traits_.reductions, &Body::reduce},
      {3, place.together && !traits_.meeting.empty(), &Body::meet},
      {3, place.together && traits_.warp, &Body::warp},
  };
  unsigned sum = 0;
  for (const Choice& choice : choices) sum += choice.possible ? choice.weight : 0;
  for (; count > 0; --count) {
    unsigned at = rng_.below(sum);
    for (const Choice& choice : choices) {
      if (!choice.possible) continue;
      if (at < choice.weight) {
        (this->*choice.write)(place);
        break;
      }
      at -= choice.weight;
    }
  }
}

}  // namespace gpuctl::random_kernels
