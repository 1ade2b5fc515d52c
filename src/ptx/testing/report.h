// What the rewriter reports on an entry of a small module.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "ptx/rewrite.h"
#include "ptx/syntax/parser.h"

namespace gpuctl::ptx {

inline constexpr char kRegisters[] =
    ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<19>; .reg .f32 %f<9>; .reg .b64 %rd<19>; .shared .align 4 .b8 "
    "s[64];\n";

/// The report on an entry `k(.param .u64 out, .param .u32 n)` with this body. `before` comes before it in the module.
inline EntryReport report_on(const std::string& body, const std::string& before = "",
                             const std::string& target = "sm_90") {
  const std::string text = ".version 8.0\n.target " + target + "\n.address_size 64\n" + before +
                           ".visible .entry k(.param .u64 out, .param .u32 n)\n{\n" + kRegisters + body + "\n}\n";
  const auto rewritten = rewrite_text(text);
  EXPECT_TRUE(rewritten) << (rewritten ? "" : rewritten.error().message);
  if (!rewritten || rewritten->entries.empty()) return {};
  // The result is a module again, and nothing of the original is lost from it.
  const auto again = parse(rewritten->text);
  EXPECT_TRUE(again) << (again ? "" : again.error().message);
  return rewritten->entries.back();
}

/// The reason why the entry is opaque, or "persistent".
inline std::string reason_for(const std::string& body, const std::string& before = "",
                              const std::string& target = "sm_90") {
  const EntryReport report = report_on(body, before, target);
  return report.form == Form::kPersistent ? "persistent" : report.reason;
}

}  // namespace gpuctl::ptx
