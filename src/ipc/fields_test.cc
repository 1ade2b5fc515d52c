#include "ipc/fields.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace gpuctl::ipc {
namespace {

boost::json::object parse(const char* text) {
  return boost::json::parse(text).as_object();
}

TEST(Fields, ReadsEveryType) {
  const auto object = parse(R"({"t":"x","i":-3,"n":2.5,"m":2,"b":true,"ts":["a","b"],"is":[1,2],"o":{"i":1}})");
  Fields fields(object);
  EXPECT_EQ(fields.text("t"), "x");
  EXPECT_EQ(fields.integer("i"), -3);
  EXPECT_EQ(fields.number("n"), 2.5);
  EXPECT_EQ(fields.number("m"), 2.0);
  EXPECT_TRUE(fields.boolean("b"));
  EXPECT_EQ(fields.texts("ts"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(fields.integers("is"), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(fields.object("o").integer("i"), 1);
  fields.refuse_unknown();
  EXPECT_TRUE(fields.ok()) << fields.error().message;
}

TEST(Fields, AbsentAndNullAreTheSameForNullable) {
  const auto object = parse(R"({"n":null,"i":4,"s":"x","b":false})");
  Fields fields(object);
  EXPECT_FALSE(fields.maybe_integer("n"));
  EXPECT_FALSE(fields.maybe_text("absent"));
  EXPECT_EQ(fields.maybe_integer("i"), 4);
  EXPECT_EQ(fields.maybe_text("s"), "x");
  EXPECT_EQ(fields.maybe_boolean("b"), false);
  EXPECT_TRUE(fields.ok());
}

struct Bad {
  const char* json;
  void (*get)(Fields&);
  const char* message;
};

class FieldsRefuse : public testing::TestWithParam<Bad> {};

TEST_P(FieldsRefuse, NamesTheField) {
  const auto object = parse(GetParam().json);
  Fields fields(object);
  GetParam().get(fields);
  ASSERT_FALSE(fields.ok());
  EXPECT_EQ(fields.error().message, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    All, FieldsRefuse,
    testing::Values(
        Bad{"{}", [](Fields& f) { f.text("path"); }, "field 'path' is missing"},
        Bad{R"({"path":null})", [](Fields& f) { f.text("path"); }, "field 'path' is null"},
        Bad{R"({"path":3})", [](Fields& f) { f.text("path"); }, "field 'path' must be a string, not an integer"},
        Bad{R"({"n":"3"})", [](Fields& f) { f.integer("n"); }, "field 'n' must be an integer, not a string"},
        Bad{R"({"n":3.0})", [](Fields& f) { f.integer("n"); }, "field 'n' must be an integer, not a fraction"},
        Bad{R"({"n":9223372036854775808})", [](Fields& f) { f.integer("n"); },
            "field 'n' must be an integer, not an integer of more than 63 bits"},
        Bad{R"({"n":-1})", [](Fields& f) { f.integer("n", 0); }, "field 'n' is -1 and must be at least 0"},
        Bad{R"({"n":11})", [](Fields& f) { f.integer("n", 0, 10); }, "field 'n' is 11 and must be at most 10"},
        Bad{R"({"n":[]})", [](Fields& f) { f.maybe_integer("n"); }, "field 'n' must be an integer, not an array"},
        Bad{R"({"b":1})", [](Fields& f) { f.boolean("b"); }, "field 'b' must be a boolean, not an integer"},
        Bad{R"({"x":"1"})", [](Fields& f) { f.number("x"); }, "field 'x' must be a number, not a string"},
        Bad{R"({"l":{}})", [](Fields& f) { f.texts("l"); }, "field 'l' must be an array, not an object"},
        Bad{R"({"l":["a",1]})", [](Fields& f) { f.texts("l"); }, "field 'l[1]' must be a string, not an integer"},
        Bad{R"({"l":[1,true]})", [](Fields& f) { f.integers("l"); }, "field 'l[1]' must be an integer, not a boolean"},
        Bad{R"({"l":[1,0]})", [](Fields& f) { f.maybe_integers("l", 1, 9); }, "field 'l[1]' is 0 and must be 1 to 9"},
        Bad{R"({"l":1})", [](Fields& f) { f.maybe_integers("l", 1, 9); }, "field 'l' must be an array, not an integer"},
        Bad{R"({"o":[]})", [](Fields& f) { f.object("o").text("x"); }, "field 'o' must be an object, not an array"},
        Bad{R"({"o":{"p":{}}})", [](Fields& f) { f.object("o").object("p").text("x"); }, "field 'o.p.x' is missing"},
        Bad{R"({"l":[{"x":"a"},{}]})",
            [](Fields& f) {
              for (Fields& item : f.objects("l")) item.text("x");
            },
            "field 'l[1].x' is missing"},
        Bad{R"({"l":[{},2]})", [](Fields& f) { f.objects("l"); }, "field 'l[1]' must be an object, not an integer"},
        Bad{R"({"a":1,"resreve":2})",
            [](Fields& f) {
              f.integer("a");
              f.refuse_unknown();
            },
            "field 'resreve' is not known here"}));

TEST(Fields, WhatTheySayIsOneLineWhateverFieldsAreCalled) {
  boost::json::object object;
  object["a\nb\x7f"] = 1;
  Fields fields(object);
  fields.refuse_unknown();
  ASSERT_FALSE(fields.ok());
  EXPECT_EQ(fields.error().message.find("field 'a?b?'"), 0u) << fields.error().message;
}

TEST(Fields, TheFirstProblemIsKept) {
  const auto object = parse(R"({"a":1})");
  Fields fields(object);
  fields.text("a");
  fields.text("b");
  fields.complain("c", "is wrong too");
  EXPECT_EQ(fields.field(), "a");
  EXPECT_EQ(fields.reason(), "must be a string, not an integer");
}

}  // namespace
}  // namespace gpuctl::ipc
