#include <memory>
#include <ostream>

#include "base/plural.h"
#include "gpuctl/line/daemon.h"
#include "gpuctl/line/settings.h"
#include "gpuctl/line/verb.h"

namespace gpuctl::cli {

Action declare_forget_kernels(Arguments& arguments) {
  auto user = std::make_shared<std::string>();
  arguments.add("--user", *user,
                "Of this user's programs, by name or number; otherwise of your own, or for root of all");

  return [user](Context& context) -> Outcome<int> {
    boost::json::object parameters;
    if (!user->empty()) {
      const Outcome<std::int64_t> uid = user_id(*user);
      if (!uid) return uid.error();
      parameters["uid"] = *uid;
    }
    const auto reply = ask(context, "ForgetKernels", std::move(parameters));
    if (!reply) return reply.error();
    if (context.json) {
      print_json(context, *reply);
      return kExitOk;
    }
    const auto forgotten = decode_reply(*reply, [](ipc::Fields& fields) { return fields.integer("forgotten", 0); });
    if (!forgotten) return forgotten.error();
    context.out << "forgot " << plural(*forgotten, "kernel") << '\n';
    return kExitOk;
  };
}

}  // namespace gpuctl::cli
