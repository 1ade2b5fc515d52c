// `gpuctl rewrite` needs neither a daemon nor a GPU.
#include <boost/json/serialize.hpp>
#include <memory>
#include <ostream>

#include "gpuctl/line/verb.h"
#include "gpuctl/text/progress.h"
#include "gpuctl/text/table.h"
#include "gpuctl/views/demangle.h"
#include "gpuctl/views/rewrite_file.h"

namespace gpuctl::cli {
namespace {

boost::json::object to_json(const RewrittenFile& file, const std::vector<std::string>& written) {
  boost::json::array modules;
  for (const RewrittenModule& module : file.modules) {
    boost::json::array kernels;
    for (const ptx::EntryReport& entry : module.entries)
      kernels.push_back({{"name", entry.name}, {"form", form_name(entry.form)}, {"reason", entry.reason}});
    modules.push_back(
        {{"architecture", module.architecture}, {"options", module.options}, {"kernels", std::move(kernels)}});
  }
  boost::json::array machine_code(file.machine_code.begin(), file.machine_code.end());
  boost::json::array paths(written.begin(), written.end());
  return {{"modules", std::move(modules)}, {"machine_code", std::move(machine_code)}, {"written", std::move(paths)}};
}

Table table_of(const RewrittenFile& file) {
  using enum Table::Align;
  Table table({{"MODULE", right}, {"PTX", left}, {"FORM", left}, {"KERNEL", left}, {"REASON", left}});
  for (std::size_t i = 0; i < file.modules.size(); ++i) {
    const RewrittenModule& module = file.modules[i];
    std::vector<std::string> names;
    for (const ptx::EntryReport& entry : module.entries) names.push_back(entry.name);
    names = demangled(names);
    for (auto name = names.begin(); const ptx::EntryReport& entry : module.entries)
      table.add_row({std::to_string(i + 1), printable(module.architecture), form_name(entry.form),
                     fit(printable(*name++), 60), printable(entry.reason)});
  }
  return table;
}

/// The file's content besides PTX, for the sentence that says that it stays as it is.
std::string machine_code_text(const RewrittenFile& file) {
  std::string names;
  for (const std::string& name : file.machine_code)
    if (!name.empty() && (names + ',').find(name + ',') == names.npos) names += (names.empty() ? "" : ", ") + name;
  return "machine code" + (names.empty() ? "" : " for " + printable(names));
}

void print_text(const RewrittenFile& file, const std::string& path, std::ostream& out) {
  if (file.modules.empty()) {
    out << printable(path) << ": no PTX, only " << machine_code_text(file) << ": nothing to rewrite\n";
    return;
  }
  const Table table = table_of(file);
  if (table.empty()) {
    out << printable(path) << ": its PTX holds no kernels\n";
  } else {
    for (const std::string& line : table.lines()) out << line << '\n';
  }
  for (std::size_t i = 0; i < file.modules.size(); ++i)
    if (!file.modules[i].options.empty())
      out << "module " << i + 1 << " was compiled with ptxas options " << printable(file.modules[i].options) << '\n';
}

Outcome<int> run(const std::string& in, const std::string& out, Context& context) {
  const Result<RewrittenFile> file = [&] {
    Progress progress(context.err);
    return rewrite_file(in, [&](std::size_t module, std::size_t modules) {
      progress.say("rewriting: module " + std::to_string(module) + " of " + std::to_string(modules));
    });
  }();
  if (!file) return usage("rewrite: " + file.error().message);
  std::vector<std::string> written;
  if (!out.empty()) {
    if (file->modules.empty())
      return usage("rewrite: " + in + ": no PTX, only " + machine_code_text(*file) + ": nothing to write to " + out);
    Result<std::vector<std::string>> paths = write_modules(*file, out);
    if (!paths) return usage("rewrite: " + paths.error().message);
    written = std::move(*paths);
  }
  if (context.json)
    context.out << boost::json::serialize(to_json(*file, written)) << '\n';
  else
    print_text(*file, in, context.out);
  return kExitOk;
}

}  // namespace

Action declare_rewrite(Arguments& arguments) {
  auto in = std::make_shared<std::string>();
  auto out = std::make_shared<std::string>();
  arguments.add("IN", *in, "PTX, a cubin, a fatbin, an executable, library or object file, or an archive (.a)")
      .required();
  arguments.add("-o,--output", *out, "Write the rewritten PTX here; several modules into a directory").value("OUT");
  return [in, out](Context& context) { return run(*in, *out, context); };
}

}  // namespace gpuctl::cli
