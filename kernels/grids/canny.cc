#include "kernels/grids/canny.h"

#include <algorithm>
#include <cstdlib>

#include "kernels/problem/random.h"

namespace gpuctl::bench::canny {
namespace {

constexpr int kTile = 16;
constexpr std::uint32_t kStrong = 2;
constexpr std::uint32_t kWeak = 1;
constexpr std::uint32_t kStrongLeast = 160;
constexpr std::uint32_t kWeakLeast = 60;
constexpr std::uint32_t kWhite = 255;

/// A picture that, outside, is as its nearest pixel.
struct Picture {
  int wide;
  int high;
  Words pixels;
  std::size_t index(int x, int y) const {
    return static_cast<std::size_t>(std::clamp(y, 0, high - 1)) * static_cast<std::size_t>(wide) +
           static_cast<std::size_t>(std::clamp(x, 0, wide - 1));
  }
  std::uint32_t at(int x, int y) const { return pixels[index(x, y)]; }
};

template <class Function>
Picture each_pixel(const Picture& from, Function function) {
  Picture to{from.wide, from.high, Words(from.pixels.size())};
  for (int y = 0; y < from.high; ++y) {
    for (int x = 0; x < from.wide; ++x) to.pixels[to.index(x, y)] = function(x, y);
  }
  return to;
}

Picture smooth(const Picture& from) {
  constexpr std::uint32_t kBell[] = {1, 4, 6, 4, 1};
  return each_pixel(from, [&](int x, int y) {
    std::uint32_t sum = 0;
    for (int j = 0; j < 5; ++j) {
      for (int i = 0; i < 5; ++i) sum += kBell[j] * kBell[i] * from.at(x + i - 2, y + j - 2);
    }
    return sum / 256;
  });
}

Picture gradient(const Picture& from) {
  return each_pixel(from, [&](int x, int y) {
    const auto at = [&](int i, int j) { return static_cast<int>(from.at(x + i, y + j)); };
    const int across = at(1, -1) + 2 * at(1, 0) + at(1, 1) - at(-1, -1) - 2 * at(-1, 0) - at(-1, 1);
    const int down = at(-1, 1) + 2 * at(0, 1) + at(1, 1) - at(-1, -1) - 2 * at(0, -1) - at(1, -1);
    const auto a = static_cast<std::uint32_t>(std::abs(across));
    const auto d = static_cast<std::uint32_t>(std::abs(down));
    const bool same_sign = (across > 0) == (down > 0);
    const std::uint32_t direction = 70 * d <= 29 * a ? 0 : 70 * a <= 29 * d ? 1 : same_sign ? 2 : 3;
    return (a + d) * 4 + direction;
  });
}

Picture thin(const Picture& from) {
  constexpr struct {
    int x;
    int y;
  } kAfter[] = {{1, 0}, {0, 1}, {1, 1}, {-1, 1}};
  return each_pixel(from, [&](int x, int y) -> std::uint32_t {
    const auto [i, j] = kAfter[from.at(x, y) % 4];
    const std::uint32_t here = from.at(x, y) / 4;
    const bool crest = here >= from.at(x - i, y - j) / 4 && here > from.at(x + i, y + j) / 4;
    return !crest || here < kWeakLeast ? 0 : here < kStrongLeast ? kWeak : kStrong;
  });
}

/// Follows weak pixels in the tile at (left, top); those around the tile only begin an edge.
void follow(Picture& to, const Picture& from, int left, int top) {
  const int right = std::min(left + kTile, to.wide) - 1;
  const int bottom = std::min(top + kTile, to.high) - 1;
  for (bool changed = true; changed;) {
    changed = false;
    for (int y = top; y <= bottom; ++y) {
      for (int x = left; x <= right; ++x) {
        std::uint32_t& here = to.pixels[to.index(x, y)];
        if (here != kWeak) continue;
        bool beside_strong = false;
        for (int j = y - 1; j <= y + 1; ++j) {
          for (int i = x - 1; i <= x + 1; ++i) {
            const bool inside = i >= left && i <= right && j >= top && j <= bottom;
            beside_strong |= (inside ? to : from).at(i, j) == kStrong;
          }
        }
        if (!beside_strong) continue;
        here = kStrong;
        changed = true;
      }
    }
  }
}

}  // namespace

// Bright boxes on a dark noisy ground: edges of all kinds, some of them weak.
Problem generate(const Extent& extent, std::uint64_t seed) {
  const auto [wide, high, unused] = extent;
  const std::size_t pixels = std::size_t{wide} * high;
  Random random(seed);
  Words picture = random_words(pixels, seed + 1);
  for (std::uint32_t& pixel : picture) pixel %= 24;
  const auto below = [&](std::uint32_t bound) { return static_cast<std::uint32_t>(random.bits() % bound); };
  for (std::size_t box = 0; box < 1 + pixels / 300; ++box) {
    const std::uint32_t left = below(wide);
    const std::uint32_t top = below(high);
    const std::uint32_t right = std::min(wide, left + 3 + below(30));
    const std::uint32_t bottom = std::min(high, top + 3 + below(30));
    const std::uint32_t light = 10 + below(100);
    for (std::uint32_t y = top; y < bottom; ++y) {
      for (std::uint32_t x = left; x < right; ++x) {
        std::uint32_t& pixel = picture[std::size_t{y} * wide + x];
        pixel = std::min(kWhite, pixel % 50 + light);
      }
    }
  }

  const Dim3 grid = {divide_up(wide, kTile), divide_up(high, kTile)};
  const Dim3 block = {kTile, kTile};
  const auto arguments = [&](Argument from, Argument to) -> std::vector<Argument> {
    return {from, to, Argument::number(wide), Argument::number(high)};
  };
  return {.inputs = {std::move(picture)},
          .output_words = pixels,
          .poison = kPoison,
          .scratch = {{pixels}, {pixels}},
          .steps = {{"cannySmooth", grid, block, arguments(Argument::input(0), Argument::scratch(0))},
                    {"cannyGradient", grid, block, arguments(Argument::scratch(0), Argument::scratch(1))},
                    {"cannyThin", grid, block, arguments(Argument::scratch(1), Argument::scratch(0))},
                    {"cannyFollow", grid, block, arguments(Argument::scratch(0), Argument::output())}}};
}

Words reference(const Extent& extent, const Problem& problem) {
  const Picture picture{static_cast<int>(extent.x), static_cast<int>(extent.y), problem.inputs[0]};
  const Picture thinned = thin(gradient(smooth(picture)));
  Picture edges = thinned;
  for (int top = 0; top < edges.high; top += kTile) {
    for (int left = 0; left < edges.wide; left += kTile) follow(edges, thinned, left, top);
  }
  for (std::uint32_t& pixel : edges.pixels) pixel = pixel == kStrong ? kWhite : 0;
  return edges.pixels;
}

}  // namespace gpuctl::bench::canny
