// Global and local memory, and calls.
#include "body.h"
#include "generate.h"

namespace gpuctl::random_kernels {

std::string Body::cell_address(const std::string& base, const std::string& index) {
  const std::string address = code_.reg(Kind::kLong);
  code_.add("mad.wide.u32 ", address, ", ", index, ", 4, ", base);
  return address;
}

void Body::own_cells(const Place&) {
  std::string& value = varying[rng_.below(static_cast<std::uint32_t>(varying.size()))];
  const std::string old = word();
  if (rng_.chance(30)) {
    const std::string second = word();
    const unsigned offset = 8 * rng_.below(2);
    code_.add("ld.global.v2.u32 {", old, ", ", second, "}, [", cells, "+", offset, "]");
    code_.add("mad.lo.u32 ", second, ", ", second, ", 5, ", value);
    code_.add("add.u32 ", old, ", ", old, ", ", second);
    code_.add("st.global.v2.u32 [", cells, "+", offset, "], {", second, ", ", old, "}");
  } else {
    std::string address = cells;
    if (rng_.chance(40)) {
      const std::string index = word();
      code_.add("and.b32 ", index, ", ", value, ", ", kCellsPerThread - 1);
      address = cell_address(cells, index);
    } else {
      address += "+" + std::to_string(4 * rng_.below(kCellsPerThread));
    }
    const char* space = rng_.chance(80) ? ".global" : "";  // or generic
    code_.add("ld", space, ".u32 ", old, ", [", address, "]");
    code_.add("mad.lo.u32 ", old, ", ", old, ", 3, ", value);
    code_.add(rng_.chance(20) ? "@" + condition(false) + " " : "", "st", space, ".u32 [", address, "], ", old);
  }
  if (rng_.chance(50)) code_.add("mov.b32 ", value, ", ", old);
}

// The words belong to one operation each, since different ones do not commute.
void Body::add_to_sums(const Place&) {
  const std::string& value = varying[rng_.below(static_cast<std::uint32_t>(varying.size()))];
  const std::string guard = rng_.chance(30) ? "@" + condition(false) + " " : "";
  const std::string index = word();
  code_.add("and.b32 ", index, ", ", operand(false), ", 15");
  if (rng_.chance(25)) {
    const std::string base = code_.reg(Kind::kLong);
    code_.add("mov.u64 ", base, ", ", kTallyName);
    const std::string address = cell_address(base, index);
    code_.add(guard, "red.global.add.u32 [", address, "], ", value);
    return;
  }
  const std::string address = cell_address(sums, index);
  struct Operation {
    const char* name;
    unsigned region;  // of 16 words
  };
  const Operation operation = rng_.pick<Operation>(
      {{"add.u32", 0}, {"min.u32", 1}, {"max.s32", 2}, {"and.b32", 3}, {"or.b32", 4}, {"xor.b32", 5}});
  if (rng_.chance(70)) {
    code_.add(guard, "red.global.", operation.name, " [", address, "+", 64 * operation.region, "], ", value);
  } else {
    const std::string unused = word();
    code_.add(guard, "atom.global.", operation.name, " ", unused, ", [", address, "+", 64 * operation.region, "], ",
              value);
  }
}

void Body::read_input(const Place& place) {
  const bool same = place.together && rng_.chance(30);
  std::vector<std::string>& registers = same ? uniform : varying;
  const std::string& to = registers[rng_.below(static_cast<std::uint32_t>(registers.size()))];
  const std::string index = word();
  if (rng_.chance(30)) {
    const std::string base = code_.reg(Kind::kLong);
    code_.add("and.b32 ", index, ", ", operand(same), ", 7");
    code_.add("mov.u64 ", base, ", table");
    code_.add("ld.const.u32 ", to, ", [", cell_address(base, index), "]");
    return;
  }
  code_.add("and.b32 ", index, ", ", operand(same), ", ", kInputWords - 1);
  const std::string address = cell_address(input, index);
  code_.add(rng_.pick({"ld.global.u32 ", "ld.global.nc.u32 "}), to, ", [", address, "]");
}

void Body::local_array(const Place&) {
  std::string& value = varying[rng_.below(static_cast<std::uint32_t>(varying.size()))];
  const std::string base = code_.reg(Kind::kLong), index = word();
  code_.add("mov.u64 ", base, ", ", local);
  code_.add("and.b32 ", index, ", ", operand(false), ", 7");
  const std::string address = cell_address(base, index);
  if (rng_.chance(50)) {
    code_.add("st.local.u32 [", address, "], ", value);
  } else {
    const std::string old = word();
    code_.add("ld.local.u32 ", old, ", [", address, "]");
    code_.add("xor.b32 ", value, ", ", value, ", ", old);
  }
}

std::string Body::call_function(const std::string& name, const std::vector<std::string>& arguments) {
  const std::string value = word();
  std::string names;
  code_.open();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string parameter = "argument" + std::to_string(i);
    code_.add(".param .b32 ", parameter);
    code_.add("st.param.b32 [", parameter, "], ", arguments[i]);
    names += (i > 0 ? ", " : "") + parameter;
  }
  code_.add(".param .b32 answer");
  code_.add("call.uni (answer), ", name, ", (", names, ")");
  code_.add("ld.param.b32 ", value, ", [answer]");
  code_.close();
  return value;
}

void Body::call(const Place&) {
  const std::string& name = traits_.functions[rng_.below(static_cast<std::uint32_t>(traits_.functions.size()))];
  std::string& to = varying[rng_.below(static_cast<std::uint32_t>(varying.size()))];
  const std::string second = varying[rng_.below(static_cast<std::uint32_t>(varying.size()))];
  const std::string value = call_function(name, {to, second});
  code_.add("xor.b32 ", to, ", ", to, ", ", value);
}

}  // namespace gpuctl::random_kernels
