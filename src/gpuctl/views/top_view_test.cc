#include "gpuctl/views/top_view.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "gpuctl/text/table.h"
#include "gpuctl/views/top_screen.h"

namespace gpuctl::cli::top_view_test {
namespace {

using enum Key::Kind;
using Lines = std::vector<std::string>;

/// "a" to "z" with a program each, and "zoo" with two slices below it.
ipc::Snapshot snapshot() {
  ipc::Snapshot s;
  s.time_ns = 1;
  s.devices = {{0, "GPU", "GPU-1", "cuda", 100, 0, "mps"}};
  s.slices.push_back({.path = "/"});
  std::int64_t pid = 100;
  for (char name = 'a'; name <= 'z'; ++name) {
    const std::string path(1, name);
    s.slices.push_back({.path = path, .clients = 1});
    ipc::ClientUsage usage;
    usage.mode = "workers";
    usage.granted = pid - 99;
    usage.launches = 1;
    s.clients.push_back({pid++, 0, "./run-" + path, path, "running", {usage}});
  }
  for (const char* path : {"zoo", "zoo/one", "zoo/two"}) s.slices.push_back({.path = path});
  return s;
}

struct Person {
  ipc::Snapshot now = snapshot();
  TopModel model = make_top_model(nullptr, now);
  TopView view;

  TopRows rows() const { return rows_of(model, now, view); }
  TopRequest press(Key key) { return cli::press(view, key, rows(), 5); }
  TopRequest type(const std::string& text) {
    TopRequest last;
    for (const char c : text) last = press(c == '\n' ? Key{enter} : Key{character, c});
    return last;
  }
  Lines screen(std::size_t width = 80, std::size_t height = 24) const {
    return render_top(nullptr, now, {width, height, false, true}, view);
  }
  std::string screen_text() const {
    std::string text;
    for (const std::string& line : screen()) text += line + "\n";
    return text;
  }
};

TEST(TopView, ArrowsChooseARowAndThePageFollows) {
  Person person;
  person.press({down});
  EXPECT_EQ(person.view.program, std::pair(std::int64_t{100}, std::int64_t{0}));
  for (int i = 0; i < 20; ++i) person.press({down});
  EXPECT_EQ(person.view.program->first, 120);
  EXPECT_NE(person.screen_text().find("\x1b[7m120  u"), std::string::npos) << person.screen_text();
  person.press({page_up});
  EXPECT_EQ(person.view.program->first, 115);
  person.press({home});
  EXPECT_EQ(person.view.program->first, 100);
  person.press({end});
  EXPECT_EQ(person.view.program->first, 125);
  person.press({down});
  EXPECT_EQ(person.view.program->first, 125);
}

TEST(TopView, EachOfSixtySlicesIsOnAPage) {
  Person person;
  for (int i = 0; i < 30; ++i) person.now.slices.push_back({.path = "more" + std::to_string(i)});
  person.press({tab});
  std::size_t seen = 0;
  std::string last;
  while (person.view.slice != last) {
    last = *person.view.slice;
    const Lines lines = person.screen();
    ASSERT_LE(lines.size(), 24u);
    const auto chosen =
        std::ranges::find_if(lines, [](const std::string& line) { return line.starts_with("\x1b[7m"); });
    ASSERT_NE(chosen, lines.end()) << last;
    ++seen;
    person.press({down});
  }
  EXPECT_EQ(seen, person.now.slices.size());
}

TEST(TopView, AFilterLeavesRowsOfSlicesProgramsAndIds) {
  Person person;
  person.type("/RUN-c\n");
  EXPECT_EQ(person.rows().programs.size(), 1u);
  EXPECT_EQ(person.rows().slices.size(), 2u) << "/ and c";
  EXPECT_NE(person.screen().front().find("only those with 'RUN-c'"), std::string::npos);
  person.press({escape});
  EXPECT_EQ(person.rows().programs.size(), 26u);
  person.type("/zoo\n");
  EXPECT_EQ(person.rows().slices.size(), 3u);
  EXPECT_EQ(person.rows().programs.size(), 0u);
  person.type("/");
  for (int i = 0; i < 10; ++i) person.press({backspace});
  person.type("107\n");
  EXPECT_EQ(person.rows().programs.front()->client->slice, "h");
}

TEST(TopView, ASliceIsFoldedAndUnfolded) {
  Person person;
  person.press({tab});
  while (person.view.slice != "zoo") person.press({down});
  person.type(" ");
  EXPECT_EQ(person.rows().slices.back().label, "  zoo +");
  person.type(" ");
  EXPECT_EQ(person.rows().slices.back().label, "    two");
}

TEST(TopView, ProgramsAreSortedTheGreatestFirst) {
  Person person;
  person.type("oo");
  EXPECT_EQ(person.view.order, TopView::Order::granted);
  EXPECT_EQ(person.rows().programs.front()->client->pid, 125);
  person.type("ooo");
  EXPECT_EQ(person.rows().programs.front()->client->pid, 100);
}

TEST(TopView, ToEndAProgramIsAskedFirst) {
  Person person;
  EXPECT_EQ(person.type("k"), TopRequest{}) << "nothing is chosen";
  EXPECT_NE(person.view.note, "");
  person.press({down});
  EXPECT_EQ(person.type("k"), TopRequest{});
  EXPECT_EQ(person.screen().front(), "end program 100 in a? y, or any other key");
  EXPECT_EQ(person.type("q"), TopRequest{}) << "it is an answer: no";
  person.type("k");
  EXPECT_EQ(person.type("y"), (TopRequest{TopRequest::Kind::kill_program, 100, "", ""}));
  person.press({tab});
  person.type("k");
  EXPECT_EQ(person.type("y"), (TopRequest{TopRequest::Kind::kill_slice, 0, "/", ""}));
}

TEST(TopView, AQuestionNeverLeavesTheScreen) {
  Person person;
  const std::string path = "a-slice-with-a-long-name/" + std::string(100, 'x');
  for (ipc::Slice& slice : person.now.slices)
    if (slice.path == "a") slice.path = path;
  person.now.clients[0].slice = path;
  person.model = make_top_model(nullptr, person.now);
  person.press({tab});
  person.press({down});
  ASSERT_EQ(person.view.slice, path);
  person.type("k");
  for (std::size_t height = 1; height < 30; ++height)
    for (std::size_t width = 10; width < 100; ++width) {
      const std::string first = person.screen(width, height).at(0);
      ASSERT_TRUE(first.starts_with("end ")) << first;
      ASSERT_NE(first.find("? y"), std::string::npos) << first;
      ASSERT_LE(display_width(first), width);
    }
  EXPECT_TRUE(person.screen(80)[0].starts_with("end all programs in and below a-slice")) << person.screen(80)[0];
  EXPECT_TRUE(person.screen(80)[0].ends_with("~? y, or any other key")) << person.screen(80)[0];
  person.press({escape});
  person.type("emax=40 weight=50 reserve=13");
  for (std::size_t width = 20; width < 100; ++width) {
    const std::string first = person.screen(width, 1).at(0);
    ASSERT_TRUE(first.starts_with("set a-")) << first;
    ASSERT_TRUE(first.ends_with("=13_")) << "what was typed last: " << first;
    ASSERT_LE(display_width(first), width);
  }
}

TEST(TopView, WhoIsGoneMeanwhileIsNotEnded) {
  Person person;
  person.press({down});
  person.type("k");
  person.now.clients.erase(person.now.clients.begin());
  person.model = make_top_model(nullptr, person.now);
  EXPECT_EQ(person.screen().front(), "it is gone");
  EXPECT_EQ(person.type("y"), TopRequest{});
}

TEST(TopView, SettingsAreTyped) {
  Person person;
  person.press({down});
  person.press({down});
  EXPECT_EQ(person.type("emax=40"), TopRequest{});
  EXPECT_EQ(person.screen().front(), "set b (max=40 weight=50 ...): max=40_");
  EXPECT_EQ(person.type("\n"), (TopRequest{TopRequest::Kind::set, 0, "b", "max=40"}));
  person.type("ex");
  person.press({escape});
  EXPECT_EQ(person.type("e\n"), TopRequest{}) << "what was typed is forgotten";
}

TEST(TopView, HelpFitsAndAnyKeyGoesBack) {
  Person person;
  person.type("?");
  EXPECT_EQ(person.screen().front(), "gpuctl top: keys");
  for (std::size_t height = 1; height < 24; ++height) EXPECT_LE(person.screen(20, height).size(), height);
  person.type("q");
  EXPECT_EQ(person.view.asking, TopView::Asking::nothing);
}

TEST(TopView, WhatSlicesHadLatelyIsDrawn) {
  Person person;
  for (int i = 0; i < 100; ++i) remember(person.view, person.now);
  EXPECT_EQ(person.view.history.at("z").size(), 60u);
  Lines lines = person.screen(120);
  EXPECT_NE(lines[3].find("LATELY"), std::string::npos) << lines[3];
  lines = person.screen(120, 100);
  EXPECT_TRUE(std::ranges::any_of(lines, [](const std::string& line) { return line.ends_with("▃▃▃▃▃▃▃▃"); }))
      << "26 of 100 SMs";
  person.now.slices.resize(1);
  remember(person.view, person.now);
  EXPECT_EQ(person.view.history.size(), 1u);
}

/// A snapshot for each p99, in us, of the slice "a"; 0: nothing was counted.
void remember_p99(Person& person, const std::vector<double>& p99) {
  for (const double us : p99) {
    person.now.slices[1].latencies.clear();
    if (us > 0) person.now.slices[1].latencies = {{"bursts", 10, 1, us, us, us}};
    remember(person.view, person.now);
  }
}

/// The row of the slice "a" where all columns fit.
std::string row_of_a(const Person& person, bool utf8 = true) {
  for (const std::string& line : render_top(nullptr, person.now, {140, 100, false, utf8}, person.view))
    if (line.starts_with("  a ")) return line;
  return {};
}

TEST(TopView, TheP99OfSlicesIsDrawnByItsLogarithm) {
  Person person;
  remember_p99(person, {100, 0, 800, 6400, 100, 12800, 200, 400});
  EXPECT_TRUE(row_of_a(person).ends_with("  ▁ ▄▇▁█▂▃")) << row_of_a(person);
  EXPECT_TRUE(row_of_a(person, false).ends_with("  . =#.@:-")) << row_of_a(person, false);
  EXPECT_NE(person.screen(140)[3].find("P99  P99 LATELY"), std::string::npos) << person.screen(140)[3];
}

TEST(TopView, AP99ThatHardlyChangesIsNotDrawnAsAGreatChange) {
  Person person;
  remember_p99(person, {1000, 1060, 1000, 1000, 1000, 1000, 1000, 1060});
  EXPECT_TRUE(row_of_a(person).ends_with("  ▁▂▁▁▁▁▁▂")) << row_of_a(person);
  person.view.history.clear();
  remember_p99(person, {1000});
  EXPECT_TRUE(row_of_a(person).ends_with("  ▁")) << row_of_a(person);
}

TEST(TopView, WhereNoP99IsKnownNoneIsDrawn) {
  Person person;
  remember_p99(person, {0, 0});
  EXPECT_EQ(person.screen(140)[3].find("P99"), std::string::npos) << person.screen(140)[3];
}

TEST(TopView, SmsAreDrawnWithoutUtf8Too) {
  Person person;
  for (int i = 0; i < 8; ++i) remember(person.view, person.now);
  const Lines lines = render_top(nullptr, person.now, {140, 100, false, false}, person.view);
  EXPECT_TRUE(std::ranges::any_of(lines, [](const std::string& line) { return line.ends_with("  --------"); }))
      << "26 of 100 SMs";
}

TEST(TopView, ANarrowTerminalShowsWhatSlicesHadAfterAKey) {
  Person person;
  remember_p99(person, {100, 200});
  const std::string usual = person.screen()[3];
  EXPECT_EQ(usual.find("LATELY"), std::string::npos) << usual;
  EXPECT_NE(usual.find("WEIGHT  PRIORITY  POLICY"), std::string::npos) << usual;
  person.type("l");
  EXPECT_EQ(person.screen()[3], "SLICE  RESERVE  MAX  GRANTED  DEMAND  CLIENTS  LATELY     P99  P99 LATELY");
  person.type("l");
  EXPECT_EQ(person.screen()[3], usual);
}

TEST(TopView, EveryKeyInEveryStateFitsTheWindow) {
  Person person;
  for (const Key& key : {Key{down},
                         {tab},
                         {down},
                         {character, 'k'},
                         {escape},
                         {character, 'e'},
                         {character, 'm'},
                         {enter},
                         {character, '/'},
                         {character, 'z'},
                         {enter},
                         {end},
                         {character, 'o'},
                         {character, 'l'},
                         {character, '?'}}) {
    person.press(key);
    for (const std::size_t width : {1u, 10u, 40u, 80u, 200u})
      for (const std::size_t height : {1u, 3u, 8u, 24u, 100u}) ASSERT_LE(person.screen(width, height).size(), height);
  }
}

}  // namespace
}  // namespace gpuctl::cli::top_view_test
