// `gpuctl run` as the shell sees it: the real executable, a daemon of the test's own, real programs.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <sstream>

#include "gpuctl/testing/fake_daemon.h"
#include "ipc/codec.h"

namespace gpuctl::cli {
namespace {

namespace fs = std::filesystem;

class CmdRun : public testing::Test {
 protected:
  CmdRun() {
    char name[] = "/tmp/gpuctl-run-XXXXXX";
    directory_ = ::mkdtemp(name);
    // Any loadable library will do; other tests check what it does inside the program.
    fs::create_symlink(PRELOADED_LIBRARY, directory_ / "libgpuslice.so");
    fs::create_directory(directory_ / "softgpu");
    std::ofstream(directory_ / "softgpu/libcuda.so.1") << "x";
    status("cuda");
    daemon_.on("Attach", {{"slice", "ls"}, {"stub_bytes", 16384}, {"latency_target_us", 50}, {"block_target_us", 20}});
  }
  ~CmdRun() override { fs::remove_all(directory_); }

  void status(const std::string& kind) {
    daemon_.on("GetStatus", to_json(ipc::Status{"0.1.0", {{0, "GPU", "GPU-1", kind, 8, 1, "mps"}}, 1, 0, 1, {}}));
  }

  struct Ran {
    int wait_status;
    std::string out;
    std::string err;
    int exit_status() const { return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1; }
  };
  /// Starts gpuctl with `arguments`, and with `environment` added to a bare one. Its pid is in pid_ while it runs.
  Ran gpuctl(
      const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {},
      const std::function<void()>& meanwhile = [] {}) {
    std::vector<std::string> words{GPUCTL_EXECUTABLE, "--socket", daemon_.socket(), "run"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<std::string> variables{"PATH=/usr/bin:/bin", "HOME=/ home",
                                       "GPUCTL_LIBGPUSLICE=" + (directory_ / "libgpuslice.so").string(),
                                       "GPUCTL_SOFTGPU=" + (directory_ / "softgpu").string(),
                                       // A preloaded library comes before the runtime of a sanitizer, if there is one.
                                       "ASAN_OPTIONS=verify_asan_link_order=0"};
    variables.insert(variables.begin(), environment.begin(), environment.end());  // the first of a name counts
    const auto pointers = [](std::vector<std::string>& list) {
      std::vector<char*> result;
      for (std::string& item : list) result.push_back(item.data());
      result.push_back(nullptr);
      return result;
    };
    std::vector<char*> argv = pointers(words), envp = pointers(variables);
    const std::string out = directory_ / "out", err = directory_ / "err";
    std::fflush(nullptr);  // or the child would print what this process has buffered
    pid_ = ::fork();
    if (pid_ == 0) {
      ::alarm(60);
      if (std::freopen(out.c_str(), "w", stdout) == nullptr || std::freopen(err.c_str(), "w", stderr) == nullptr)
        ::_exit(99);
      before_exec_();
      ::close_range(3, ~0u, 0);  // descriptors that the test itself was started with
      ::execve(argv[0], argv.data(), envp.data());
      ::_exit(98);
    }
    meanwhile();
    Ran ran{};
    EXPECT_EQ(::waitpid(pid_, &ran.wait_status, 0), pid_);
    ran.out = contents(out);
    ran.err = contents(err);
    return ran;
  }
  static std::string contents(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  FakeDaemon daemon_;
  fs::path directory_;
  std::function<void()> before_exec_ = [] {};  ///< in the new process
  pid_t pid_ = -1;
};

TEST_F(CmdRun, ArgumentsArriveUntouched) {
  const Ran ran = gpuctl({"--slice", "ls", "printf", "[%s]", "a b", "", "--", "-x", "--slice", "*", "\\n", "é"});
  EXPECT_EQ(ran.out, "[a b][][--][-x][--slice][*][\\n][é]") << ran.err;
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(ran.exit_status(), 0);
  EXPECT_EQ(daemon_.asked("Attach"), R"({"slice":"ls","device_uuids":["GPU-1"],"resumed":false,)"
                                     R"("command":"printf [%s] a b  -- -x --slice * \\n é"})");
}

/// Then no limit comes into force for others, as one that two programs share would.
TEST_F(CmdRun, ItJoinsTheSliceAsTheProgramWillThatMpsKeeps) {
  daemon_.on("GetMpsPercentage", {{"hundredths", 8750}});
  gpuctl({"--slice", "ls", "true"});
  EXPECT_EQ(daemon_.asked("GetMpsPercentage"), R"({"slice":"ls"})");
  EXPECT_EQ(daemon_.asked("Attach"),
            R"({"slice":"ls","device_uuids":["GPU-1"],"resumed":false,"mps_sms":[6],"command":"true"})");
  daemon_.on("GetMpsPercentage", {{"hundredths", nullptr}});
  gpuctl({"--slice", "ls", "true"});
  EXPECT_EQ(daemon_.asked("Attach"), R"({"slice":"ls","device_uuids":["GPU-1"],"resumed":false,"command":"true"})");
}

TEST_F(CmdRun, ItJoinsAnIsolatedSliceAsAProgramOutsideOfMps) {
  daemon_.on("GetMpsPercentage", {{"hundredths", nullptr}, {"isolated", true}});
  gpuctl({"--slice", "ls", "true"});
  EXPECT_EQ(daemon_.asked("Attach"),
            R"({"slice":"ls","device_uuids":["GPU-1"],"resumed":false,"isolated":true,"command":"true"})");
}

TEST_F(CmdRun, DashDashIsTakenAwayOnce) {
  EXPECT_EQ(gpuctl({"--slice", "ls", "--", "printf", "[%s]", "--", "--help"}).out, "[--][--help]");
}

TEST_F(CmdRun, EnvironmentIsKeptAndAddedTo) {
  const Ran ran = gpuctl({"--slice", "/ls/", "env"}, {"MARK=one two", "GPUCTL_SLICE=other", "LD_LIBRARY_PATH=/x:/y"});
  const auto has = [&](const std::string& line) {
    return ("\n" + ran.out).find("\n" + line + "\n") != std::string::npos;
  };
  EXPECT_TRUE(has("MARK=one two")) << ran.out << ran.err;
  EXPECT_TRUE(has("HOME=/ home"));
  EXPECT_TRUE(has("GPUCTL_SLICE=ls"));
  EXPECT_TRUE(has("GPUCTL_SOCKET=" + daemon_.socket()));
  EXPECT_TRUE(has("LD_PRELOAD=" + (directory_ / "libgpuslice.so").string()));
  EXPECT_TRUE(has("LD_LIBRARY_PATH=/x:/y"));  // with a real GPU it does not change
}

TEST_F(CmdRun, PreloadedLibrariesAreKept) {
  const std::string other = PRELOADED_LIBRARY;
  const Ran ran = gpuctl({"--slice", "ls", "sh", "-c", "echo $LD_PRELOAD"}, {"LD_PRELOAD=" + other});
  EXPECT_EQ(ran.out, (directory_ / "libgpuslice.so").string() + ":" + other + "\n");
}

TEST_F(CmdRun, ASoftwareGpuIsFoundThroughTheLibraryPath) {
  status("software");
  const Ran ran = gpuctl({"--slice", "ls", "sh", "-c", "echo $LD_LIBRARY_PATH"}, {"LD_LIBRARY_PATH=/x"});
  EXPECT_EQ(ran.out, (directory_ / "softgpu").string() + ":/x\n");
}

TEST_F(CmdRun, ExitStatusIsTheProgramsOwn) {
  for (const int status : {0, 1, 2, 3, 42, 125, 255})
    EXPECT_EQ(gpuctl({"--slice", "ls", "sh", "-c", "exit " + std::to_string(status)}).exit_status(), status);
}

TEST_F(CmdRun, ProcessIdStaysTheSame) {
  const Ran ran = gpuctl({"--slice", "ls", "sh", "-c", "echo $$"});
  EXPECT_EQ(ran.out, std::to_string(pid_) + "\n");
}

TEST_F(CmdRun, SignalsReachTheProgram) {
  const fs::path ready = directory_ / "ready";
  const auto send = [&](int signal) {
    return [&, signal] {
      for (int i = 0; i < 6000 && !fs::exists(ready); ++i) ::usleep(10'000);
      ::kill(pid_, signal);
    };
  };
  const std::string script = "touch " + ready.string() + "; while :; do sleep 0.02; done";
  const Ran killed = gpuctl({"--slice", "ls", "sh", "-c", script}, {}, send(SIGTERM));
  EXPECT_TRUE(WIFSIGNALED(killed.wait_status));
  EXPECT_EQ(WTERMSIG(killed.wait_status), SIGTERM);
  fs::remove(ready);
  const Ran handled = gpuctl({"--slice", "ls", "sh", "-c", "trap 'exit 7' USR1; " + script}, {}, send(SIGUSR1));
  EXPECT_EQ(handled.exit_status(), 7);
}

TEST_F(CmdRun, NoDescriptorsLeakIntoTheProgram) {
  const Ran ran = gpuctl({"--slice", "ls", "sh", "-c", "ls /proc/self/fd | wc -l"});
  EXPECT_EQ(std::stoi(ran.out), 4);  // in, out, err, and the directory that ls reads
}

TEST_F(CmdRun, MissingAndNotExecutablePrograms) {
  const Ran missing = gpuctl({"--slice", "ls", "no-such-program"});
  EXPECT_EQ(missing.exit_status(), 127);
  EXPECT_EQ(missing.err, "gpuctl: run: cannot execute 'no-such-program': No such file or directory\n");
  const Ran directory = gpuctl({"--slice", "ls", directory_.string()});
  EXPECT_EQ(directory.exit_status(), 126);
  EXPECT_EQ(directory.err, "gpuctl: run: cannot execute '" + directory_.string() + "': it is a directory\n");
}

TEST_F(CmdRun, NothingRunsWhenTheDaemonSaysNo) {
  daemon_.on("ListSlices", {{"slices", to_json(std::vector<ipc::Slice>{{"ls"}})}});
  daemon_.refuse("Attach", "NoSuchSlice", {{"path", "lss"}});
  const Ran ran = gpuctl({"--slice", "lss", "touch", (directory_ / "ran").string()});
  EXPECT_EQ(ran.exit_status(), 125);
  EXPECT_EQ(ran.err, "gpuctl: slice 'lss' does not exist; did you mean 'ls'?\n");
  EXPECT_FALSE(fs::exists(directory_ / "ran"));
}

TEST_F(CmdRun, NothingRunsWithoutTheLibrary) {
  fs::remove(directory_ / "libgpuslice.so");
  const Ran ran = gpuctl({"--slice", "ls", "touch", (directory_ / "ran").string()});
  EXPECT_EQ(ran.exit_status(), 125);
  EXPECT_EQ(ran.err, "gpuctl: run: cannot read " + (directory_ / "libgpuslice.so").string() +
                         "; install it or set GPUCTL_LIBGPUSLICE\n");
  EXPECT_FALSE(fs::exists(directory_ / "ran"));
}

/// With a systemd-run of the test's own, which says what it is asked for, and a systemd that seems to run.
class CmdRunScope : public CmdRun {
 protected:
  CmdRunScope() {
    fs::create_directories(directory_ / "bin");
    tool("252 (252.38-1~deb12u1)");
    fs::create_directories(directory_ / "runtime/systemd");
    std::ofstream(directory_ / "runtime/systemd/private") << "";
    before_exec_ = [] { systemd_runs(true); };
  }

  void tool(const std::string& version) {
    const fs::path path = directory_ / "bin/systemd-run";
    std::ofstream(path) << "#!/bin/sh\n"
                           "if [ \"$*\" = --version ]; then echo systemd '"
                        << version
                        << "'; exit; fi\n"
                           "printf '[%s]' \"$@\" >"
                        << (directory_ / "asked").string()
                        << "\n"
                           "while [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n";
    fs::permissions(path, fs::perms::owner_all);
  }

  /// What root looks for is in a place that is the same for all: so in a file system of the process's own.
  static void systemd_runs(bool runs) {
    if (::geteuid() != 0) return;
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("run", "/run", "tmpfs", 0, nullptr) != 0)
      ::_exit(kNotAllowed);
    if (runs) fs::create_directories("/run/systemd/system");
  }

  Ran scoped(const std::vector<std::string>& arguments, const std::string& runtime = "runtime",
             const std::string& path = "bin:/usr/bin:/bin") {
    std::vector<std::string> words{"--scope"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return gpuctl(words, {"XDG_RUNTIME_DIR=" + (runtime.empty() ? "" : (directory_ / runtime).string()),
                          "PATH=" + (directory_ / path).string()});
  }
  std::string asked() const {
    return std::regex_replace(contents(directory_ / "asked"), std::regex("--unit=gpuctl-run-[0-9]+-[0-9a-f]{8}\\]"),
                              "--unit=UNIT]");
  }
  std::string of_user() const { return ::geteuid() == 0 ? "" : "[--user]"; }
  std::string itself() const {
    return "[--unit=UNIT][--][" + fs::canonical(GPUCTL_EXECUTABLE).string() + "][--socket][" + daemon_.socket() +
           "][run]";
  }
  static constexpr int kNotAllowed = 97;
};

#define SKIP_IF_NOT_ALLOWED(ran) \
  if ((ran).exit_status() == kNotAllowed) GTEST_SKIP() << "no file system of its own for a process here"

TEST_F(CmdRunScope, TheProgramIsWhatItIsWithoutAndTheToolIsAskedForAScope) {
  const Ran ran = scoped({"--slice", "ls", "--quiet", "sh", "-c", "echo out; echo err >&2; exit 42", "a b"});
  SKIP_IF_NOT_ALLOWED(ran);
  EXPECT_EQ(asked(), "[--scope][--quiet][--collect][--no-ask-password]" + of_user() + itself() +
                         "[--slice][ls][--quiet][--][sh][-c][echo out; echo err >&2; exit 42][a b]");
  EXPECT_EQ(ran.exit_status(), 42);
  EXPECT_EQ(ran.out, "out\n");
  EXPECT_EQ(ran.err, "err\n");
  EXPECT_NE(daemon_.asked("Attach").find(R"("slice":"ls")"), std::string::npos);
  const Ran same = scoped({"sh", "-c", "kill -TERM $$"});
  EXPECT_EQ(WTERMSIG(same.wait_status), SIGTERM) << "it is the same process";
  EXPECT_NE(asked().find("[run][--][sh][-c]"), std::string::npos) << "the slice is found there";
}

TEST_F(CmdRunScope, TheOneLineAndFailuresStay) {
  const Ran missing = scoped({"--slice", "ls", "no-such-program"});
  SKIP_IF_NOT_ALLOWED(missing);
  EXPECT_EQ(missing.exit_status(), 127);
  EXPECT_EQ(missing.err, "gpuctl: run: cannot execute 'no-such-program': No such file or directory\n");
  daemon_.on("GetSlice", {{"slice", to_json(ipc::Slice{.path = "ls", .max = 0})}, {"clients", boost::json::array()}});
  EXPECT_EQ(scoped({"--slice", "ls", "true"}).err,
            "gpuctl: run: slice 'ls' has no SMs (max=0): what it launches waits until it has some\n");
}

TEST_F(CmdRunScope, VariablesInArgumentsAreLeftAlone) {
  const Ran ran = scoped({"--slice", "ls", "echo", "$HOME"});
  SKIP_IF_NOT_ALLOWED(ran);
  EXPECT_EQ(ran.out, "$HOME\n");
  EXPECT_EQ(asked().find("--expand"), std::string::npos) << "the tool does not know that";
  tool("255 (255.4)");
  scoped({"--slice", "ls", "echo", "$HOME"});
  EXPECT_NE(asked().find("[--expand-environment=no]"), std::string::npos);
}

TEST_F(CmdRunScope, WithoutSystemdOrItsToolThereIsOneLine) {
  const Ran no_tool = scoped({"--slice", "ls", "true"}, "runtime", "none");
  SKIP_IF_NOT_ALLOWED(no_tool);
  EXPECT_EQ(no_tool.exit_status(), 125);
  EXPECT_EQ(no_tool.err, "gpuctl: run: there is no scope: cannot execute 'systemd-run': No such file or directory\n");
  before_exec_ = [] { systemd_runs(false); };
  const Ran no_systemd = scoped({"--slice", "ls", "true"}, "");
  EXPECT_EQ(no_systemd.exit_status(), 125);
  EXPECT_EQ(no_systemd.err, ::geteuid() == 0 ? "gpuctl: run: there is no scope: systemd does not run here\n"
                                             : "gpuctl: run: there is no scope: this user's systemd is not known: "
                                               "XDG_RUNTIME_DIR is not set\n");
  EXPECT_FALSE(fs::exists(directory_ / "asked"));
}

TEST_F(CmdRunScope, AToolThatFailsIsOneLineAndTheStatusOfOtherFailures) {
  const fs::path path = directory_ / "bin/systemd-run";
  std::ofstream(path) << "#!/bin/sh\necho 'Failed to connect to bus: No medium found' >&2\necho more\nexit 1\n";
  const Ran ran = scoped({"--slice", "ls", "touch", (directory_ / "ran").string()});
  SKIP_IF_NOT_ALLOWED(ran);
  EXPECT_EQ(ran.exit_status(), 125);
  EXPECT_EQ(ran.err, "gpuctl: run: there is no scope: Failed to connect to bus: No medium found\n");
  EXPECT_EQ(ran.out, "");
  EXPECT_FALSE(fs::exists(directory_ / "ran"));
}

}  // namespace
}  // namespace gpuctl::cli
