#include "gpuctld/manager/without_gpu.h"

#include <utility>

#include "gpuctld/clock.h"
#include "gpuctld/protocol/answers.h"
#include "ipc/codec.h"
#include "ipc/message.h"
#include "ipc/types.h"

namespace gpuctl::daemon {

WithoutGpu::WithoutGpu(boost::asio::io_context& context, int listener, std::uint32_t root_uid, std::string why)
    : why_(std::move(why)),
      budgets_(root_uid),
      server_(context, listener, budgets_,
              {[this](Session&, const ipc::Call& request) { return call(request); }, [](Session&) {},
               [](std::uint32_t) {}}),
      started_ns_(now_ns()) {}

Answer WithoutGpu::call(const ipc::Call& call) const {
  if (auto answer = about_service(call)) return std::move(*answer);
  if (call.member() != "GetStatus") return refuse_own("NoGpu", {{"reason", ipc::to_utf8(why_)}});
  ipc::Status status;
  status.version = GPUCTL_VERSION;
  status.uptime_s = static_cast<std::int64_t>((now_ns() - started_ns_) / 1'000'000'000);
  status.notes = {"no GPU is managed: " + ipc::to_utf8(why_)};
  return success(ipc::to_json(status));
}

}  // namespace gpuctl::daemon
