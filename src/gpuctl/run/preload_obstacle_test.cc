#include "gpuctl/run/preload_obstacle.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

namespace gpuctl::cli {
namespace {

namespace fs = std::filesystem;

class PreloadObstacle : public testing::Test {
 protected:
  PreloadObstacle() {
    std::string pattern = testing::TempDir() + "gpuctl-preload-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~PreloadObstacle() override { fs::remove_all(directory_); }

  std::string file(const std::string& name, const std::string& bytes) const {
    const std::string path = directory_ / name;
    std::ofstream(path, std::ios::binary) << bytes;
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }
  /// An ELF file whose dynamic linker is `linker`; "": it has none.
  static std::string elf(const std::string& linker, int machine, unsigned char bits = ELFCLASS64) {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = bits;
    header.e_machine = static_cast<Elf64_Half>(machine);
    header.e_phoff = sizeof header;
    header.e_phnum = 2;
    Elf64_Phdr segments[2]{};
    segments[0].p_type = PT_LOAD;
    segments[1].p_type = linker.empty() ? PT_NOTE : PT_INTERP;
    segments[1].p_offset = sizeof header + sizeof segments;
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
    bytes.append(reinterpret_cast<const char*>(segments), sizeof segments);
    return bytes + linker + '\0';
  }
  static int own_machine() {
    Elf64_Ehdr header{};
    std::ifstream("/proc/self/exe", std::ios::binary).read(reinterpret_cast<char*>(&header), sizeof header);
    return header.e_machine;
  }

  fs::path directory_;
};

TEST_F(PreloadObstacle, OrdinaryProgramsHaveNone) {
  for (const char* program : {"sh", "/bin/sh", "/proc/self/exe", "no-such-program", "/nonexistent/x", "/", ""})
    EXPECT_EQ(preload_obstacle(program), "") << program;
  EXPECT_EQ(preload_obstacle(file("script", "#! /bin/sh -e\n")), "");
  EXPECT_EQ(preload_obstacle(file("plain", "echo no magic\n")), "");
  EXPECT_EQ(preload_obstacle(file("cut",
                                  "\x7f"
                                  "ELF")),
            "");
}

TEST_F(PreloadObstacle, TheFileThatAProcessRunsIsFoundBeforeItDoes) {
  const std::string shell = fs::canonical("/bin/sh");
  for (const std::string& program : {std::string("sh"), std::string("/bin/sh"), file("script", "#! /bin/sh -e\n"),
                                     file("script of one", "#!" + file("inner", "#!/bin/sh\n"))})
    EXPECT_EQ(file_run_by(program), shell) << program;
  for (const std::string& program :
       {std::string("no-such-program"), std::string("/"), std::string(), file("plain", "echo no magic\n"),
        file("loop", "#!" + std::string(directory_ / "loop"))})
    EXPECT_EQ(file_run_by(program), "") << program;
}

TEST_F(PreloadObstacle, StaticAndForeignPrograms) {
  const int machine = own_machine(), other = machine == EM_X86_64 ? EM_AARCH64 : EM_X86_64;
  EXPECT_EQ(preload_obstacle(file("static", elf("", machine))), "it is linked statically");
  EXPECT_EQ(preload_obstacle(file("ld-linux.so.2", elf("", machine))), "") << "a dynamic linker";
  EXPECT_EQ(preload_obstacle(file("musl", elf("/lib/ld-musl-x86_64.so.1", machine))),
            "it has another dynamic linker, /lib/ld-musl-x86_64.so.1");
  EXPECT_EQ(preload_obstacle(file("other", elf("/lib/ld", other))), "it is for another kind of machine");
  EXPECT_EQ(preload_obstacle(file("narrow", elf("/lib/ld", machine, ELFCLASS32))), "it is for another kind of machine");
}

TEST_F(PreloadObstacle, OfTheInterpreterOfAScript) {
  const std::string interpreter = file("static", elf("", own_machine()));
  const std::string script = file("script", "#!" + interpreter + " -x\n"), outer = file("outer", "#! " + script + "\n");
  EXPECT_EQ(preload_obstacle(script), "its interpreter " + interpreter + " is linked statically");
  EXPECT_EQ(preload_obstacle(outer), "its interpreter " + interpreter + " is linked statically");
  const std::string loop = directory_ / "loop";
  EXPECT_EQ(preload_obstacle(file("loop", "#!" + loop + "\n")), "");
}

TEST_F(PreloadObstacle, ProgramsOnThePath) {
  file("static", elf("", own_machine()));
  const std::string before = std::getenv("PATH");
  ::setenv("PATH", ("/nonexistent:" + directory_.string() + ":" + before).c_str(), 1);
  EXPECT_EQ(preload_obstacle("static"), "it is linked statically");
  ::setenv("PATH", before.c_str(), 1);
}

TEST_F(PreloadObstacle, ProgramsWithMoreRights) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give a file away";
  const std::string program = directory_ / "sh";
  fs::copy_file("/bin/sh", program);
  ASSERT_EQ(::chown(program.c_str(), 65534, 65534), 0);
  ASSERT_EQ(::chmod(program.c_str(), 04755), 0);
  EXPECT_EQ(preload_obstacle(program), "it is set-uid");
  ASSERT_EQ(::chmod(program.c_str(), 02755), 0);
  EXPECT_EQ(preload_obstacle(program), "it is set-gid");
  ASSERT_EQ(::chmod(program.c_str(), 02745), 0);
  EXPECT_EQ(preload_obstacle(program), "") << "that is how files are marked for locking";
  ASSERT_EQ(::chown(program.c_str(), 0, 0), 0);
  ASSERT_EQ(::chmod(program.c_str(), 06755), 0);
  EXPECT_EQ(preload_obstacle(program), "") << "the caller's own rights";
}

}  // namespace
}  // namespace gpuctl::cli
