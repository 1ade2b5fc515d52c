#include "gpuctl/views/top_screen.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "gpuctl/text/table.h"

namespace gpuctl::cli {
namespace {

using Lines = std::vector<std::string>;

ipc::ClientUsage usage(std::int64_t granted, std::int64_t holding, std::int64_t launches, std::int64_t evictions) {
  ipc::ClientUsage u;
  u.mode = "workers";
  u.granted = granted;
  u.holding = holding;
  u.launches = launches;
  u.evictions = evictions;
  u.evict_us_mean = 24.26;
  u.evict_us_last = 1250;
  u.latency = {{"bursts", 10, launches, 48, 63.7, 80}, {"bursts", 0, launches, 1, 2, 3}};
  return u;
}

/// A machine with fixed numbers, `seconds` after its start.
ipc::Snapshot snapshot(int seconds) {
  ipc::Snapshot s;
  s.time_ns = std::int64_t{1'000'000'000} * seconds;
  s.devices = {{0, "NVIDIA H200", "GPU-1", "cuda", 132, 0, "mps"}};
  s.slices = {{.path = "/", .reserve_mode = "strict", .owner_gid = 0, .granted = 108, .demand = 132},
              {.path = "batch",
               .reserve_mode = "strict",
               .max = 100,
               .weight = 50,
               .owner_gid = 0,
               .granted = 100,
               .demand = 124,
               .clients = 1},
              {.path = "batch/train",
               .reserve = 4,
               .reserve_mode = "strict",
               .owner_gid = 0,
               .granted = 100,
               .demand = 124,
               .clients = 1},
              {.path = "ls", .reserve = 8, .priority = 10, .owner_gid = 0, .granted = 8, .demand = 8, .clients = 1}};
  s.clients = {
      {4711, 0, "/srv/bin/server --port 80 /x", "ls", "running", {usage(8, 6, 400 * seconds, 0)}},
      {815, 0, "python3 train.py --epochs 3", "batch/train", "running", {usage(100, 100, 116 * seconds, 50 * seconds)}},
      {99, 0, "./idle", "ls", "attached", {}}};
  return s;
}

TEST(TopScreen, PlainText) {
  const ipc::Snapshot before = snapshot(1), now = snapshot(2);
  EXPECT_EQ(
      render_top(&before, now, {}),
      (Lines{
          "GPU 0  NVIDIA H200 (mps)  [################################=.......]  108 of 132 SMs granted, 106 held", "",
          "SLICE       RESERVE  MAX  WEIGHT  PRIORITY  POLICY  GRANTED  DEMAND  CLIENTS",
          "/                 -    -     100         0  share       108     132        0",
          "  batch           -  100      50         0  share       100     124        1",
          "    train  4 strict    -     100         0  share       100     124        1",
          "  ls              8    -     100        10  share         8       8        1", "",
          " PID  SLICE        GPU  STATE     MODE     GRANTED  HOLDING  LAUNCH/S  EVICT/S  EVICT MEAN  EVICT LAST    "
          "P50      P99  P99.9  COMMAND",
          " 815  batch/train    0  running   workers      100      100       116       50     24.3 us     1.25 ms  48 "
          "us  63.7 us  80 us  python3 train.py --epochs 3",
          "  99  ls             -  attached  -              -        -         -        -           -           -      "
          "-        -      -  idle",
          "4711  ls             0  running   workers        8        6       400        0           -           -  48 "
          "us  63.7 us  80 us  server --port 80 /x"}));
}

TEST(TopScreen, SlicesHaveTheLatencyOfTheirPrograms) {
  ipc::Snapshot now = snapshot(2);
  now.slices[3].latencies = {{"requests", 10, 100, 1400, 3300, 5100}, {"requests", 0, 900, 1, 2, 3}};
  const Lines lines = render_top(nullptr, now, {90, 24, false, true});
  EXPECT_EQ(lines[3], "SLICE       RESERVE  MAX  WEIGHT  PRIORITY  POLICY  GRANTED  DEMAND  CLIENTS     P99");
  EXPECT_EQ(lines[4], "/                 -    -     100         0  share       108     132        0       -");
  EXPECT_EQ(lines[7], "  ls              8    -     100        10  share         8       8        1  3.3 ms");
  EXPECT_NE(render_top(nullptr, now, {80, 24, false, true})[7].find("3.3 ms"), std::string::npos);
}

TEST(TopScreen, ASliceWasGrantedWhatItsProgramsWere) {
  ipc::Snapshot now = snapshot(2);
  now.slices[0].granted = 132;  // with what nobody wants
  EXPECT_NE(render_top(nullptr, now, {})[3].find(" share       108     132"), std::string::npos);
}

TEST(TopScreen, FairnessIsShownWhereItIsKnown) {
  ipc::Snapshot now = snapshot(2);
  now.fairness = {{"/", 10, 2, 9, 2.5, 0.5, 0.83, 3, 9, 2.5, 0.5, 3}, {.slice = "ls", .seconds = 10, .launches = 4}};
  const Lines lines = render_top(nullptr, now, {});
  EXPECT_EQ(lines[2], "SLICE       RESERVE  MAX  WEIGHT  PRIORITY  POLICY  GRANTED  DEMAND  CLIENTS  ANTT  DNTT   STP");
  EXPECT_EQ(lines[3], "/                 -    -     100         0  share       108     132        0  2.50  0.50  0.83");
  EXPECT_EQ(lines[6], "  ls              8    -     100        10  share         8       8        1     -     -     -");
}

TEST(TopScreen, FirstSampleHasNoRates) {
  const Lines lines = render_top(nullptr, snapshot(2), {});
  EXPECT_NE(lines.back().find("4711  ls             0  running   workers        8        6         -  "),
            std::string::npos)
      << lines.back();
}

/// `line` as a user sees it: without escape sequences.
std::string visible(const std::string& line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      i = line.find('m', i);
    } else {
      text += line[i];
    }
  }
  return text;
}

TEST(TopScreen, FitsEveryWindow) {
  const ipc::Snapshot before = snapshot(1), now = snapshot(2);
  for (std::size_t width = 1; width < 150; ++width)
    for (const std::size_t height : {1u, 2u, 5u, 14u, 40u}) {
      const Lines lines = render_top(&before, now, {width, height, true, true});
      ASSERT_LE(lines.size(), height);
      for (const std::string& line : lines) ASSERT_LE(display_width(visible(line)), width) << visible(line);
    }
}

TEST(TopScreen, EightyColumns) {
  const ipc::Snapshot before = snapshot(1), now = snapshot(2);
  const Lines lines = render_top(&before, now, {80, 24, false, true});
  EXPECT_EQ(lines, (Lines{"gpuctl top: 4 slices, 3 clients                                  ? help  q quits",
                          "GPU 0  NVIDIA H200 (mps)  [██████████████▒···]  108 of 132 SMs granted, 106 held", "",
                          "SLICE       RESERVE  MAX  WEIGHT  PRIORITY  POLICY  GRANTED  DEMAND  CLIENTS",
                          "/                 -    -     100         0  share       108     132        0",
                          "  batch           -  100      50         0  share       100     124        1",
                          "    train  4 strict    -     100         0  share       100     124        1",
                          "  ls              8    -     100        10  share         8       8        1", "",
                          " PID  SLICE        GRANTED  HOLDING  LAUNCH/S  EVICT/S    P50      P99  COMMAND",
                          " 815  batch/train      100      100       116       50  48 us  63.7 us  python3~",
                          "  99  ls                 -        -         -        -      -        -  idle",
                          "4711  ls                 8        6       400        0  48 us  63.7 us  server ~"}));
}

TEST(TopScreen, SaysWhatAShortWindowHides) {
  const ipc::Snapshot now = snapshot(2);
  const Lines lines = render_top(nullptr, now, {80, 10, false, false});
  ASSERT_EQ(lines.size(), 10u);
  EXPECT_EQ(lines[4], "  batch        -  100      50         0  share       100     124        1");
  EXPECT_EQ(lines[5], "... 3 more slices; arrows, Tab and / show them");
  EXPECT_EQ(lines.back(), "... 2 more rows; arrows, Tab and / show them");
  EXPECT_EQ(render_top(nullptr, now, {80, 6, false, false}).back(), "... 8 more lines; make the window taller");
}

/// Where kernels keep their original form, nobody knows which SMs they hold or how long each takes.
TEST(TopScreen, WhatIsNotKnownInAnyRowIsNotShown) {
  const auto plain = [](int seconds) {
    ipc::Snapshot s = snapshot(seconds);
    s.slices.resize(1);
    ipc::ClientUsage u;
    u.demand = 8;
    u.launches = 104 * seconds;
    u.busy_us = 970'000 * seconds;
    s.clients = {{7, 0, "./a", "/", "idle", {u}}, {8, 0, "./b", "/", "running", {u}}};
    s.clients[1].usage[0].launches = 5;
    s.clients[1].usage[0].busy_us = 0;
    s.clients[1].usage[0].in_force = "max";
    s.clients[1].usage[0].mode = "common";
    s.clients[1].usage[0].common_sms = 6;
    s.clients[1].usage[0].granted = 6;
    return s;
  };
  const ipc::Snapshot before = plain(1), now = plain(2);
  const Lines lines = render_top(&before, now, {80, 24, false, false});
  EXPECT_EQ(lines[1], "GPU 0  NVIDIA H200 (mps)  [=.............................]  6 of 132 SMs granted");
  EXPECT_EQ(Lines(lines.end() - 3, lines.end()),
            (Lines{"PID  SLICE  GPU  STATE    MODE    BUSY  GRANTED  LAUNCH/S  COMMAND",
                   "  7  /        0  running  free    97 %        -       104  a",
                   "  8  /        0  idle     common     -        6         0  b"}));
}

TEST(TopScreen, RowsOfOneProgramSayWhichGpu) {
  ipc::Snapshot now = snapshot(2);
  now.clients[0].usage.assign(4, usage(8, 6, 800, 1));
  now.devices.assign(4, now.devices[0]);
  for (int i = 0; i < 4; ++i) now.devices[i].index = now.clients[0].usage[i].device = i;
  now.clients.resize(1);
  for (std::size_t width = 40; width < 120; ++width) {
    const Lines lines = render_top(nullptr, now, {width, 40, false, false});
    std::set<std::string> different(lines.end() - 4, lines.end());
    EXPECT_EQ(different.size(), 4u) << width << ": " << lines.back();
  }
  // 8 on each; the daemon says 8, the most of any.
  EXPECT_EQ(render_top(nullptr, now, {})[9],
            "  ls              8    -     100        10  share        32       0        1");
}

TEST(TopScreen, NoMoreSmsAreGrantedThanTheGpuHas) {
  ipc::Snapshot now = snapshot(2);
  now.clients[0].isolated = true;
  now.clients[0].usage[0].granted = now.clients[1].usage[0].granted = 132;
  EXPECT_TRUE(render_top(nullptr, now, {})[0].ends_with("]  132 of 132 SMs granted in turns, 100 held"));
}

TEST(TopScreen, NamesInWideCharactersFitTheWindow) {
  ipc::Snapshot now = snapshot(2);
  now.slices[1].path = "学習";
  now.slices[2].path = now.clients[1].slice = "学習/推論🚀";
  now.clients[0].command = "./東京 --日本語 語語語語語語語語語語語語語語語語語語語";
  const Lines plain = render_top(nullptr, now, {});
  EXPECT_EQ(plain[4], "  ls               8    -     100        10  share         8       8        1");
  EXPECT_EQ(plain[5], "  学習             -  100      50         0  share       100     124        1");
  EXPECT_EQ(plain[6], "    推論🚀  4 strict    -     100         0  share       100     124        1");
  for (std::size_t width = 1; width < 150; ++width)
    for (const std::string& line : render_top(nullptr, now, {width, 24, true, true}))
      ASSERT_LE(display_width(visible(line)), width) << visible(line);
}

TEST(TopScreen, ManySlicesLeaveRoomForPrograms) {
  ipc::Snapshot now = snapshot(2);
  for (int i = 0; i < 57; ++i) now.slices.push_back({"many-" + std::to_string(i)});
  now.slices.push_back({"zoo/cage/lion"});
  now.slices.back().clients = 1;
  now.slices.push_back({"zoo"});
  now.slices.push_back({"zoo/cage"});
  const Lines lines = render_top(nullptr, now, {80, 24, false, false});
  ASSERT_EQ(lines.size(), 24u);
  EXPECT_TRUE(lines[22].starts_with("  99  ls ")) << lines[22];
  EXPECT_TRUE(lines[18].starts_with("... 50 more slices")) << lines[18];
  for (const std::string name : {"  batch ", "    train ", "  ls ", "  zoo ", "    cage ", "      lion "})
    EXPECT_EQ(std::count_if(lines.begin(), lines.end(), [&](const auto& line) { return line.starts_with(name); }), 1)
        << name;
}

TEST(TopScreen, NamesOfProgramsCannotSteerTheTerminal) {
  ipc::Snapshot now = snapshot(2);
  now.clients[0].command = "evil\x1b[2J\r\n";
  for (const std::string& line : render_top(nullptr, now, {120, 40, false, true}))
    EXPECT_EQ(line.find_first_of("\x1b\r\n"), std::string::npos);
}

TEST(TopScreen, NobodyThere) {
  ipc::Snapshot now = snapshot(2);
  now.clients.clear();
  EXPECT_EQ(render_top(nullptr, now, {}).back(), "no programs; start one with: gpuctl run --slice NAME PROGRAM");
}

}  // namespace
}  // namespace gpuctl::cli
