// A command line against a daemon of the test's own.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gpuctl/line/command_line.h"
#include "gpuctl/testing/fake_daemon.h"
#include "ipc/codec.h"

namespace gpuctl::cli {

struct Ran {
  int status;
  std::string out;
  std::string err;
};

inline Ran run(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  const int status = run_command_line(arguments, out, err);
  return {status, out.str(), err.str()};
}

/// The daemon has the slices ls and batch, and knows some methods.
class CommandLine : public testing::Test {
 protected:
  CommandLine() {
    ipc::Slice ls;
    ls.path = "ls";
    ls.reserve = 8;
    ipc::Slice batch;
    batch.path = "batch";
    batch.max = 100;
    ipc::Slice root;
    root.path = "/";
    slices_ = {root, ls, batch};
    daemon_.on("ListSlices", {{"slices", to_json(slices_)}});
    daemon_.on("CreateSlice", {{"slice", to_json(ls)}});
    daemon_.on("SetSlice", {{"slice", to_json(ls)}});
    daemon_.on("DeleteSlice", boost::json::object());
  }

  Ran gpuctl(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--socket", daemon_.socket()});
    return run(arguments);
  }
  /// Expects a failure with exactly this one line.
  void expect_error(std::vector<std::string> arguments, int status, const std::string& line) {
    const Ran ran = gpuctl(std::move(arguments));
    EXPECT_EQ(ran.err, "gpuctl: " + line + "\n");
    EXPECT_EQ(ran.status, status);
    EXPECT_EQ(ran.out, "");
  }
  bool nothing_asked() { return daemon_.calls().empty(); }

  FakeDaemon daemon_;
  std::vector<ipc::Slice> slices_;
};

}  // namespace gpuctl::cli
