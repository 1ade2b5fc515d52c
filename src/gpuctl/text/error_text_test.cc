#include "gpuctl/text/error_text.h"

#include <gtest/gtest.h>

#include "ipc/interface.h"

namespace gpuctl::cli {
namespace {

std::string text(const char* name, boost::json::object parameters) {
  return error_text(ipc::Reply{std::move(parameters), false, name});
}

TEST(ErrorText, KnownErrorsAreSentences) {
  EXPECT_EQ(text("io.gpuctl.NoSuchSlice", {{"path", "ls"}}), "slice 'ls' does not exist");
  EXPECT_EQ(text("io.gpuctl.SliceExists", {{"path", "ls"}}), "slice 'ls' exists already");
  EXPECT_EQ(text("io.gpuctl.SliceBusy", {{"path", "ls"}, {"clients", 1}, {"children", 2}}),
            "slice 'ls' is in use: it has 1 running program and 2 child slices");
  EXPECT_EQ(text("io.gpuctl.SliceBusy", {{"path", "ls"}, {"clients", 0}, {"children", 1}}),
            "slice 'ls' is in use: it has 1 child slice");
  EXPECT_EQ(text("io.gpuctl.SliceBusy",
                 {{"path", "ls"}, {"clients", 2}, {"children", 0}, {"programs", {"7 ./a in ls", "8 in ls/x"}}}),
            "slice 'ls' is in use: it has 2 running programs: 7 ./a in ls, 8 in ls/x");
  EXPECT_EQ(text("io.gpuctl.InvalidValue", {{"field", "max"}, {"reason", "must be at least 1"}}),
            "max: must be at least 1");
  EXPECT_EQ(text("io.gpuctl.InvalidValue", {{"field", "path"}, {"reason", "at most 8 levels"}}),
            "slice name: at most 8 levels");
  EXPECT_EQ(text("io.gpuctl.ReserveDoesNotFit", {{"path", "ls"}, {"asked", 200}, {"available", 124}}),
            "reserve: 'ls' asks for 200 SMs and its parent can give 124");
  EXPECT_EQ(text("io.gpuctl.PermissionDenied", {{"path", "ls"}}),
            "permission denied for slice 'ls': root may do that, or who owns a slice above it");
  EXPECT_EQ(text("io.gpuctl.PermissionDenied", {{"path", "/"}, {"uid", 1000}}),
            "permission denied: user 1000 is asked for, which root alone may");
  EXPECT_EQ(text("io.gpuctl.NoGpu", {{"reason", "none"}}), "gpuctld has no GPU to manage: none");
  EXPECT_EQ(text("io.gpuctl.NoSlice", {{"path", "x"}}), "there is no slice 'x', or you may not run programs in it");
  EXPECT_EQ(text("io.gpuctl.NoSlice", {}),
            "no slice is named, and no slice has a setting join for you; give one: --slice NAME");
  EXPECT_EQ(text("io.gpuctl.NoSuchClient", {{"pid", 7}}), "process 7 is not attached to a slice");
  EXPECT_EQ(text("org.varlink.service.MethodNotFound", {{"method", "io.gpuctl.X"}}),
            "the service does not know the method 'io.gpuctl.X'");
  EXPECT_EQ(text("org.varlink.service.InvalidParameter", {{"parameter", "pid"}}),
            "parameter 'pid' is missing or not valid");
}

TEST(ErrorText, UnknownOrIllFormedErrorsShowWhatThereIs) {
  EXPECT_EQ(text("org.example.Odd", {{"x", 1}}), R"(org.example.Odd {"x":1})");
  EXPECT_EQ(text("io.gpuctl.NoSuchSlice", {{"path", 1}}), R"(io.gpuctl.NoSuchSlice {"path":1})");
  EXPECT_EQ(text("io.gpuctl.Newer", {}), "io.gpuctl.Newer {}");
}

TEST(ErrorText, StaysOneLine) {
  EXPECT_EQ(text("io.gpuctl.NoSuchSlice", {{"path", "a\nb\x1b[2J"}}), "slice 'a b [2J' does not exist");
}

}  // namespace
}  // namespace gpuctl::cli
