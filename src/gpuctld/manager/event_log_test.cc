#include "gpuctld/manager/event_log.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

#include "gpuctld/manager/event_kinds.h"
#include "ipc/message.h"
#include "sched/policy.h"

namespace gpuctl::daemon {
namespace {

const EventLog::Wanted kAll = [](const ipc::Event&) { return true; };

ipc::Event event(const std::string& slice, std::string text = {}) {
  return {.kind = "changed", .slice = slice, .command = {}, .text = std::move(text)};
}

std::vector<std::int64_t> numbers(const EventLog::Part& part) {
  std::vector<std::int64_t> all;
  for (const ipc::Event& one : part.events) all.push_back(one.number);
  return all;
}

/// Readers are told apart by where they are; nothing of them is looked at.
Session& reader(int& place) {
  return reinterpret_cast<Session&>(place);
}

TEST(EventLog, TellsWhatComesAfterANumber) {
  EventLog log;
  EXPECT_TRUE(log.after(0, kAll).events.empty());
  for (int i = 0; i < 5; ++i) log.add(event(i % 2 == 0 ? "a" : "b"));
  EXPECT_EQ(numbers(log.after(0, kAll)), (std::vector<std::int64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(numbers(log.after(3, kAll)), (std::vector<std::int64_t>{4, 5}));
  const auto of_b = log.after(0, [](const ipc::Event& one) { return one.slice == "b"; });
  EXPECT_EQ(numbers(of_b), (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(of_b.last, 5u);
  EXPECT_FALSE(of_b.more);
  EXPECT_TRUE(log.after(5, kAll).events.empty());
  EXPECT_TRUE(log.after(1'000'000, kAll).events.empty()) << "a number of an earlier daemon";
  EXPECT_EQ(log.after(1'000'000, kAll).last, 5u);
}

/// A slice that meets its target, misses it, meets it ... is its owner's; a program is moved by somebody else.
TEST(EventLog, WhoCausesManyLosesThoseWhoeverTheyAreAbout) {
  EventLog log;
  log.add(event("nobody's"));
  ipc::Event of_program = event("moved");
  of_program.uid = 7;
  log.add(of_program);
  for (std::size_t i = 0; i < 2 * EventLog::kMostKept; ++i) log.add(i % 2 == 0 ? event("target") : of_program, 1000);
  EXPECT_EQ(log.after(0, [](const ipc::Event& one) { return one.slice == "nobody's"; }).events.size(), 1u);
  EXPECT_EQ(log.after(0, kAll).events.at(1).number, 2) << "the one that nobody else caused";
}

TEST(EventLog, ASlowReaderIsToldHowManyItMissed) {
  EventLog log;
  int place = 0;
  EXPECT_TRUE(log.begin(reader(place), 0, kAll).events.empty());
  for (std::size_t i = 0; i < EventLog::kMostKept + 10; ++i) log.add(event("a"));
  EventLog::Part part = log.go_on(reader(place), kAll);
  EXPECT_EQ(part.lost, 10u);
  EXPECT_EQ(part.events.front().number, 11);
  EXPECT_EQ(part.events.size(), EventLog::kMostInReply);
  EXPECT_TRUE(part.more);
  std::size_t had = part.events.size();
  while (part.more) {
    part = log.go_on(reader(place), kAll);
    EXPECT_EQ(part.lost, 0u);
    had += part.events.size();
  }
  EXPECT_EQ(had, EventLog::kMostKept);
  EXPECT_EQ(part.last, EventLog::kMostKept + 10);
  EXPECT_TRUE(log.go_on(reader(place), kAll).events.empty());
}

TEST(EventLog, WhoMakesManyPushesOutNoEventOfOthers) {
  EventLog log;
  const auto of_user = [](std::int64_t uid) {
    ipc::Event one = event("a");
    one.uid = uid;
    return one;
  };
  log.add(of_user(1));
  log.add(event("b"));  // nobody's
  for (std::size_t i = 0; i < 3 * EventLog::kMostKept; ++i) log.add(of_user(2));
  log.add(of_user(1));
  const auto not_of_2 = log.after(0, [](const ipc::Event& one) { return one.uid != 2; });
  EXPECT_EQ(numbers(not_of_2), (std::vector<std::int64_t>{1, 2, 3 * EventLog::kMostKept + 3}));
  EXPECT_EQ(not_of_2.lost, 2 * EventLog::kMostKept + 3) << "those of 2";
  int place = 0;
  EventLog::Part part = log.begin(reader(place), 0, kAll);
  std::uint64_t had = part.events.size(), lost = part.lost;
  while (part.more) {
    part = log.go_on(reader(place), kAll);
    had += part.events.size(), lost += part.lost;
  }
  EXPECT_EQ(had, EventLog::kMostKept);
  EXPECT_EQ(had + lost, 3 * EventLog::kMostKept + 3);
}

TEST(EventLog, WhatIsKeptIsBoundedInBytesToo) {
  EventLog log;
  const std::string name(60'000, 'x');
  for (int i = 0; i < 1000; ++i) log.add(event(name, std::string(5000, 'y')));
  const EventLog::Part part = log.after(0, kAll);
  EXPECT_LE(part.events.size() * name.size(), EventLog::kMostKeptBytes);
  EXPECT_FALSE(part.events.empty());
  EXPECT_EQ(part.events.back().number, 1000);
  EXPECT_EQ(part.events.back().text.size(), EventLog::kMostText);
}

/// One that half a character is in could not be read, nor any reply with it.
TEST(EventLog, CutsNoCharacter) {
  EventLog log;
  for (std::size_t before = 0; before < 4; ++before) {
    std::string text(before, 'x');
    while (text.size() <= EventLog::kMostText) text += "\U0001f600";
    log.add(event("a", text));
  }
  for (const ipc::Event& one : log.after(0, kAll).events) {
    EXPECT_EQ(ipc::to_utf8(one.text), one.text);
    EXPECT_GT(one.text.size(), EventLog::kMostText - 4);
  }
}

TEST(EventLog, KnowsWhoFollows) {
  EventLog log;
  int one = 0, other = 0;
  EXPECT_FALSE(log.followed());
  log.begin(reader(one), 0, kAll);
  log.begin(reader(other), 0, kAll);
  EXPECT_EQ(log.readers().size(), 2u);
  log.forget(reader(one));
  EXPECT_EQ(log.readers(), std::vector<Session*>{&reader(other)});
}

TEST(EventKinds, EachHasAMessageIdOfItsOwn) {
  std::set<std::string_view> names, ids;
  for (const EventKind& kind : kEventKinds) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
    EXPECT_TRUE(ids.insert(kind.message_id).second) << kind.name;
    EXPECT_EQ(kind.message_id.size(), 32u) << kind.name;
    EXPECT_EQ(kind.message_id.find_first_not_of("0123456789abcdef"), std::string_view::npos) << kind.name;
  }
}

std::string text_of(const char* file) {
  std::ifstream stream(file);
  EXPECT_TRUE(stream) << file;
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST(EventKinds, AreInTheCatalogOfTheJournalAndOnThePage) {
  const std::string catalog = text_of(GPUCTL_CATALOG), page = text_of(GPUCTL_EVENTS_PAGE);
  for (const EventKind& kind : kEventKinds) {
    const std::string name(kind.name), id(kind.message_id);
    EXPECT_NE(catalog.find("\n-- " + id + "\nSubject: "), catalog.npos) << name;
    const std::size_t row = page.find("\n| `" + name + "` | ");
    ASSERT_NE(row, page.npos) << name;
    EXPECT_NE(page.substr(row + 1, page.find('\n', row + 1) - row).find("| `" + id + "` |"), std::string::npos) << name;
  }
}

TEST(EventKinds, SayWhatChangedAndOfANewSliceWhatIsNotTheDefault) {
  sched::Slice before, after;
  after.policy = before.policy = &sched::policies().front();
  EXPECT_EQ(change_text(nullptr, after), "");
  EXPECT_EQ(change_text(&before, after), "");
  after.max = sched::CapSM{40};
  after.weight = 50;
  EXPECT_EQ(change_text(nullptr, after), "max 40, weight 50");
  EXPECT_EQ(change_text(&before, after), "max none -> 40, weight 100 -> 50");
  after = before;
  after.memory_max = 3ull << 29;
  EXPECT_EQ(change_text(&before, after), "memory_max none -> 1536M");
  after = before;
  after.owner_gid = 44;
  EXPECT_EQ(change_text(&before, after), "owner_gid none -> 44");
  EXPECT_EQ(change_text(&after, before), "owner_gid 44 -> none");
}

TEST(EventKinds, SayWhoDidIt) {
  EXPECT_EQ(user_words(0), "root");
  EXPECT_EQ(user_words(1000), "user 1000");
}

TEST(EventKinds, CountsOfAProgramThatCountsTooMuchStayNumbers) {
  std::vector<ipc::ClientUsage> usage(2);
  usage[0].launches = usage[1].launches = INT64_MAX;
  usage[1].evictions = 3;
  EXPECT_EQ(counts_text(usage), "launches 9223372036854775807, evictions 3");
}

}  // namespace
}  // namespace gpuctl::daemon
