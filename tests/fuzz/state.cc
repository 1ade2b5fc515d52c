// The files that an earlier daemon left: the slices, what attached programs held, and what was learnt about kernels.
#include <boost/json/parse.hpp>
#include <map>

#include "fuzz.h"
#include "gpuctld/config/state.h"
#include "gpuctld/config/state_file.h"
#include "gpuctld/jobs/kernel_knowledge.h"
#include "gpuctld/protocol/convert.h"
#include "gpuctld/restart/holdings.h"

using gpuctl::fuzz::require;
using gpuctl::fuzz::require_line;
using namespace gpuctl;
using namespace gpuctl::daemon;

namespace {

/// What is restored of it is restored again as the same, and nothing of that is left out.
void take_slices(std::string_view text) {
  const LoadedState loaded = understand_state(std::string(text));
  for (const std::string& line : loaded.left_out) require_line(line);
  require(loaded.text == text, "the text is kept");
  sched::SliceTree tree(sched::CapSM{132}, 0), again(sched::CapSM{132}, 0);
  std::vector<std::string> notes;
  restore_slices(loaded.state, tree, notes);
  for (const std::string& line : notes) require_line(line);
  notes.clear();
  State state;
  for (const auto& [path, slice] : tree.slices()) state.slices.emplace_back(path, to_settings(slice));
  restore_slices(state, again, notes);
  require(notes.empty(), "what was restored is restored again: " + (notes.empty() ? "" : notes.front()));
  require(again.slices().size() == tree.slices().size(), "no slice is lost");
  for (const auto& [path, settings] : state.slices) {
    require(again.find(path) != nullptr, "no slice has another path");
    require(to_settings(*again.find(path)) == settings, "no slice has another setting");
  }
}

void take_holdings(std::string_view text) {
  const auto holdings = understand_holdings(text);
  if (!holdings) return require_line(holdings.error().message);
  require(holdings->attached.size() <= kMostHoldings, "not more than are kept");
  for (const Holding& holding : holdings->attached) require(holding.process.pid > 0, "a process has a number");
}

void take_kernels(std::string_view text) {
  boost::system::error_code broken;
  const boost::json::value value = boost::json::parse(text, broken);
  if (broken) return;
  KernelKnowledge knowledge, again;
  if (const auto read = knowledge.from_json(value); !read) return require_line(read.error().message);
  const auto read = again.from_json(knowledge.to_json());
  require(read.has_value(), "what was learnt is read again: " + (read ? "" : read.error().message));
  require(again.list().size() == knowledge.list().size(), "no kernel is lost");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = gpuctl::fuzz::as_text(data, size);
  take_slices(text);
  take_holdings(text);
  take_kernels(text);
  return 0;
}
