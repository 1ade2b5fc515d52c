// Compares what is written about settings and policies with the tables that the program uses.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <span>

#include "base/slice_settings.h"
#include "gpuctl/line/settings.h"
#include "sched/policy.h"

namespace gpuctl::cli {
namespace {

std::string text_of(const std::string& file) {
  std::ifstream stream(GPUCTL_SOURCE_ROOT "/" + file);
  EXPECT_TRUE(stream) << file;
  return {std::istreambuf_iterator<char>(stream), {}};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The item of a manual page whose tag begins with `tag`, up to the next item.
std::string item(const std::string& page, const std::string& tag) {
  const std::size_t begin = page.find("\n.It " + tag);
  if (begin == std::string::npos) return {};
  return page.substr(begin + 1, page.find("\n.It ", begin + 1) - begin);
}

/// The default as gpuctl.toml writes it; empty if it has none.
std::string default_of(const SliceSetting& setting) {
  if (setting.lifted != nullptr) return "\"unlimited\"";
  if (setting.text != nullptr) return '"' + std::string(setting.text_default) + '"';
  if (setting.kind == SettingKind::user) return "\"root\"";
  return setting.kind == SettingKind::group ? "" : std::to_string(setting.number_default);
}

/// "1 to 10000"; empty if the range needs no words.
std::string range_of(const SliceSetting& setting) {
  if (setting.kind != SettingKind::number && setting.kind != SettingKind::milliseconds) return {};
  return std::to_string(setting.least) + " to " + std::to_string(setting.greatest);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

TEST(Documents, GpuctlTomlHasEverySetting) {
  const std::string page = text_of("man/gpuctl.toml.5"), shipped = text_of("etc/gpuctl.toml");
  for (const SliceSetting& setting : kSliceSettings) {
    if (setting.is_per_gpu()) continue;  // written with the amount before it
    const std::string name(setting.name), value = default_of(setting), range = range_of(setting);
    const std::string entry = item(page, "Cm " + name + " ");
    ASSERT_FALSE(entry.empty()) << name;
    if (value.empty()) continue;
    EXPECT_TRUE(entry.starts_with(".It Cm " + name + " = No " + replaced(value, "\"", "\\(dq") + "\n")) << entry;
    EXPECT_TRUE(contains(entry, range)) << name << " does not say " << range;
    if (setting.kind == SettingKind::sms) {
      EXPECT_TRUE(contains(entry, "0 to " + std::to_string(kSmsGreatest))) << entry;
    }
    const std::size_t at = shipped.find("\n#" + name + " = " + value + " ");
    ASSERT_NE(at, std::string::npos) << name;
    EXPECT_TRUE(contains(shipped.substr(at, shipped.find('\n', at + 1) - at), range))
        << name << " does not say " << range;
  }
}

TEST(Documents, TheManualHasEveryOptionAndDefault) {
  const std::string page = text_of("man/gpuctl.1");
  const std::string settings = page.substr(page.find("\n.It Cm reserve Ar n"));
  for (const SliceSetting* setting : setting_options()) {
    EXPECT_TRUE(contains(page, "\n.Op Fl -" + std::string(setting->option) + ' ')) << setting->option;
    const std::string entry = item(settings, "Cm " + std::string(setting->option) + ' ');
    ASSERT_FALSE(entry.empty()) << setting->option;
    EXPECT_TRUE(contains(entry, "Default")) << entry;
    if (setting->kind == SettingKind::user) continue;
    std::string value = setting->text != nullptr     ? std::string(setting->text_default)
                        : setting->lifted != nullptr ? "none"
                                                     : std::to_string(setting->number_default);
    if (setting->kind == SettingKind::milliseconds) value += "ms";
    EXPECT_TRUE(contains(entry, "Default " + value + ".") || contains(entry, "Default\n.Cm " + value + " .")) << entry;
  }
  for (const SliceSetting& setting : kSliceSettings)
    for (const std::string_view choice : setting.choices)
      EXPECT_TRUE(
          contains(item(settings, "Cm " + std::string(setting.option) + ' '), "\n.Cm " + std::string(choice) + " :\n"))
          << choice;
}

TEST(Documents, TheManualOfTheInterfaceHasEveryField) {
  const std::string page = text_of("man/io.gpuctl.7");
  const std::size_t begin = page.find(".Ss Slice\n"), end = page.find(".Ss Device\n");
  ASSERT_TRUE(begin != std::string::npos && end != std::string::npos);
  const std::string slice = page.substr(begin, end - begin);
  for (const SliceSetting& setting : kSliceSettings) {
    const std::string type = setting.text != nullptr ? "string" : setting.lifted != nullptr ? "?int" : "int";
    EXPECT_TRUE(
        std::regex_search(slice, std::regex("\n\\.It Li ([a-z_]+ , )*" + std::string(setting.name) +
                                            "( , [a-z_]+)* Pq \\" + (type[0] == '?' ? type : "b" + type) + "\n")))
        << setting.name << ": " << type;
    EXPECT_TRUE(setting.lift.empty() || contains(slice, ".Li " + std::string(setting.lift) + "\n")) << setting.lift;
  }
}

/// The part of `page` that begins with the line `begin`, up to the next heading.
std::string section(const std::string& page, const std::string& begin) {
  const std::size_t from = page.find('\n' + begin + '\n');
  return from == std::string::npos ? "" : page.substr(from, page.find("\n.S", from + 2) - from);
}

TEST(Documents, TheManualOfTheInterfaceHasEveryType) {
  const std::string page = text_of("man/io.gpuctl.7"), interface = text_of("src/ipc/io.gpuctl.varlink");
  static const std::regex type("\ntype (\\w+) \\(([^)]*)\\)"), field("\n  (\\w+): (\\S*[a-zA-Z])");
  std::size_t fields = 0;
  for (std::sregex_iterator i(interface.begin(), interface.end(), type), end; i != end; ++i) {
    const std::string name = (*i)[1], members = (*i)[2], text = section(page, ".Ss " + name);
    ASSERT_FALSE(text.empty()) << name;
    if (name == "SliceSettings") continue;  // the fields of Slice
    for (std::sregex_iterator f(members.begin(), members.end(), field); f != end; ++f, ++fields)
      EXPECT_TRUE(std::regex_search(text, std::regex("\n\\.It Li ([a-z_0-9]+ , )*" + (*f)[1].str() + "\\b")))
          << name << "." << (*f)[1];
  }
  EXPECT_GT(fields, 100u);
}

TEST(Documents, TheCompletionKnowsEverySetting) {
  std::string keys;
  for (const SliceSetting* setting : setting_options()) keys.append(keys.empty() ? "" : " ").append(setting->option);
  const std::string completion = text_of("src/gpuctl/completion/gpuctl");
  EXPECT_TRUE(contains(completion, "keys=\"" + keys + "\"\n")) << keys;
  for (const SliceSetting* setting : setting_options()) {
    if (setting->choices.empty()) continue;
    std::string choices;
    for (const std::string_view choice : setting->choices) choices.append(choices.empty() ? "" : " ").append(choice);
    EXPECT_TRUE(
        contains(completion, "--" + std::string(setting->option) + ") COMPREPLY=($(compgen -W \"" + choices + "\""))
        << choices;
    EXPECT_EQ(setting->argument, replaced(choices, " ", "|"));
  }
}

std::string names_of(std::span<const sched::Policy> policies, const std::string& between) {
  std::string names;
  for (const sched::Policy& policy : policies) names.append(names.empty() ? "" : between).append(policy.name);
  return names;
}

TEST(Documents, ThePoliciesThatAreOfferedComeFirstAndSayWhatForAndTheOthersHaveAHeadingOfTheirOwn) {
  const std::string completion = text_of("src/gpuctl/completion/gpuctl");
  EXPECT_TRUE(contains(completion, "policies=\"" + names_of(sched::offered_policies(), " ") + "\"\n"));
  const std::string help = policy_help(), manual = text_of("man/gpuctl.toml.5"), page = text_of("docs/policies.md");
  const std::size_t of_papers = manual.find("\nThese are accepted too, to repeat the figures of papers:\n");
  ASSERT_NE(of_papers, std::string::npos);
  const std::size_t page_of_papers = page.find("\n## Policies of papers\n");
  ASSERT_NE(page_of_papers, std::string::npos);
  for (const sched::Policy& policy : sched::policies()) {
    const std::string name(policy.name), what(policy.help);
    const bool offered = &policy < sched::policies_of_papers().data();
    EXPECT_EQ(what.starts_with("for "), offered) << name;
    EXPECT_EQ(help.find("\n  " + name + " ") < help.find("\nPolicies of papers"), offered) << name;
    EXPECT_EQ(manual.find("\n.It Cm " + name + "\n") < of_papers, offered) << name;
    EXPECT_EQ(page.find("\n| `" + name + "` |") < page_of_papers, offered) << name;
    EXPECT_TRUE(!offered || contains(manual, what.substr(0, what.find(" (")))) << what;
  }
}

TEST(Documents, TheManualHasEveryPolicyAndItsOptions) {
  const std::string page = text_of("man/gpuctl.toml.5");
  for (const sched::Policy& policy : sched::policies()) {
    std::smatch entry;
    ASSERT_TRUE(std::regex_search(page, entry,
                                  std::regex("\n\\.It Cm ([a-z]+ , )*" + std::string(policy.name) + "( , [a-z]+)*\n")))
        << policy.name;
    const std::string rest = entry.str() + entry.suffix().str();
    const std::string text = rest.substr(0, std::min(rest.find("\n.It ", 1), rest.find("\n.El", 1)));
    const std::string options(policy.options);
    static const std::regex option("([a-z_]+)=");
    for (std::sregex_iterator i(options.begin(), options.end(), option), end; i != end; ++i)
      EXPECT_TRUE(std::regex_search(text, std::regex("\n\\.Cm [^\n]*\\b" + (*i)[1].str() + "\\b")))
          << policy.name << ": " << (*i)[1].str();
  }
}

}  // namespace
}  // namespace gpuctl::cli
