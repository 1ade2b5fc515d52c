#include "ipc/framing.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpuctl::ipc::framing_test {
namespace {

using std::string_literals::operator""s;

std::vector<std::string> drain(MessageSplitter& splitter) {
  std::vector<std::string> messages;
  while (auto message = splitter.next()) messages.push_back(*message);
  return messages;
}

TEST(Framing, SeveralMessagesInOnePiece) {
  MessageSplitter splitter;
  ASSERT_TRUE(splitter.feed("one\0two\0\0thr"s));
  EXPECT_TRUE(splitter.has_complete());
  EXPECT_EQ(drain(splitter), (std::vector<std::string>{"one", "two", ""}));
  EXPECT_FALSE(splitter.has_complete());
  EXPECT_TRUE(splitter.mid_message());
  ASSERT_TRUE(splitter.feed("ee\0"s));
  EXPECT_EQ(drain(splitter), std::vector<std::string>{"three"});
  EXPECT_FALSE(splitter.mid_message());
}

TEST(Framing, SplitAtEveryByte) {
  const std::string stream = "{\"method\":\"a.b\"}\0{}\0xyz\0"s;
  for (std::size_t first = 0; first <= stream.size(); ++first)
    for (std::size_t second = first; second <= stream.size(); ++second) {
      MessageSplitter splitter;
      ASSERT_TRUE(splitter.feed(stream.substr(0, first)));
      ASSERT_TRUE(splitter.feed(stream.substr(first, second - first)));
      ASSERT_TRUE(splitter.feed(stream.substr(second)));
      ASSERT_EQ(drain(splitter), (std::vector<std::string>{"{\"method\":\"a.b\"}", "{}", "xyz"}));
    }
}

TEST(Framing, LimitCountsOneMessage) {
  MessageSplitter splitter(4);
  EXPECT_TRUE(splitter.feed("1234\0001234\00012"s));
  EXPECT_TRUE(splitter.feed("34"));
  EXPECT_FALSE(splitter.feed("5"));
  EXPECT_EQ(drain(splitter).size(), 2u);
}

TEST(Framing, TakesLittleMoreMemoryThanThereAreBytes) {
  MessageSplitter splitter;
  const std::string piece(16384, 'x');
  for (std::size_t sent = piece.size(); sent <= kMaxMessageBytes; sent += piece.size()) {
    ASSERT_TRUE(splitter.feed(piece));
    ASSERT_LE(splitter.memory(), sent + sent / 8 + 1);
  }
}

TEST(Framing, KeepsNoMemoryOfAMessageThatWasTaken) {
  MessageSplitter splitter;
  const std::string message(kMaxMessageBytes, 'x');
  ASSERT_TRUE(splitter.feed(message + "\0"s));
  ASSERT_TRUE(splitter.next());
  EXPECT_EQ(splitter.memory(), 0u);
  ASSERT_TRUE(splitter.feed(message + "\0abc"s));
  ASSERT_TRUE(splitter.next());
  EXPECT_LE(splitter.memory(), 64u) << "and three bytes of the next one";
}

TEST(Framing, CountsWhatIsNotTakenYet) {
  MessageSplitter splitter(100);
  ASSERT_TRUE(splitter.feed("1234\0ab\0xyz"s));
  EXPECT_EQ(splitter.buffered(), 11u);
  splitter.next();
  EXPECT_EQ(splitter.buffered(), 6u);
  splitter.limit(2);
  EXPECT_FALSE(splitter.feed("x"s)) << "too long for the new limit";
}

TEST(Framing, EmptyMessagesCount) {
  MessageSplitter splitter(100);
  ASSERT_TRUE(splitter.feed(std::string(1000, '\0')));
  EXPECT_EQ(splitter.buffered(), 1000u);
  EXPECT_EQ(drain(splitter).size(), 1000u);
  EXPECT_EQ(splitter.buffered(), 0u);
}

TEST(Framing, OversizeStaysBroken) {
  MessageSplitter splitter(4);
  const Result<void> fed = splitter.feed("12345\0ok\0"s);
  ASSERT_FALSE(fed);
  EXPECT_EQ(fed.error().message, "message longer than 4 bytes");
  EXPECT_FALSE(splitter.feed("ok\0"s));
  EXPECT_FALSE(splitter.next());
}

}  // namespace
}  // namespace gpuctl::ipc::framing_test
