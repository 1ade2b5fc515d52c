#include "libgpuslice/image/compile_job.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace gpuslice {
namespace {

CompileRequest some_request() {
  return {.ptx = ".version 8.0\n",
          .key = {1, 2, 3},
          .sm = 90,
          .max_registers = 40,
          .by_driver = false,
          .linker = "/a/linker"};
}

TEST(CompileJobTest, TheHelperReadsWhatIsAsked) {
  const auto job = CompileJob::create(some_request());
  ASSERT_TRUE(job) << job.error().message;
  const auto there = CompileJob::open(job->descriptor());
  ASSERT_TRUE(there) << there.error().message;
  const auto request = there->request();
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->ptx, some_request().ptx);
  EXPECT_EQ(request->key, some_request().key);
  EXPECT_EQ(request->sm, 90u);
  EXPECT_EQ(request->max_registers, 40);
  EXPECT_EQ(request->linker, "/a/linker");
}

TEST(CompileJobTest, TheProgramReadsTheAnswerWithoutADescriptor) {
  auto job = CompileJob::create(some_request());
  ASSERT_TRUE(job);
  auto there = CompileJob::open(job->descriptor());
  job->close_descriptor();
  EXPECT_FALSE(job->answered());
  EXPECT_FALSE(job->take_answer());
  there->answer({.code = "code", .kernels = {}, .stands_alone = true, .reason = {}});
  ASSERT_TRUE(job->answered());
  EXPECT_EQ(job->take_answer().value().code, "code");
}

TEST(CompileJobTest, AnAnswerThatIsTooLongSaysSo) {
  auto job = CompileJob::create(some_request());
  ASSERT_TRUE(job);
  job->answer({.code = std::string(64u << 20, 'x'), .kernels = {}, .reason = {}});
  EXPECT_EQ(job->take_answer().value().reason, "its machine code is too long");
}

TEST(CompileJobTest, OtherMemoryIsNoJob) {
  const int file = memfd_create("test", 0);
  ASSERT_GE(file, 0);
  EXPECT_FALSE(CompileJob::open(file));
  ASSERT_EQ(ftruncate(file, 65536), 0);
  EXPECT_FALSE(CompileJob::open(file));
  close(file);
  EXPECT_FALSE(CompileJob::open(file));
}

}  // namespace
}  // namespace gpuslice
