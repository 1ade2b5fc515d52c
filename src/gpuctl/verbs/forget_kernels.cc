#include <pwd.h>

#include <memory>
#include <ostream>

#include "base/plural.h"
#include "gpuctl/line/daemon.h"
#include "gpuctl/line/verb.h"
#include "gpuctl/text/units.h"

namespace gpuctl::cli {

Action declare_forget_kernels(Arguments& arguments) {
  auto user = std::make_shared<std::string>();
  arguments.add("--user", *user,
                "Of this user's programs, by name or number; otherwise of your own, or for root of all");

  return [user](Context& context) -> Outcome<int> {
    boost::json::object parameters;
    if (!user->empty()) {
      const passwd* entry = ::getpwnam(user->c_str());  // names first: a user may be called 1000
      const auto number = parse_integer(*user);
      if (entry == nullptr && !number)
        return usage("--user: there is no user '" + *user + "'; give a user's name or number");
      parameters["uid"] = entry != nullptr ? std::int64_t{entry->pw_uid} : *number;
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
