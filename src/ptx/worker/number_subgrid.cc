#include "ptx/worker/number_subgrid.h"

#include <iterator>
#include <string_view>

#include "ptx/subgrid_abi.h"
#include "ptx/syntax/parser.h"

namespace gpuctl::ptx::pass {
namespace {

/// The text in front of the body. Only what the kernel reads is computed.
class HeadText {
 public:
  HeadText(std::string args, std::uint8_t reads) : args_(std::move(args)), reads_(reads) {}

  std::string write() {
    declare();
    if (any(kReadsCtaidX | kReadsCtaidY | kReadsCtaidZ)) index();
    if (any(kReadsNctaidX)) load("%gpuslice_nctaid_x", offsetof(SubgridArgs, grid_x));
    if (any(kReadsNctaidY)) load("%gpuslice_nctaid_y", offsetof(SubgridArgs, grid_y));
    if (any(kReadsNctaidZ)) load("%gpuslice_nctaid_z", offsetof(SubgridArgs, grid_z));
    return ".version 7.0\n.target sm_70\n.address_size 64\n.entry head(.param .align 8 .b8 " + args_ + "[" +
           std::to_string(sizeof(SubgridArgs)) + "])\n{\n" + text_ + "}\n";
  }

 private:
  bool any(unsigned bits) const { return (reads_ & bits) != 0; }
  void add(std::string_view line) { (text_ += line) += ";\n"; }
  void load(const std::string& to, std::size_t offset) {
    add("ld.param.u32 " + to + ", [" + args_ + "+" + std::to_string(offset) + "]");
  }

  void declare() {
    for (int i = 0; i < 6; ++i) {
      if (!any(1u << i)) continue;
      add(".reg .b32 " + std::string(i < 3 ? kCtaidRegister : kNctaidRegister) + "xyz"[i % 3]);
    }
    if (any(kReadsCtaidX | kReadsCtaidY | kReadsCtaidZ))
      add(".reg .b32 %gpuslice_task, %gpuslice_row, %gpuslice_plane, %gpuslice_factor");
  }

  /// `to` = `from` / d, for the Divisor at this offset.
  void divide(const std::string& to, const std::string& from, std::size_t by) {
    add("shl.b32 " + to + ", " + from + ", 1");
    load("%gpuslice_factor", by + offsetof(Divisor, magic));
    add("mul.hi.u32 " + to + ", " + to + ", %gpuslice_factor");
    load("%gpuslice_factor", by + offsetof(Divisor, shift));
    add("shr.u32 " + to + ", " + to + ", %gpuslice_factor");
  }

  /// `to` = `from` - `whole` * the word at this offset.
  void rest(const std::string& to, const std::string& from, const std::string& whole, std::size_t size) {
    load("%gpuslice_factor", size);
    add("mul.lo.u32 %gpuslice_factor, %gpuslice_factor, " + whole);
    add("sub.u32 " + to + ", " + from + ", %gpuslice_factor");
  }

  void index() {
    load("%gpuslice_factor", offsetof(SubgridArgs, first));
    add("mov.u32 %gpuslice_task, %ctaid.x");
    add("add.u32 %gpuslice_task, %gpuslice_task, %gpuslice_factor");
    divide("%gpuslice_row", "%gpuslice_task", offsetof(SubgridArgs, by_grid_x));
    if (any(kReadsCtaidX)) rest("%gpuslice_ctaid_x", "%gpuslice_task", "%gpuslice_row", offsetof(SubgridArgs, grid_x));
    if (!any(kReadsCtaidY | kReadsCtaidZ)) return;
    divide("%gpuslice_plane", "%gpuslice_row", offsetof(SubgridArgs, by_grid_y));
    if (any(kReadsCtaidY)) rest("%gpuslice_ctaid_y", "%gpuslice_row", "%gpuslice_plane", offsetof(SubgridArgs, grid_y));
    if (any(kReadsCtaidZ)) add("mov.u32 %gpuslice_ctaid_z, %gpuslice_plane");
  }

  const std::string args_;
  const std::uint8_t reads_;
  std::string text_;
};

}  // namespace

Refused number_subgrid(Kernel& kernel) {
  const Result<Module> head = parse(HeadText(kernel.args_name(), kernel.closure.grid_reads).write());
  if (!head) return "the text in front of the body does not parse: " + head.error().message;
  std::vector<Statement> body = *std::get<Function>(head->items[0]).body;
  std::move(kernel.entry.body->begin(), kernel.entry.body->end(), std::back_inserter(body));
  kernel.entry.body = std::move(body);
  return {};
}

}  // namespace gpuctl::ptx::pass
