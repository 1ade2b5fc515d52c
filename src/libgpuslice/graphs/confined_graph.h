// One executable graph of the program, and a copy of it in the part of the GPU that its slice leaves it (graph_copy.h).
// Which of the two is launched follows what is in force. The program only ever sees its own.
//
// The program may change its graph as soon as it is instantiated, and destroy it after that. So the copy is made of a
// clone from that moment. Once the program changes the executable graph, its copy is not launched any more.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <optional>

#include "libgpuslice/launch/context.h"

namespace gpuslice {

/// The caller makes sure that only one thread calls at a time. The context that the graph was instantiated in must be
/// current.
class ConfinedGraph {
 public:
  /// `flags`: what the graph was instantiated with. `clone`: of the graph at that moment, which belongs to this object
  /// from now on; null: there is none.
  ConfinedGraph(unsigned long long flags, CUgraph clone) : flags_(flags), clone_(clone) {}
  /// Touches nothing of the driver's, as the context may be gone. Where it is not, give_up() comes first.
  ~ConfinedGraph() = default;
  ConfinedGraph(const ConfinedGraph&) = delete;
  ConfinedGraph& operator=(const ConfinedGraph&) = delete;

  /// The copy, if that is what is to be launched into the stream now, else null. Makes it if need be, as a launch makes
  /// a part (Opaque::use_part). `launch`: the graph as one launch in original form.
  CUgraphExec choose(Context& context, CUstream stream, const Opaque::Launch& launch);
  /// The program's own graph is to be launched into the stream, so it must wait for the copy.
  void leave(CUstream stream);
  /// Called after each launch of either.
  void launched(CUstream stream);
  /// From now on the copy is not launched. `why`: as GraphCopy::none.
  void refuse(const char* why);
  /// Destroys what was made. Launches that are under way stay as they are.
  void give_up();

  struct Where {
    std::uint32_t sms = 0;               ///< 0: any
    const char* why_anywhere = nullptr;  ///< null: nothing confines it
    bool operator==(const Where&) const = default;
  };
  /// Where the graph was last to run.
  Where where() const { return {in_copy_ ? sms_ : 0, none_}; }

 private:
  bool make(Context& context, const GrantView::Part& part, const GreenContexts::Confined& there);
  void change_over(CUstream stream, bool to_copy);

  const unsigned long long flags_;
  CUgraph clone_ = nullptr;
  CUgraphExec copy_ = nullptr;
  GrantView::Part part_;      ///< of the copy
  GreenContexts::Hold hold_;  ///< on that part
  std::uint32_t sms_ = 0;     ///< of the copy
  CUevent latest_ = nullptr;  ///< after the latest launch since there is a copy
  bool in_copy_ = false;      ///< the latest launch was the copy's
  const char* refused_ = nullptr;
  const char* none_ = nullptr;
};

}  // namespace gpuslice
