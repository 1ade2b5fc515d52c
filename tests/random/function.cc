#include "function.h"

#include "body.h"

namespace gpuctl::random_kernels {
namespace {

std::string define(const std::string& name, unsigned parameters, const std::string& body) {
  std::string text = ".func (.param .b32 " + name + "_result) " + name + "(";
  for (unsigned i = 0; i < parameters; ++i) {
    text += (i > 0 ? ", " : "") + std::string(".param .b32 ") + name + "_" + std::to_string(i);
  }
  return text + ")\n{\n" + body + "}\n";
}

}  // namespace

std::string make_function(Rng& rng, const std::string& name, const std::vector<std::string>& callable) {
  Code code(name);
  Traits traits;
  traits.functions = callable;
  Body body(rng, code, traits);
  body.result = name + "_result";
  for (unsigned i = 0; i < 2; ++i) {
    body.varying.push_back(code.reg(Kind::kWord));
    code.add("ld.param.b32 ", body.varying[i], ", [", name, "_", i, "]");
  }
  body.thread = code.reg(Kind::kWord);
  code.add("mov.u32 ", body.thread, ", %tid.x");
  body.varying.push_back(code.reg(Kind::kWord));
  code.add("add.u32 ", body.varying[2], ", ", body.thread, ", ", rng.below(1000));
  for (unsigned i = 0; i < 2; ++i) body.uniform.push_back(body.special(true));
  Place place;
  place.together = false;  // who knows who calls
  place.may_return = rng.chance(50);
  place.depth = 1;
  place.rounds = 4;
  body.statements(rng.between(2, 6), place);
  code.add("xor.b32 ", body.varying[0], ", ", body.varying[0], ", ", body.varying[2]);
  code.add("st.param.b32 [", body.result, "], ", body.varying[0]);
  code.add("ret");
  return define(name, 2, code.body());
}

std::string make_meeting(Rng& rng, const std::string& name) {
  Code code(name);
  const std::string value = code.reg(Kind::kWord), thread = code.reg(Kind::kWord), cells = code.reg(Kind::kWord);
  const std::string address = code.reg(Kind::kWord), other = code.reg(Kind::kWord);
  code.add("ld.param.b32 ", value, ", [", name, "_0]");
  code.add("ld.param.b32 ", thread, ", [", name, "_1]");
  code.add("ld.param.b32 ", cells, ", [", name, "_2]");
  code.add("mov.u32 ", address, ", ", kMeetingArray);
  code.add("mad.lo.u32 ", address, ", ", thread, ", 4, ", address);
  code.add("st.shared.u32 [", address, "], ", value);
  code.add("bar.sync 0");
  code.add("add.u32 ", other, ", ", thread, ", ", rng.below(100));
  if (rng.chance(50)) {
    const std::string block = code.reg(Kind::kWord);
    code.add("mov.u32 ", block, ", %ctaid.x");
    code.add("add.u32 ", other, ", ", other, ", ", block);
  }
  code.add("rem.u32 ", other, ", ", other, ", ", cells);
  code.add("mov.u32 ", address, ", ", kMeetingArray);
  code.add("mad.lo.u32 ", address, ", ", other, ", 4, ", address);
  code.add("ld.shared.u32 ", value, ", [", address, "]");
  code.add("bar.sync 0");
  code.add("st.param.b32 [", name, "_result], ", value);
  code.add("ret");
  return define(name, 3, code.body());
}

}  // namespace gpuctl::random_kernels
