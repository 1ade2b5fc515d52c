#include "gpuctld/restart/holdings.h"

#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <limits>
#include <utility>

#include "gpuctld/config/state_file.h"
#include "gpuctld/config/trusted_file.h"
#include "ipc/fields.h"
#include "ipc/message.h"
#include "ipc/stub.h"

namespace gpuctl::daemon {

namespace json = boost::json;

namespace {

constexpr int kHoldingsVersion = 1;
constexpr std::size_t kMostBytes = 16u << 20;

}  // namespace

Result<void> save_holdings(const std::string& file, const std::vector<Holding>& holdings) {
  json::array list;
  for (std::size_t i = 0; i < std::min(holdings.size(), kMostHoldings); ++i) {
    const Holding& holding = holdings[i];
    list.push_back(json::object{{"pid", holding.process.pid},
                                {"start", static_cast<std::int64_t>(holding.process.start)},
                                {"uid", holding.process.uid},
                                {"slice", holding.slice},
                                {"device", holding.device},
                                {"sms", holding.sms}});
  }
  return replace_file(file, ipc::to_text({{"version", kHoldingsVersion}, {"attached", std::move(list)}}) + "\n");
}

Result<std::vector<Holding>> understand_holdings(std::string_view text) {
  std::vector<Holding> holdings;
  boost::system::error_code broken;
  const json::value value = json::parse(text, broken);
  if (broken || !value.is_object()) return fail("not a JSON object");
  ipc::Fields fields(value.get_object());
  if (fields.integer("version") != kHoldingsVersion && fields.ok()) fields.complain("version", "is not 1");
  for (ipc::Fields& entry : fields.objects("attached")) {
    Holding holding;
    holding.process.pid = static_cast<std::int32_t>(entry.integer("pid", 1, std::numeric_limits<std::int32_t>::max()));
    holding.process.start = static_cast<std::uint64_t>(entry.integer("start", 0));
    holding.process.uid =
        static_cast<std::uint32_t>(entry.integer("uid", 0, std::numeric_limits<std::uint32_t>::max()));
    holding.slice = entry.text("slice");
    holding.device = entry.text("device");
    holding.sms = static_cast<std::uint32_t>(entry.integer("sms", 0, ipc::kUnlimited));
    holdings.push_back(std::move(holding));
  }
  if (!fields.ok()) return fields.error();
  holdings.resize(std::min(holdings.size(), kMostHoldings));
  return holdings;
}

Result<std::vector<Holding>> load_holdings(const std::string& file) {
  const auto text = read_trusted_file(file, Writers::owner, ::geteuid(), kMostBytes);
  if (!text) return text.error();
  if (!*text) return std::vector<Holding>();
  auto holdings = understand_holdings(**text);
  if (!holdings) return fail(file + ": " + holdings.error().message);
  return holdings;
}

}  // namespace gpuctl::daemon
