#include "ipc/message.h"

#include <gtest/gtest.h>

#include <string>

namespace gpuctl::ipc::message_test {
namespace {

std::string without_nul(std::string frame) {
  EXPECT_EQ(frame.back(), '\0');
  frame.pop_back();
  EXPECT_EQ(frame.find('\0'), std::string::npos);
  return frame;
}

TEST(Message, CallGoesRoundTrip) {
  Call call{"io.gpuctl.Monitor", {{"interval_ms", 500}}, true, false};
  const Result<Call> back = decode_call(without_nul(encode(call)));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->method, call.method);
  EXPECT_EQ(back->parameters, call.parameters);
  EXPECT_TRUE(back->more);
  EXPECT_FALSE(back->oneway);
  EXPECT_EQ(back->interface(), "io.gpuctl");
  EXPECT_EQ(back->member(), "Monitor");
}

TEST(Message, ReplyGoesRoundTrip) {
  const Reply reply{{{"path", "ls\0x"}}, true, "io.gpuctl.NoSuchSlice"};
  const Result<Reply> back = decode_reply(without_nul(encode(reply)));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->parameters, reply.parameters);
  EXPECT_TRUE(back->continues);
  EXPECT_EQ(back->error, reply.error);
}

TEST(Message, TextOnTheWire) {
  EXPECT_EQ(without_nul(encode(Call{"a.b", {}, false, false})), R"({"method":"a.b"})");
  EXPECT_EQ(without_nul(encode(Call{"a.b", {{"x", "q\"\n"}}, false, true})),
            R"({"method":"a.b","parameters":{"x":"q\"\n"},"oneway":true})");
  EXPECT_EQ(without_nul(encode(Reply{})), R"({"parameters":{}})");
}

TEST(Message, AbsentAndNullParameters) {
  EXPECT_TRUE(decode_call(R"({"method":"a.b"})")->parameters.empty());
  EXPECT_TRUE(decode_call(R"({"method":"a.b","parameters":null})")->parameters.empty());
  EXPECT_TRUE(decode_reply("{}")->parameters.empty());
}

struct Bad {
  std::string text;
  std::string in_message;
};

class CallRefused : public testing::TestWithParam<Bad> {};

TEST_P(CallRefused, SaysWhy) {
  const Result<Call> call = decode_call(GetParam().text);
  ASSERT_FALSE(call);
  EXPECT_NE(call.error().message.find(GetParam().in_message), std::string::npos) << call.error().message;
  EXPECT_EQ(call.error().message.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(All, CallRefused,
                         testing::Values(Bad{"", "not valid JSON"}, Bad{"garbage", "not valid JSON"},
                                         Bad{"{", "not valid JSON"}, Bad{"{} {}", "not valid JSON"},
                                         Bad{"\xff\xfe\x01", "not valid JSON"},
                                         Bad{"{\"method\":\"a.b\xc0\xaf\"}", "not valid JSON"},
                                         Bad{"[]", "not a JSON object"}, Bad{"7", "not a JSON object"},
                                         Bad{"{}", "'method' is missing"},
                                         Bad{R"({"method":1})", "'method' must be a string"},
                                         Bad{R"({"method":"CreateSlice"})", "INTERFACE.METHOD"},
                                         Bad{R"({"method":"a."})", "INTERFACE"}, Bad{R"({"method":".a"})", "INTERFACE"},
                                         Bad{R"({"method":"a.b","parameters":[]})", "'parameters' must be an object"},
                                         Bad{R"({"method":"a.b","more":1})", "'more' must be a boolean"},
                                         Bad{R"({"method":"a.b","oneway":"yes"})", "'oneway' must be a boolean"},
                                         Bad{R"({"method":"a.b","upgrade":true})", "'upgrade' is not supported"}));

TEST(Message, AMethodThatIsNoneIsQuotedInOneLine) {
  const auto call = decode_call(R"({"method":"no\u0000thing\nto see"})");
  ASSERT_FALSE(call);
  EXPECT_EQ(call.error().message, "field 'method' must be INTERFACE.METHOD, not 'no?thing?to see'");
  // A hundred bytes of it, and no half of a character.
  const auto cut = decode_call("{\"method\":\"" + std::string(99, 'a') + "\xc3\xa4 and more\"}");
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().message,
            "field 'method' must be INTERFACE.METHOD, not '" + std::string(99, 'a') + "\xef\xbf\xbd'");
}

TEST(Message, DeepNestingIsRefusedNotFollowed) {
  for (const std::size_t depth : {40u, 100000u}) {
    const std::string text =
        R"({"method":"a.b","parameters":{"x":)" + std::string(depth, '[') + std::string(depth, ']') + "}}";
    const Result<Call> call = decode_call(text);
    ASSERT_FALSE(call);
    EXPECT_NE(call.error().message.find("not valid JSON"), std::string::npos);
  }
}

TEST(Message, ACallOfTooManyValuesIsRefusedBeforeItIsRead) {
  const auto list = [](std::size_t count, const std::string& item) {
    std::string text = R"({"method":"a.b","parameters":{"x":[)";
    for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + item;
    return text + "]}}";
  };
  EXPECT_TRUE(decode_call(list(kMaxCallValues - 20, "0")));
  for (const std::string item : {"0", "[]", "{}", R"({"k":1})", R"("\"")"}) {
    const Result<Call> call = decode_call(list(kMaxCallValues + 1, item));
    ASSERT_FALSE(call);
    EXPECT_EQ(call.error().message, "message holds more than 131072 values") << item;
  }
  EXPECT_TRUE(decode_call(list(1, '"' + std::string(kMaxCallValues + 1, ',') + R"(\"")"))) << "text is one value";
}

/// A peer chooses the keys, and could choose those that fall together in a table.
TEST(Message, AnObjectOfManyMembersIsRefusedBeforeItIsRead) {
  const auto object = [](std::size_t members) {
    std::string text = "{";
    for (std::size_t i = 0; i < members; ++i) text += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":[\"a:b\"]";
    return text + "}";
  };
  const auto call = [](const std::string& parameters) {
    return decode_call(R"({"method":"a.b","parameters":)" + parameters + "}");
  };
  EXPECT_TRUE(call(object(kMaxCallMembers)));
  EXPECT_TRUE(call("{\"x\":[" + object(kMaxCallMembers) + "," + object(kMaxCallMembers) + "]}"));
  for (const std::string& text : {object(kMaxCallMembers + 1), "{\"x\":[{}," + object(kMaxCallMembers + 1) + "]}"}) {
    const Result<Call> refused = call(text);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, "message holds an object of more than 32 members");
  }
}

TEST(Message, NumbersThatCannotBeWrittenAreRefused) {
  for (const char* parameters : {R"({"a":1e400})", R"({"a":[0,{"b":-1e99999}]})"}) {
    const auto call = decode_call(std::string(R"({"method":"a.B","parameters":)") + parameters + "}");
    ASSERT_FALSE(call);
    EXPECT_EQ(call.error().message, "message holds a number that is too large");
  }
  EXPECT_TRUE(decode_call(R"({"method":"a.B","parameters":{"a":1e300}})"));
}

TEST(Message, EveryPrefixOfACallIsRefused) {
  const std::string text = R"({"method":"io.gpuctl.SetSlice","parameters":{"path":"ls","settings":{"max":4}}})";
  for (std::size_t n = 0; n < text.size(); ++n) EXPECT_FALSE(decode_call(text.substr(0, n))) << n;
  EXPECT_TRUE(decode_call(text));
}

TEST(Message, BadRepliesAreRefused) {
  EXPECT_FALSE(decode_reply(R"({"error":5})"));
  EXPECT_FALSE(decode_reply(R"({"continues":"no"})"));
  EXPECT_FALSE(decode_reply(R"({"parameters":"x"})"));
  EXPECT_FALSE(decode_reply("null"));
}

TEST(Utf8, ValidTextIsUntouched) {
  for (const std::string text : {"", "plain", "\x7f", "\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xef\xbf\xbf",
                                 "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_EQ(to_utf8(text), text);
}

TEST(Utf8, InvalidBytesAreReplaced) {
  const std::string mark = "\xef\xbf\xbd";
  EXPECT_EQ(to_utf8("a\xff"
                    "b"),
            "a" + mark + "b");
  EXPECT_EQ(to_utf8("\xc0\xaf"), mark + mark);             // overlong '/'
  EXPECT_EQ(to_utf8("\xed\xa0\x80"), mark + mark + mark);  // a surrogate
  EXPECT_EQ(to_utf8("\xf4\x90\x80\x80").size(), 4 * 3u);   // beyond U+10FFFF
  EXPECT_EQ(to_utf8("x\xe2\x82"), "x" + mark + mark);      // cut off
}

}  // namespace
}  // namespace gpuctl::ipc::message_test
