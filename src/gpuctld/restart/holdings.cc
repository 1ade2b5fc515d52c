#include "gpuctld/restart/holdings.h"

#include <unistd.h>

#include <boost/json.hpp>
#include <limits>
#include <utility>

#include "gpuctld/config/trusted_file.h"
#include "ipc/fields.h"
#include "ipc/message.h"
#include "ipc/stub.h"

namespace gpuctl::daemon {

namespace json = boost::json;

namespace {

constexpr int kHoldingsVersion = 1;
constexpr std::size_t kMostBytes = 64u << 20;  // as many as can be, in slices with the longest paths

std::uint64_t unsigned_of(ipc::Fields& entry, const char* name) {
  return static_cast<std::uint64_t>(entry.maybe_integer(name, 0).value_or(0));
}

ProcessIdentity process_of(ipc::Fields& entry) {
  ProcessIdentity process;
  process.pid = static_cast<std::int32_t>(entry.integer("pid", 1, std::numeric_limits<std::int32_t>::max()));
  process.start = static_cast<std::uint64_t>(entry.integer("start", 0));
  process.uid = static_cast<std::uint32_t>(entry.integer("uid", 0, std::numeric_limits<std::uint32_t>::max()));
  return process;
}

}  // namespace

Result<std::string> holdings_text(const Holdings& holdings) {
  if (holdings.attached.size() > kMostHoldings)
    return fail("more than " + std::to_string(kMostHoldings) + " programs cannot be recorded");
  json::array attached, worked, moved;
  for (const Holding& holding : holdings.attached)
    attached.push_back(json::object{{"pid", holding.process.pid},
                                    {"start", static_cast<std::int64_t>(holding.process.start)},
                                    {"uid", holding.process.uid},
                                    {"slice", holding.slice},
                                    {"device", holding.device},
                                    {"sms", holding.promise.sms},
                                    {"memory", static_cast<std::int64_t>(holding.promise.memory)}});
  for (const LastWork& work : holdings.worked)
    worked.push_back(json::object{
        {"slice", work.slice}, {"device", work.device}, {"last_ns", static_cast<std::int64_t>(work.last_ns)}});
  for (const MovedProgram& program : holdings.moved)
    moved.push_back(json::object{{"pid", program.process.pid},
                                 {"start", static_cast<std::int64_t>(program.process.start)},
                                 {"uid", program.process.uid},
                                 {"slice", program.slice},
                                 {"mps", program.mps}});
  json::object all{{"version", kHoldingsVersion}, {"attached", std::move(attached)}, {"worked", std::move(worked)}};
  if (!moved.empty()) all["moved"] = std::move(moved);
  return ipc::to_text(all) + "\n";
}

Result<Holdings> understand_holdings(std::string_view text) {
  Holdings holdings;
  boost::system::error_code broken;
  const json::value value = json::parse(text, broken);
  if (broken || !value.is_object()) return fail("not a JSON object");
  ipc::Fields fields(value.get_object());
  if (fields.integer("version") != kHoldingsVersion && fields.ok()) fields.complain("version", "is not 1");
  for (ipc::Fields& entry : fields.objects("attached")) {
    Holding holding;
    holding.process = process_of(entry);
    holding.slice = entry.text("slice");
    holding.device = entry.text("device");
    holding.promise.sms = static_cast<std::uint32_t>(entry.integer("sms", 0, ipc::kUnlimited));
    holding.promise.memory = unsigned_of(entry, "memory");  // a daemon without memory in its file left none
    holdings.attached.push_back(std::move(holding));
  }
  if (fields.ok() && value.get_object().contains("worked"))
    for (ipc::Fields& entry : fields.objects("worked"))
      holdings.worked.push_back({entry.text("slice"), entry.text("device"), unsigned_of(entry, "last_ns")});
  if (fields.ok() && value.get_object().contains("moved"))
    for (ipc::Fields& entry : fields.objects("moved")) {
      MovedProgram& program = holdings.moved.emplace_back();
      program.process = process_of(entry);
      program.slice = entry.text("slice");
      program.mps = entry.maybe_text("mps").value_or("");  // an earlier daemon left none
    }
  if (!fields.ok()) return fields.error();
  return holdings;
}

Result<Holdings> load_holdings(const std::string& file) {
  const auto text = read_trusted_file(file, Writers::owner, ::geteuid(), kMostBytes);
  if (!text) return text.error();
  if (!*text) return Holdings();
  auto holdings = understand_holdings(**text);
  if (!holdings) return fail(file + ": " + holdings.error().message);
  return holdings;
}

}  // namespace gpuctl::daemon
