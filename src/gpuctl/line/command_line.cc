// The one place that CLI11 is compiled in.
#include "gpuctl/line/command_line.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>

#include "gpuctl/line/arguments.h"
#include "gpuctl/line/settings.h"
#include "gpuctl/line/verb.h"
#include "gpuctl/text/suggest.h"
#include "gpuctl/text/table.h"
#include "ipc/interface.h"

namespace gpuctl::cli {
namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  gpuctl create-slice ls --reserve 8       8 SMs of every GPU whenever ls wants them\n"
    "  gpuctl create-slice batch --max 100\n"
    "  gpuctl run --slice ls ./server           any CUDA program, unmodified\n"
    "  gpuctl set batch max=40                  holds from the next launch on\n"
    "  gpuctl top\n"
    "\n"
    "'gpuctl VERB --help' tells more about a verb; gpuctl(1) is the manual.";

/// How `--help` looks: CLI11's layout with our usage line and without what goes without saying.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();
  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_option_opts(const CLI::Option* option) const override;
};

/// CLI11 from 2.5 on fills the lines of a footer anew.
template <class Formatter>
void keep_lines(Formatter& formatter) {
  if constexpr (requires { formatter.enable_footer_formatting(false); }) formatter.enable_footer_formatting(false);
}

HelpFormatter::HelpFormatter() {
  keep_lines(*this);
  column_width(34);
  label("SUBCOMMAND", "VERB");
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  std::string usage = "Usage: " + name;  // gpuctl, or gpuctl VERB
  if (app->get_parent() == nullptr) return usage + " [OPTIONS] VERB [ARGUMENTS...]\n";
  for (const CLI::Option* option : app->get_options())
    if (option->get_required() && !option->get_positional())
      usage += ' ' + option->get_name() + ' ' + option->get_type_name();
  usage += " [OPTIONS]";
  for (const CLI::Option* option : app->get_options())
    if (option->get_positional()) {
      const std::string argument = option->get_name(true) + (option->get_expected_max() > 1 ? "..." : "");
      usage += option->get_required() ? ' ' + argument : " [" + argument + ']';
    }
  return usage + '\n';
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (option->get_positional()) return option->get_expected_max() > 1 ? "..." : "";
  return option->get_type_size() == 0 ? "" : ' ' + option->get_type_name();
}

/// Options that take their value from the next argument. Needed to find the verb before anything is parsed.
bool takes_value(const std::string& argument) {
  static constexpr std::array kWithValue{"--socket", "--slice",  "-o",     "--output",
                                         "--runs",   "--widths", "--load", "--user"};
  return std::find(kWithValue.begin(), kWithValue.end(), argument) != kWithValue.end();
}

bool is_option(const std::string& argument) {
  return argument.size() > 1 && argument[0] == '-';
}

/// Index of the first argument at or after `from` that is neither an option nor an option's value.
std::size_t skip_options(const std::vector<std::string>& arguments, std::size_t from) {
  while (from < arguments.size() && is_option(arguments[from]) && arguments[from] != "--")
    from += takes_value(arguments[from]) ? 2 : 1;
  return std::min(from, arguments.size());
}

std::string first_line(std::string text) {
  return text.substr(0, text.find('\n'));
}

std::string joined(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// CLI11's complaint, in gpuctl's words where they are clearer.
Failure explain(const CLI::ParseError& error, const CLI::App& app, const std::string& verb) {
  const std::string help = "; see 'gpuctl" + (verb.empty() ? "" : ' ' + verb) + " --help'";
  const std::string text = first_line(error.what());
  const std::string at = verb.empty() ? "" : verb + ": ";
  if (error.get_name() == "ArgumentMismatch") {
    const std::string option = text.substr(0, text.find(':'));
    // CLI11 2.1 says "At Most 1", later versions "At most 1".
    if (text.find("ost 1 required") != std::string::npos) return usage(at + option + " is given twice; give it once");
    const CLI::Option* found = option.starts_with("--") ? app.get_option_no_throw(option) : nullptr;
    if (found != nullptr && text.find("missing") != std::string::npos)
      return usage(at + option + " needs a value: " + option + ' ' + found->get_type_name());
  }
  return usage(at + text + help);
}

/// The error for an argument that a verb does not take.
Failure explain_extra(const std::string& extra, const CLI::App& app, const std::string& verb) {
  const std::string help = "; see 'gpuctl" + (verb.empty() ? "" : ' ' + verb) + " --help'";
  const std::string at = verb.empty() ? "" : verb + ": ";
  if (!is_option(extra)) return usage(at + "unexpected argument '" + extra + "'" + help);
  const std::string name = extra.substr(0, extra.find('='));
  const auto is_setting = [&](const SliceSetting* one) { return "--" + std::string(one->option) == name; };
  if (verb == "set" && std::ranges::any_of(setting_options(), is_setting))
    return usage(at + "a setting is written " + name.substr(2) + "=VALUE, not " + name);
  const auto near = closest(name, option_names(app));
  return usage(at + "unknown option '" + name + "'" + (near ? "; did you mean '" + *near + "'?" : help));
}

std::string default_socket() {
  const char* path = std::getenv("GPUCTL_SOCKET");
  return path != nullptr && *path != '\0' ? path : std::string(ipc::kDefaultSocket);
}

/// Whether standard output is a terminal with a cursor to move.
bool drawable_terminal() {
  const char* kind = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && kind != nullptr && *kind != '\0' && std::string_view(kind) != "dumb";
}

void add_global_options(CLI::App& app, Context& context) {
  app.add_option("--socket", context.socket,
                 "Socket of the daemon (GPUCTL_SOCKET, else " + std::string(ipc::kDefaultSocket) + ")")
      ->type_name("PATH")
      ->group("Global options");
  app.add_flag("--json", context.json, "Print JSON")->group("Global options");
  app.set_help_flag("-h,--help", "Print this help and exit")->group("Global options");
}

Outcome<int> carry_out(std::vector<std::string> arguments, std::ostream& out, std::ostream& err) {
  const bool own_output = &out == &std::cout;
  Context context{default_socket(),
                  false,
                  cut_program(arguments),
                  out,
                  err,
                  own_output && drawable_terminal(),
                  own_output ? terminal_width() : 0};
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) names.emplace_back(verb.name);
  const std::size_t at = skip_options(arguments, 0);
  const std::string name = at < arguments.size() ? arguments[at] : "";
  if (name == "help") return usage("there is no verb 'help'; write 'gpuctl --help' or 'gpuctl VERB --help'");
  if (at < arguments.size() && std::find(names.begin(), names.end(), name) == names.end()) {
    const std::string meant = hint(name, names);
    return usage("there is no verb '" + name + "'" + (meant.empty() ? "; 'gpuctl --help' names all" : meant));
  }

  CLI::App app("gpuctl divides NVIDIA GPUs into slices and runs programs in them.", "gpuctl");
  app.footer(kFooter);
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_version_flag("--version", "gpuctl " GPUCTL_VERSION, "Print the version and exit")->group("Global options");
  app.allow_extras();
  add_global_options(app, context);
  std::map<std::string, Action> actions;
  for (const Verb& verb : verbs()) {
    CLI::App* sub = app.add_subcommand(verb.name, verb.summary);
    sub->group("Verbs");
    sub->footer("");  // without the footer of gpuctl itself
    Arguments declared(*sub);
    actions[verb.name] = verb.declare(declared);
    add_global_options(*sub, context);
    sub->allow_extras();
    const std::string more = sub->get_footer();
    sub->footer(more + (more.empty() ? "" : "\n\n") + "Example:\n  " + verb.example);
  }
  const CLI::App& used = name.empty() ? app : *app.get_subcommand(name);
  try {
    std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
    app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    out << used.help(name.empty() ? "" : "gpuctl");
    return kExitOk;
  } catch (const CLI::CallForVersion& version) {
    out << version.what() << '\n';
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    return explain(error, used, name);
  }
  if (const std::vector<std::string> extras = app.remaining(); !extras.empty())
    return explain_extra(extras.front(), app, "");
  if (name.empty()) return usage("which verb? One of " + joined(names) + "; see 'gpuctl --help'");
  if (const std::vector<std::string> extras = used.remaining(); !extras.empty())
    return explain_extra(extras.front(), used, name);
  return actions.at(name)(context);
}

bool is_verb(const std::vector<std::string>& arguments, std::string_view name) {
  const std::size_t at = skip_options(arguments, 0);
  return at < arguments.size() && arguments[at] == name;
}

/// What a verb printed counts only when it has been written.
Outcome<int> written(Outcome<int> outcome, std::ostream& out) {
  errno = 0;
  out.flush();
  if (out || !outcome) return outcome;
  return Failure{kExitRefused,
                 "the output cannot be written" + (errno == 0 ? "" : std::string(": ") + std::strerror(errno))};
}

}  // namespace

Argument Argument::required() {
  option_->required();
  return *this;
}

Argument Argument::value(const std::string& name) {
  option_->type_name(name);
  return *this;
}

bool Argument::given() const {
  return option_->count() != 0;
}

Argument Arguments::add(const std::string& name, std::string& value, const std::string& help) {
  return Argument(app_.add_option(name, value, help));
}

Argument Arguments::add(const std::string& name, std::vector<std::string>& values, const std::string& help) {
  return Argument(app_.add_option(name, values, help));
}

Argument Arguments::add_flag(const std::string& name, bool& value, const std::string& help) {
  return Argument(app_.add_flag(name, value, help));
}

void Arguments::footer(const std::string& text) {
  app_.footer(text);
}

std::vector<std::string> cut_program(std::vector<std::string>& arguments) {
  if (!is_verb(arguments, "run")) return {};
  const std::size_t end = skip_options(arguments, skip_options(arguments, 0) + 1);
  const std::size_t begin = end < arguments.size() && arguments[end] == "--" ? end + 1 : end;
  std::vector<std::string> program(arguments.begin() + static_cast<std::ptrdiff_t>(begin), arguments.end());
  arguments.resize(end);
  return program;
}

int run_command_line(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  const Outcome<int> outcome = written(carry_out(arguments, out, err), out);
  if (outcome) return *outcome;
  err << "gpuctl: " << outcome.error().message << std::endl;
  // A script must be able to tell gpuctl's failure from the program's own status.
  const bool ours = outcome.error().exit_status < kExitRunFailed;
  return is_verb(arguments, "run") && ours ? kExitRunFailed : outcome.error().exit_status;
}

}  // namespace gpuctl::cli
