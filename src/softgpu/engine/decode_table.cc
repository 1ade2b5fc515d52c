// Which member of the decoder reads which opcode.
#include "softgpu/engine/decoder.h"

namespace gpuctl::softgpu::engine {

const std::unordered_map<std::string_view, Decoder::Member>& Decoder::table() {
  static const std::unordered_map<std::string_view, Member> kTable = {
      {"add", &Decoder::arithmetic}, {"sub", &Decoder::arithmetic}, {"mul", &Decoder::arithmetic},
      {"mad", &Decoder::arithmetic}, {"fma", &Decoder::arithmetic}, {"div", &Decoder::arithmetic},
      {"rem", &Decoder::arithmetic}, {"min", &Decoder::arithmetic}, {"max", &Decoder::arithmetic},
      {"abs", &Decoder::arithmetic}, {"neg", &Decoder::arithmetic}, {"sad", &Decoder::arithmetic},
      {"mul24", &Decoder::arithmetic}, {"mad24", &Decoder::arithmetic}, {"copysign", &Decoder::arithmetic},
      {"addc", &Decoder::carry_chain}, {"subc", &Decoder::carry_chain}, {"madc", &Decoder::carry_chain},
      {"rcp", &Decoder::approximate}, {"sqrt", &Decoder::approximate}, {"rsqrt", &Decoder::approximate},
      {"sin", &Decoder::approximate}, {"cos", &Decoder::approximate}, {"lg2", &Decoder::approximate},
      {"ex2", &Decoder::approximate}, {"tanh", &Decoder::approximate},
      {"and", &Decoder::logic}, {"or", &Decoder::logic}, {"xor", &Decoder::logic}, {"not", &Decoder::logic},
      {"cnot", &Decoder::logic}, {"shl", &Decoder::shift}, {"shr", &Decoder::shift}, {"shf", &Decoder::funnel_shift},
      {"lop3", &Decoder::lop3}, {"prmt", &Decoder::prmt}, {"bfe", &Decoder::bit_field}, {"bfi", &Decoder::bit_field},
      {"fns", &Decoder::bit_field}, {"bmsk", &Decoder::bit_field}, {"szext", &Decoder::bit_field},
      {"bfind", &Decoder::bit_count}, {"popc", &Decoder::bit_count}, {"clz", &Decoder::bit_count},
      {"brev", &Decoder::bit_count}, {"dp4a", &Decoder::dot_product}, {"dp2a", &Decoder::dot_product},
      {"setp", &Decoder::setp}, {"set", &Decoder::set}, {"selp", &Decoder::selp}, {"slct", &Decoder::slct},
      {"testp", &Decoder::testp}, {"cvt", &Decoder::cvt},
      {"mov", &Decoder::mov}, {"ld", &Decoder::load_store}, {"ldu", &Decoder::load_store}, {"st", &Decoder::load_store},
      {"atom", &Decoder::atom}, {"red", &Decoder::atom}, {"cvta", &Decoder::cvta}, {"isspacep", &Decoder::isspacep},
      {"membar", &Decoder::fence}, {"fence", &Decoder::fence}, {"cp", &Decoder::copy_async},
      {"prefetch", &Decoder::ignore}, {"prefetchu", &Decoder::ignore}, {"discard", &Decoder::ignore},
      {"applypriority", &Decoder::ignore}, {"pmevent", &Decoder::ignore}, {"griddepcontrol", &Decoder::ignore},
      {"createpolicy", &Decoder::create_policy},
      {"bra", &Decoder::branch}, {"brx", &Decoder::branch_indexed}, {"ret", &Decoder::leave}, {"exit", &Decoder::leave},
      {"call", &Decoder::call}, {"trap", &Decoder::trap}, {"brkpt", &Decoder::trap}, {"nanosleep", &Decoder::nanosleep},
      {"bar", &Decoder::barrier}, {"barrier", &Decoder::barrier}, {"shfl", &Decoder::shuffle}, {"vote", &Decoder::vote},
      {"match", &Decoder::match}, {"redux", &Decoder::redux}, {"elect", &Decoder::elect},
      {"activemask", &Decoder::activemask},
  };
  return kTable;
}

}  // namespace gpuctl::softgpu::engine
