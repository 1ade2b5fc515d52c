#include <gtest/gtest.h>

#include <set>

#include "sched/policy.h"
#include "sched/temporal/job_policy.h"

namespace gpuctl::sched {
namespace {

TEST(JobPolicies, HaveDistinctNamesAndCanBeMadeWithTheirDefaults) {
  std::set<std::string_view> names;
  for (const Policy& row : policies()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.help.empty());
    std::string text(row.name);
    if (!row.options.empty()) text += ":" + std::string(row.options);
    for (char& c : text)
      if (c == ' ') c = ':';
    EXPECT_TRUE(make_job_policy(text)) << text;
    EXPECT_TRUE(make_job_policy(row.name)) << row.name;
  }
  for (const char* name : {"hpf", "ffs", "piv", "dprr", "sjf", "srt", "rr", "cfs", "frs", "sim"})
    EXPECT_NE(find_policy(name), nullptr) << name;
}

TEST(JobPolicies, RefuseWhatTheyDoNotUnderstand) {
  auto message = [](const char* text) { return make_job_policy(text).error().message; };
  EXPECT_NE(message("fifo").find("policy \"fifo\": unknown; one of share, srt"), std::string::npos);
  EXPECT_EQ(message("rr:epoch_ms=1"), "policy \"rr\": no option \"epoch_ms\"; it has quantum_ms");
  EXPECT_EQ(message("fcfs:epoch_ms=1"), "policy \"fcfs\": no option \"epoch_ms\"; it has none");
  EXPECT_EQ(message("rr:quantum_ms=0"),
            "policy \"rr\": option quantum_ms must be a number from 0.05 to 10000, not \"0\"");
  EXPECT_EQ(message("rr:quantum_ms=1x"),
            "policy \"rr\": option quantum_ms must be a number from 0.05 to 10000, not \"1x\"");
  EXPECT_EQ(message("hpf:spatial=2"), "policy \"hpf\": option spatial must be a number from 0 to 1, not \"2\"");
  EXPECT_TRUE(make_job_policy("hpf:spatial:protect_ms=20"));
  EXPECT_TRUE(make_job_policy("hpf:extra=0"));
  EXPECT_EQ(message("hpf:extra=2"), "policy \"hpf\": option extra needs spatial");
  EXPECT_EQ(message("hpf:spatial:extra=2.5"), "policy \"hpf\": option extra must be a whole number");
  EXPECT_EQ(message("hpf:spatial=0.5"), "policy \"hpf\": option spatial must be a whole number");
  EXPECT_EQ(message("sjf:to_end=0.1"), "policy \"sjf\": option to_end must be a whole number");
  EXPECT_EQ(message("hpf:spatial:extra=-1"),
            "policy \"hpf\": option extra must be a number from 0 to 10000, not \"-1\"");
}

}  // namespace
}  // namespace gpuctl::sched
