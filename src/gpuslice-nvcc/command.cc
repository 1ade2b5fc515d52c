#include "gpuslice-nvcc/command.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string_view>

#include "gpuslice-nvcc/architectures.h"

namespace gpuctl::nvcc {
namespace {

using std::string_view_literals::operator""sv;

/// With these nvcc answers a question and compiles nothing.
constexpr std::array kQuestions{"-h"sv,
                                "--help"sv,
                                "-V"sv,
                                "--version"sv,
                                "-arch-ls"sv,
                                "-code-ls"sv,
                                "--list-gpu-arch"sv,
                                "--list-gpu-code"sv,
                                "-clean"sv,
                                "--clean-targets"sv};
/// With these the output has no place for PTX, so the options about architectures stay as they are.
constexpr std::array kOneForm{"-E"sv,        "--preprocess"sv,
                              "-M"sv,        "--generate-dependencies"sv,
                              "-MM"sv,       "--generate-nonsystem-dependencies"sv,
                              "-ptx"sv,      "--ptx"sv,
                              "-cubin"sv,    "--cubin"sv,
                              "-optix-ir"sv, "--optix-ir"sv,
                              "-ltoir"sv,    "--ltoir"sv,
                              "-dlink"sv,    "--device-link"sv};
/// With these, and those of kOneForm, nvcc stops before the host linker.
constexpr std::array kNotLinked{"-c"sv,    "--compile"sv, "-dc"sv,     "--device-c"sv, "-dw"sv,  "--device-w"sv,
                                "-cuda"sv, "--cuda"sv,    "-fatbin"sv, "--fatbin"sv,   "-lib"sv, "--lib"sv};
/// The next argument belongs to another program, and may look like an option of nvcc.
constexpr std::array kPassedOn{"-Xcompiler"sv, "--compiler-options"sv, "-Xlinker"sv, "--linker-options"sv,
                               "-Xarchive"sv,  "--archive-options"sv,  "-Xptxas"sv,  "--ptxas-options"sv,
                               "-Xnvlink"sv,   "--nvlink-options"sv,   "-Xfatbin"sv, "--fatbin-options"sv,
                               "-run-args"sv,  "--run-args"sv,         "-o"sv,       "--output-file"sv};

bool is_one_of(std::string_view argument, std::span<const std::string_view> names) {
  return std::find(names.begin(), names.end(), argument) != names.end();
}

/// What the arguments ask for.
struct Asked {
  bool question = false;
  bool one_form = false;
  bool links = true;
  Architectures architectures;
};

class Reader {
 public:
  Reader(Asked& asked, const Surroundings& surroundings) : asked_(asked), surroundings_(surroundings) {}

  void read(const std::vector<std::string>& arguments) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const std::string& argument = arguments[i];
      asked_.question |= is_one_of(argument, kQuestions);
      asked_.one_form |= is_one_of(argument, kOneForm);
      if (is_one_of(argument, kOneForm) || is_one_of(argument, kNotLinked)) asked_.links = false;
      if (is_one_of(argument, kPassedOn)) {
        ++i;
        continue;
      }
      // "-arch=sm_80" or "-arch sm_80".
      const std::size_t at = argument.starts_with('-') ? argument.find('=') : std::string::npos;
      const std::string name = argument.substr(0, at);
      if (!takes_value(name)) continue;
      if (at == std::string::npos && i + 1 == arguments.size()) return;  // nvcc will complain
      take(name, at != std::string::npos ? argument.substr(at + 1) : arguments[++i]);
    }
  }

 private:
  static bool takes_value(const std::string& name) {
    static constexpr std::array kNames{"-arch"sv,    "--gpu-architecture"sv, "-code"sv, "--gpu-code"sv,
                                       "-gencode"sv, "--generate-code"sv,    "-optf"sv, "--options-file"sv};
    return is_one_of(name, kNames);
  }

  void take(const std::string& name, const std::string& value) {
    if (name == "-arch" || name == "--gpu-architecture") asked_.architectures.gpu_architecture(value);
    if (name == "-code" || name == "--gpu-code") asked_.architectures.gpu_code(value);
    if (name == "-gencode" || name == "--generate-code") asked_.architectures.generate_code(value);
    if (name == "-optf" || name == "--options-file") read_files(value);
  }

  void read_files(const std::string& list) {
    if (depth_ == kDeepest) return;
    ++depth_;
    for (std::size_t begin = 0; begin <= list.size();) {
      const std::size_t end = std::min(list.find(',', begin), list.size());
      if (const auto words = surroundings_.read_options_file(list.substr(begin, end - begin))) read(*words);
      begin = end + 1;
    }
    --depth_;
  }

  static constexpr int kDeepest = 8;  // for files that name each other

  Asked& asked_;
  const Surroundings& surroundings_;
  int depth_ = 0;
};

/// Keeps the library in the executable even if nothing there names one of its functions, because it must be loaded.
std::vector<std::string> linking(const std::string& library) {
  const std::string directory = std::filesystem::path(library).parent_path();
  return {"-Xlinker", "--push-state,--no-as-needed," + library + ",--pop-state,-rpath=" + directory};
}

}  // namespace

std::vector<std::string> complete(const std::vector<std::string>& given, const Surroundings& surroundings) {
  Asked asked;
  Reader reader(asked, surroundings);
  for (const auto* arguments : {&surroundings.prepended, &given, &surroundings.appended}) reader.read(*arguments);
  std::vector<std::string> result = given;
  if (asked.question || given.empty()) return result;
  if (!surroundings.places.include_dir.empty()) result.push_back("-I" + surroundings.places.include_dir);
  if (!asked.one_form) {
    for (const std::string& name : asked.architectures.without_ptx(surroundings.virtual_architectures)) {
      result.insert(result.end(), {"-gencode", "arch=" + name + ",code=" + name});
    }
  }
  if (asked.links) {
    for (std::string& argument : linking(surroundings.places.library)) result.push_back(std::move(argument));
  }
  return result;
}

}  // namespace gpuctl::nvcc
