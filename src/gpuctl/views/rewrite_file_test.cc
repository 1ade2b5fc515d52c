#include "gpuctl/views/rewrite_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include "ptx/persistent_abi.h"
#include "ptx/syntax/parser.h"
#include "ptx/testing/test_files.h"

namespace gpuctl::cli {
namespace {

namespace fs = std::filesystem;
using std::string_literals::operator""s;

class RewriteFile : public testing::Test {
 protected:
  RewriteFile() : directory_(fs::temp_directory_path() / ("gpuctl-rewrite-" + std::to_string(::getpid()))) {
    fs::create_directory(directory_);
  }
  ~RewriteFile() override { fs::remove_all(directory_); }

  std::string in_scratch(const std::string& name) const { return (directory_ / name).string(); }
  std::string file(const std::string& name, const std::string& bytes) const {
    std::ofstream(in_scratch(name), std::ios::binary) << bytes;
    return in_scratch(name);
  }
  std::string golden_fatbin(const std::string& name) const {
    const std::vector<std::byte> bytes = ptx::golden_hex("fatbin/" + name + ".hex");
    return file(name + ".fatbin", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  static std::string content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static std::string error_of(const std::string& path) {
    const Result<RewrittenFile> result = rewrite_file(path);
    return result ? "no error" : result.error().message;
  }

  const fs::path directory_;
};

constexpr char kTwoKernels[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry plain(.param .u32 n)\n{\n  ret;\n}\n"
    ".visible .entry cooperative(.param .u32 n)\n{\n  .reg .b32 %r<2>;\n  mov.u32 %r1, %envreg2;\n  ret;\n}\n";

TEST_F(RewriteFile, SaysTheFormOfEachKernelOfAText) {
  const Result<RewrittenFile> result = rewrite_file(file("k.ptx", kTwoKernels));
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(result->modules.size(), 1u);
  const RewrittenModule& module = result->modules[0];
  EXPECT_EQ(module.architecture, "sm_75");
  ASSERT_EQ(module.entries.size(), 2u);
  EXPECT_EQ(form_name(module.entries[0].form), "persistent");
  EXPECT_EQ(form_name(module.entries[1].form), "opaque");
  EXPECT_NE(module.text.find(std::string("plain") + ptx::kPersistentSuffix), std::string::npos);
  EXPECT_EQ(module.text.find(std::string("cooperative") + ptx::kPersistentSuffix), std::string::npos);
  EXPECT_TRUE(ptx::parse(module.text));
}

TEST_F(RewriteFile, TakesEveryPtxOfAFatbin) {
  const Result<RewrittenFile> result = rewrite_file(golden_fatbin("zstd"));
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(result->modules.size(), 2u);
  EXPECT_EQ(result->modules[0].architecture, "sm_75");
  EXPECT_EQ(result->modules[1].architecture, "sm_90a");
  EXPECT_EQ(result->modules[1].options, "-maxrregcount=32");
}

TEST_F(RewriteFile, SaysHowFarItIs) {
  std::vector<std::pair<std::size_t, std::size_t>> said;
  const auto say = [&](std::size_t module, std::size_t modules) { said.emplace_back(module, modules); };
  ASSERT_TRUE(rewrite_file(golden_fatbin("zstd"), say));
  EXPECT_EQ(said, (std::vector<std::pair<std::size_t, std::size_t>>{{1, 2}, {2, 2}}));
}

TEST_F(RewriteFile, MachineCodeIsNotAnError) {
  const Result<RewrittenFile> result = rewrite_file(golden_fatbin("machine_code"));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(result->modules.empty());
  EXPECT_EQ(result->machine_code, std::vector<std::string>{"sm_75"});
}

TEST_F(RewriteFile, ErrorsNameTheFileAndThePlace) {
  EXPECT_EQ(error_of(in_scratch("none")), in_scratch("none") + ": cannot be read: No such file or directory");
  EXPECT_EQ(error_of(directory_), directory_.string() + ": is not a regular file");
  const std::string text = file("text", "hello");
  EXPECT_EQ(error_of(text), text + ": image is neither PTX (no .target), fatbin nor ELF");
  const std::string broken = file("broken.ptx", std::string(kTwoKernels) + "\n.entry {");
  EXPECT_EQ(error_of(broken).rfind(broken + ":15:8: ", 0), 0u) << error_of(broken);
  std::string cut = content(golden_fatbin("zstd"));
  cut.resize(cut.size() / 2);
  const std::string half = file("half.fatbin", cut);
  EXPECT_EQ(error_of(half).rfind(half + ": fatbin offset 0x", 0), 0u) << error_of(half);
}

TEST_F(RewriteFile, NothingThatBlocksOrNeverEndsIsRead) {
  ASSERT_EQ(::mkfifo(in_scratch("fifo").c_str(), 0600), 0);
  ::alarm(60);
  EXPECT_EQ(error_of(in_scratch("fifo")), in_scratch("fifo") + ": is not a regular file");
  EXPECT_EQ(error_of("/dev/zero"), "/dev/zero: is not a regular file");
  const std::string large = file("large", "");
  fs::resize_file(large, std::uintmax_t{1} << 40);  // it has no blocks
  EXPECT_EQ(error_of(large), large + ": is no fatbin or ELF file with device code, and too long for PTX");
  EXPECT_EQ(error_of(file("empty", "")), in_scratch("empty") + ": image is neither PTX (no .target), fatbin nor ELF");
  ::alarm(0);
}

/// A member of an archive, as ar(1) writes it.
std::string member(const std::string& name, const std::string& content) {
  char header[61];
  std::snprintf(header, sizeof header, "%-16s%-12d%-6d%-6d%-8o%-10zu`\n", name.c_str(), 0, 0, 0, 0644, content.size());
  return header + content + (content.size() % 2 == 0 ? "" : "\n");
}

TEST_F(RewriteFile, TakesTheMembersOfAnArchive) {
  const std::string fatbin = content(golden_fatbin("zstd")), code = content(golden_fatbin("machine_code"));
  const std::string names = "a_name_of_more_than_sixteen_characters.o/\n";
  const Result<RewrittenFile> result =
      rewrite_file(file("lib.a", "!<arch>\n" + member("/", "index") + member("//", names) + member("readme/", "hello") +
                                     member("host.o/",
                                            "\x7f"
                                            "ELF, but cut off") +
                                     member("/0", fatbin) + member("#1/10", "long_bsd\0\0"s + code)));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->modules.size(), 2u);
  EXPECT_EQ(result->machine_code, std::vector<std::string>{"sm_75"});
  EXPECT_EQ(result->modules[1].architecture, "sm_90a");

  const auto error = [&](const std::string& bytes) {
    const std::string path = file("bad.a", bytes), message = error_of(path);
    EXPECT_TRUE(message.starts_with(path + ": ")) << message;
    return message.substr(path.size() + 2);
  };
  EXPECT_EQ(error("!<arch>\n"), "archive without device code");
  EXPECT_EQ(error("!<arch>\n" + member("a.o/", "hello")), "archive without device code");
  EXPECT_EQ(error("!<thin>\n"), "a thin archive, which holds no code; name its members");
  const std::string whole = "!<arch>\n" + member("//", names) + member("/0", fatbin);
  EXPECT_EQ(error(whole.substr(0, whole.size() - 40)), "archive offset 110: no member, or one that is cut off");
  std::string damaged = fatbin;
  damaged[4] = 9;
  EXPECT_TRUE(error("!<arch>\n" + member("//", names) + member("/0", damaged))
                  .starts_with("member a_name_of_more_than_sixteen_characters.o: fatbin offset 0x4"));
}

TEST_F(RewriteFile, OneModuleGoesIntoTheFile) {
  const Result<RewrittenFile> result = rewrite_file(file("k.ptx", kTwoKernels));
  const std::string out = file("out.ptx", "what was there");
  const Result<std::vector<std::string>> written = write_modules(*result, out);
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(*written, std::vector<std::string>{out});
  EXPECT_EQ(content(out), result->modules[0].text);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), {}), 2) << "an unfinished file stayed";
}

TEST_F(RewriteFile, SeveralModulesGoIntoADirectory) {
  const Result<RewrittenFile> result = rewrite_file(golden_fatbin("zstd"));
  const std::string out = in_scratch("out");
  const Result<std::vector<std::string>> written = write_modules(*result, out);
  ASSERT_TRUE(written) << written.error().message;
  EXPECT_EQ(*written, (std::vector<std::string>{out + "/1.sm_75.ptx", out + "/2.sm_90a.ptx"}));
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(content((*written)[i]), result->modules[i].text);
  const Result<std::vector<std::string>> refused = write_modules(*result, (*written)[0]);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, (*written)[0] + ": is a file, and there are 2 modules to write; name a directory");
  EXPECT_EQ(content((*written)[0]), result->modules[0].text);
  EXPECT_FALSE(write_modules(*result, in_scratch("no/such")));
}

}  // namespace
}  // namespace gpuctl::cli
