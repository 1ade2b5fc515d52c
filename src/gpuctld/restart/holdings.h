// What attached programs may be using, in STATE/attached.json. It outlives the daemon: after a crash its programs keep
// their grants, and the next daemon must not grant the same SMs to others before they have attached again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gpuctld/protocol/process.h"

namespace gpuctl::daemon {

/// One program on one device.
struct Holding {
  ProcessIdentity process;
  std::string slice;
  std::string device;     ///< UUID
  std::uint32_t sms = 0;  ///< CapSM that it may be using at most
  bool operator==(const Holding&) const = default;
};

/// More are neither kept nor restored.
inline constexpr std::size_t kMostHoldings = 4096;

/// Replaces the file in one step.
Result<void> save_holdings(const std::string& file, const std::vector<Holding>& holdings);

/// From the text of the file; an error has no more than the field at fault.
Result<std::vector<Holding>> understand_holdings(std::string_view text);

/// None if there is no file. An error if it cannot be read, trusted or understood.
Result<std::vector<Holding>> load_holdings(const std::string& file);

}  // namespace gpuctl::daemon
