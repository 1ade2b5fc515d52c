// What a peer may send over the daemon's socket, or a daemon to its clients: bytes in pieces, JSON of any shape.
#include <boost/json/serialize.hpp>

#include "fuzz.h"
#include "ipc/codec.h"
#include "ipc/framing.h"
#include "ipc/message.h"

using gpuctl::fuzz::require;
using gpuctl::fuzz::require_line;
using namespace gpuctl::ipc;

namespace {

constexpr std::size_t kPieceBytes = 7;
constexpr std::size_t kMaxBytes = 1024;

/// A T that was read is written and read again as the same.
template <class T>
void require_reads_back(const boost::json::object& object) {
  const auto value = from_json<T>(object);
  if (!value) return require_line(value.error().message);
  const boost::json::object written = to_json(*value);
  const auto again = from_json<T>(written);
  require(again.has_value(), "what was written is read: " + (again ? "" : again.error().message));
  require(to_text(to_json(*again)) == to_text(written), "what is read is what was written");
}

void take_call(std::string_view message) {
  const auto call = decode_call(message);
  if (!call) return require_line(call.error().message);
  const std::string sent = encode(*call);
  require(sent.ends_with('\0') && sent.find('\0') == sent.size() - 1, "one NUL ends a message");
  const auto again = decode_call(std::string_view(sent).substr(0, sent.size() - 1));
  require(again.has_value(), "an encoded call decodes");
  require(again->method == call->method && again->more == call->more && again->oneway == call->oneway &&
              again->parameters.size() == call->parameters.size(),
          "a call decodes to what was encoded");
  Fields fields(call->parameters);
  fields.text("path");
  Fields nested = fields.object("settings");
  SliceSettings settings;
  read(nested, settings);
  nested.refuse_unknown();
  if (!fields.ok()) require_line(fields.error().message);
}

void take_reply(std::string_view message) {
  const auto reply = decode_reply(message);
  if (!reply) return require_line(reply.error().message);
  require_reads_back<Slice>(reply->parameters);
  require_reads_back<SliceSettings>(reply->parameters);
  require_reads_back<Device>(reply->parameters);
  require_reads_back<Client>(reply->parameters);
  require_reads_back<Kernel>(reply->parameters);
  require_reads_back<Status>(reply->parameters);
  require_reads_back<Snapshot>(reply->parameters);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view bytes = gpuctl::fuzz::as_text(data, size);
  const std::string clean = to_utf8(bytes);
  require(to_utf8(clean) == clean, "UTF-8 stays as it is");
  MessageSplitter splitter(kMaxBytes);
  while (!bytes.empty()) {
    if (const auto fed = splitter.feed(bytes.substr(0, kPieceBytes)); !fed) {
      require_line(fed.error().message);
      break;
    }
    bytes.remove_prefix(std::min(kPieceBytes, bytes.size()));
    while (const auto message = splitter.next()) {
      require(message->size() <= kMaxBytes && message->find('\0') == message->npos, "a message keeps to its limits");
      take_call(*message);
      take_reply(*message);
    }
  }
  return 0;
}
