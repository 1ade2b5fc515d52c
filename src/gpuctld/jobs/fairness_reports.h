// Tells sched::Fairness of the launches that clients report.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpuctld/clients/client.h"
#include "sched/temporal/fairness.h"

namespace gpuctl::daemon {

/// A launch of the client on one of its devices ended; alone on the whole device it takes `alone` (0: not known). A
/// launch with times that cannot be is left out: a client may report anything.
void note_launch(sched::Fairness& fairness, Client& client, std::size_t slot, const ipc::Record& launch,
                 sched::Time alone, std::uint64_t now_ns);

}  // namespace gpuctl::daemon
