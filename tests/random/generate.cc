#include "generate.h"

#include "entry.h"
#include "function.h"
#include "rng.h"

namespace gpuctl::random_kernels {
namespace {

std::string variables(Rng& rng) {
  std::string text = ".version 7.8\n.target sm_75\n.address_size 64\n\n";
  text += ".visible .global .align 4 .u32 " + std::string(kTallyName) + "[" + std::to_string(kTallyWords) + "];\n";
  text += ".const .align 4 .u32 table[8] = {";
  for (unsigned i = 0; i < 8; ++i) text += (i > 0 ? ", " : "") + std::to_string(rng.below(0x7fffffff));
  text += "};\n.shared .align 4 .b8 " + std::string(kModuleArray) + "[" + std::to_string(4 * kArrayWords) + "];\n";
  text += ".shared .align 4 .b8 " + std::string(kMeetingArray) + "[" + std::to_string(4 * kMeetingWords) + "];\n";
  return text + ".extern .shared .align 4 .b8 " + kDynamicArray + "[];\n\n";
}

}  // namespace

RandomModule generate(std::uint64_t seed, Calls calls) {
  Rng rng(seed);
  RandomModule module;
  module.ptx = variables(rng);
  const std::string prefix = "s" + std::to_string(seed);
  Offer offer{.calls = calls};
  for (unsigned count = rng.below(3); count > 0; --count) {
    const std::string name = prefix + "_function" + std::to_string(offer.functions.size());
    module.ptx +=
        make_function(rng, name, calls == Calls::kAnywhere ? offer.functions : std::vector<std::string>()) + "\n";
    offer.functions.push_back(name);
  }
  if (rng.chance(50)) {
    offer.meeting = prefix + "_meeting";
    module.ptx += make_meeting(rng, offer.meeting) + "\n";
  }
  for (unsigned count = rng.between(1, 3); count > 0; --count) {
    KernelShape shape;
    shape.name = prefix + "_kernel" + std::to_string(module.kernels.size());
    module.ptx += make_entry(rng, offer, shape) + "\n";
    module.kernels.push_back(std::move(shape));
  }
  return module;
}

}  // namespace gpuctl::random_kernels
