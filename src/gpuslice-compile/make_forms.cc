#include "gpuslice-compile/make_forms.h"

#include <array>
#include <string_view>
#include <utility>

#include "gpuslice-compile/compiler.h"
#include "libgpuslice/image/register_limit.h"
#include "ptx/rewrite.h"

namespace gpuctl::compile {
namespace {

using gpuslice::CompileRequest;
using gpuslice::Forms;
using gpuslice::ImageKernel;

constexpr std::string_view kDriver = "driver";

/// Where the program has what compilers need; empty if unknown.
struct Places {
  std::string nvjitlink;
  std::string driver;
};

/// ptxas first: it compiles a text as a whole program. The others compile it as a part that is linked to more; such
/// code can take half as long again (docs/design/compiling.md).
constexpr std::array<std::pair<std::string_view, Compiler>, 3> kCompilers = {{
    {"ptxas", compile_by_ptxas},
    {"nvjitlink", compile_by_nvjitlink},
    {kDriver, compile_by_driver},
}};

ImageKernel described(const ptx::EntryReport& report) {
  ImageKernel kernel{.name = report.name,
                     .persistent = report.form == ptx::Form::kPersistent,
                     .reason = report.reason,
                     .params = {},
                     .args_offset = report.args_offset,
                     .needs_whole_warps = report.needs_whole_warps,
                     .words_behind = report.words_behind,
                     .blocks_wait = report.blocks_wait};
  for (const ptx::ParamLayout& param : report.params) kernel.params.push_back({param.offset, param.size});
  return kernel;
}

Result<MachineCode> compile(const Source& source, const Places& places, std::string_view wanted) {
  std::string errors;
  for (const auto& [name, compiler] : kCompilers) {
    if (!wanted.empty() && wanted != name) continue;
    Result<MachineCode> made = compiler(source, name == kDriver ? places.driver : places.nvjitlink);
    if (made) return made;
    errors += (errors.empty() ? "" : "; ") + made.error().message;
  }
  return fail(errors.empty() ? "there is no compiler '" + std::string(wanted) + "'" : errors);
}

gpuslice::CompiledKernel compiled(const MachineCode& code, const std::string& name) {
  const auto found = code.kernels.find(name);
  return found == code.kernels.end() ? gpuslice::CompiledKernel{} : found->second;
}

/// Compiles once more, with register limits for forms that should have any. Keeps the result if it does not spill more.
void limit(MachineCode& code, const Source& source, const std::vector<ImageKernel>& kernels, const Places& places,
           std::string_view wanted) {
  const auto limits =
      gpuslice::wanted_limits(kernels, [&](const std::string& name) { return compiled(code, name).registers; });
  if (limits.empty()) return;
  Source limited = source;
  limited.text = gpuslice::limit_registers(source.text, limits);
  Result<MachineCode> again = compile(limited, places, wanted);
  if (!again) return;
  const auto local = [&](const MachineCode& of) {
    return gpuslice::local_bytes(kernels, [&](const std::string& name) { return compiled(of, name).local_bytes; });
  };
  if (local(*again) <= local(code)) code.image = std::move(again->image);
}

}  // namespace

Forms make_forms(const CompileRequest& request, const std::string& compiler) {
  Forms forms;
  Result<ptx::RewrittenText> rewritten = ptx::rewrite_text(request.ptx);
  if (!rewritten) {
    forms.reason = "PTX not understood: " + rewritten.error().message;
    return forms;
  }
  forms.stands_alone = rewritten->stands_alone;
  bool any = false;
  for (const ptx::EntryReport& report : rewritten->entries) {
    forms.kernels.push_back(described(report));
    any = any || forms.kernels.back().persistent;
  }
  if (!any) return forms;
  const Source source{.text = std::move(rewritten->text),
                      .sm = request.sm,
                      .suffix = target_suffix(request.ptx),
                      .max_registers = request.max_registers};
  const std::string_view wanted = request.by_driver ? kDriver : std::string_view(compiler);
  const Places places = request.by_driver ? Places{.nvjitlink = {}, .driver = request.linker}
                                          : Places{.nvjitlink = request.linker, .driver = {}};
  Result<MachineCode> code = compile(source, places, wanted);
  if (!code) {
    forms.reason = "its rewritten PTX was not compiled: " + code.error().message;
    return forms;
  }
  limit(*code, source, forms.kernels, places, wanted);
  forms.code = std::move(code->image);
  return forms;
}

}  // namespace gpuctl::compile
