#include "gpuslice-nvcc/command.h"

#include <gtest/gtest.h>

namespace gpuctl::nvcc {
namespace {

using Words = std::vector<std::string>;

const Words kHeaders{"-I/inc"};
const Words kLinked{"-Xlinker", "--push-state,--no-as-needed,/lib/x/libgpuslice.so,--pop-state,-rpath=/lib/x"};

Surroundings surroundings() {
  return {{"/inc", "/lib/x/libgpuslice.so"},
          {},
          {},
          [](const std::string& path) -> std::optional<Words> {
            if (path == "loop") return Words{"-optf", "loop"};
            if (path == "options") return Words{"-c", "-arch=compute_80", "-code=sm_80"};
            return std::nullopt;
          },
          [](const std::string& name) { return Words{name == "native" ? "compute_89" : "compute_75"}; }};
}

/// What was added to `given`, which must still come first.
Words added(const Words& given, const Surroundings& with = surroundings()) {
  Words all = complete(given, with);
  EXPECT_TRUE(all.size() >= given.size() && std::equal(given.begin(), given.end(), all.begin()));
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(given.size()));
  return all;
}

Words sum(std::initializer_list<Words> parts) {
  Words all;
  for (const Words& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

Words ptx(const std::string& name) {
  return {"-gencode", "arch=" + name + ",code=" + name};
}

/// The PTX that is added to a compilation with `options`.
Words added_ptx(Words options) {
  options.insert(options.end(), {"-c", "a.cu"});
  Words all = added(options);
  EXPECT_EQ(all.at(0), "-I/inc");
  all.erase(all.begin());
  return all;
}

TEST(Architectures, PtxThatNvccKeepsIsLeftAlone) {
  EXPECT_EQ(added_ptx({}), Words{});
  EXPECT_EQ(added_ptx({"-arch=sm_90"}), Words{});
  EXPECT_EQ(added_ptx({"-arch", "sm_90a"}), Words{});
  EXPECT_EQ(added_ptx({"-arch=compute_90"}), Words{});
  EXPECT_EQ(added_ptx({"-arch=compute_80", "-code=sm_80,compute_80"}), Words{});
  EXPECT_EQ(added_ptx({"-gencode", "arch=compute_80,code=[sm_80,compute_80]"}), Words{});
  EXPECT_EQ(added_ptx({"-gencode=arch=compute_80,code=\"sm_80,compute_80\""}), Words{});
  EXPECT_EQ(added_ptx({"-gencode", "arch=compute_80,code=sm_80", "-gencode", "arch=compute_80,code=compute_80"}),
            Words{});
}

TEST(Architectures, EachOneAskedForGetsItsPtx) {
  EXPECT_EQ(added_ptx({"-gencode", "arch=compute_80,code=sm_86"}), ptx("compute_80"));
  EXPECT_EQ(added_ptx({"--generate-code=arch=compute_90a,code=sm_90a"}), ptx("compute_90a"));
  EXPECT_EQ(added_ptx({"-arch=compute_80", "-code=sm_80,sm_86"}), ptx("compute_80"));
  EXPECT_EQ(added_ptx({"--gpu-architecture", "sm_80", "--gpu-code", "sm_80"}), ptx("compute_80"));
  EXPECT_EQ(added_ptx({"-gencode", "arch=compute_80,code=sm_80", "-gencode", "arch=compute_80,code=sm_86", "-gencode",
                       "arch=compute_90,code=sm_90"}),
            sum({ptx("compute_80"), ptx("compute_90")}));
  EXPECT_EQ(added_ptx({"-arch=sm_80", "-gencode", "arch=compute_90,code=sm_90"}), ptx("compute_90"));
}

TEST(Architectures, NamesThatStandForOthers) {
  EXPECT_EQ(added_ptx({"-arch=native"}), ptx("compute_89"));
  EXPECT_EQ(added_ptx({"-arch=all-major"}), ptx("compute_75"));
}

TEST(Architectures, CodeForTheDeviceLinkerHasNone) {
  EXPECT_EQ(added_ptx({"-dlto", "-gencode", "arch=compute_80,code=lto_80"}), Words{});
}

TEST(Command, LinksUnlessNvccStopsBefore) {
  EXPECT_EQ(added({"a.cu"}), sum({kHeaders, kLinked}));
  EXPECT_EQ(added({"a.o", "-o", "a", "-lcuda"}), sum({kHeaders, kLinked}));
  EXPECT_EQ(added({"-shared", "a.cu"}), sum({kHeaders, kLinked}));
  EXPECT_EQ(added({"-run", "a.cu"}), sum({kHeaders, kLinked}));
  EXPECT_EQ(added({"--dryrun", "a.cu"}), sum({kHeaders, kLinked}));
  EXPECT_EQ(added({"-gencode", "arch=compute_80,code=sm_80", "a.cu"}), sum({kHeaders, ptx("compute_80"), kLinked}));
  for (const char* mode : {"-c", "-dc", "--device-w", "-cuda", "-fatbin", "-lib"})
    EXPECT_EQ(added({mode, "-gencode", "arch=compute_80,code=sm_80", "a.cu"}), sum({kHeaders, ptx("compute_80")}))
        << mode;
}

TEST(Command, OutputsOfOneFormKeepTheirArchitecture) {
  for (const char* mode : {"-ptx", "--cubin", "-E", "-M", "-MM", "-optix-ir", "-dlink"})
    EXPECT_EQ(added({mode, "-arch=compute_80", "-code=sm_80", "a.cu"}), kHeaders) << mode;
}

TEST(Command, QuestionsPassUnchanged) {
  for (const char* question : {"--version", "-h", "--list-gpu-arch"}) EXPECT_EQ(added({question}), Words{}) << question;
  EXPECT_EQ(added({}), Words{});
}

TEST(Command, WordsForOtherProgramsAreNotNvccs) {
  EXPECT_EQ(added({"-Xcompiler", "-c", "-Xlinker", "-E", "a.cu", "-o", "-ptx"}), sum({kHeaders, kLinked}));
  EXPECT_EQ(added({"-Xcompiler=-c", "a.cu"}), sum({kHeaders, kLinked}));
}

TEST(Command, OptionsFromFilesAndTheEnvironmentCount) {
  EXPECT_EQ(added({"-optf", "options", "a.cu"}), sum({kHeaders, ptx("compute_80")}));
  EXPECT_EQ(added({"--options-file=none,options", "a.cu"}), sum({kHeaders, ptx("compute_80")}));
  EXPECT_EQ(added({"-optf", "loop", "a.cu"}), sum({kHeaders, kLinked}));
  Surroundings with = surroundings();
  with.prepended = {"-arch=compute_90"};
  with.appended = {"-code=sm_90"};
  EXPECT_EQ(added({"-c", "a.cu"}, with), sum({kHeaders, ptx("compute_90")}));
}

TEST(Command, HeadersThatAreFoundAnywayGetNoOption) {
  Surroundings with = surroundings();
  with.places.include_dir.clear();
  EXPECT_EQ(added({"-c", "a.cu"}, with), Words{});
}

TEST(Command, AnOptionWithoutItsValueIsLeftToNvcc) {
  EXPECT_EQ(added({"a.cu", "-arch"}), sum({kHeaders, kLinked}));
}

}  // namespace
}  // namespace gpuctl::nvcc
