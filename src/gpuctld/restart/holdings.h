// What was promised to attached programs, in STATE/attached.json. It outlives the daemon: after a crash its programs go
// on with what they have, and the next daemon must not promise the same to others before they have attached again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gpuctld/clients/client_slot.h"
#include "gpuctld/protocol/process.h"
#include "gpuctld/restart/moved.h"

namespace gpuctl::daemon {

/// One program on one device.
struct Holding {
  ProcessIdentity process;
  std::string slice;
  std::string device;  ///< UUID
  Promise promise;
  bool operator==(const Holding&) const = default;
};

/// A slice whose reserve on a device is held for a while after its latest work.
struct LastWork {
  std::string slice;
  std::string device;         ///< UUID
  std::uint64_t last_ns = 0;  ///< CLOCK_MONOTONIC
  bool operator==(const LastWork&) const = default;
};

struct Holdings {
  std::vector<Holding> attached;
  std::vector<LastWork> worked;
  std::vector<MovedProgram> moved;
  bool operator==(const Holdings&) const = default;
};

/// As many connections as the daemon takes, on as many devices as a program may name. More are not promised anything.
inline constexpr std::size_t kMostHoldings = 4096 * ipc::kMaxDevices;

/// The text of the file. An error if there are more than can be kept.
Result<std::string> holdings_text(const Holdings& holdings);

/// From the text of the file; an error has no more than the field at fault.
Result<Holdings> understand_holdings(std::string_view text);

/// None if there is no file. An error if it cannot be read, trusted or understood.
Result<Holdings> load_holdings(const std::string& file);

}  // namespace gpuctl::daemon
