// What can happen (ipc::Event), and how the log and the journal say it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ipc/types.h"
#include "sched/slice.h"

namespace gpuctl::daemon {

struct EventKind {
  std::string_view name;
  /// MESSAGE_ID of its lines in the journal, for good: what watches the journal goes by it. docs/events.md has them.
  std::string_view message_id;
  int priority = 6;  ///< as syslog(3) has it: 6 information, 5 notice, 4 warning
};
inline constexpr EventKind kEventKinds[] = {
    {"created", "0d176fe6be384b6b92aa0567ea2643f2"},         {"changed", "272cbdc2061f402297ed9441270c6111"},
    {"deleted", "8fd20c80a0d54aa4a06eabc5c91110ce"},         {"joined", "8b517e4c78ef49ca88cd8e08de72edba"},
    {"moved", "8c02777471884288a8269b0efed3654f"},           {"left", "ddcb5a0519ce4b369b2dcfb0bd18b463"},
    {"killed", "44fdcd668acb4bc4b56aa705535c735d", 5},       {"disobeyed", "95cef1235b8b46c5bf4e91e810f8d484", 5},
    {"refused", "159004166b2544dbbd89c4c5f424be03", 5},      {"memory", "5cdcd31fc5e34249a49ec0734e31e02d", 5},
    {"missed", "9e58953c6a454f91a8a12741d90f5c40", 5},       {"met", "c1275d9d8c22446888d2191308bf8a80"},
    {"fault", "65a42b1b76944f8ab7971081b3cdb257", 4},        {"mps-came", "099a279b8f8f46029710db0e54d042c5", 5},
    {"mps-went", "56c43ad4e76243a5ad301a4015db0a7a", 5},     {"unmanaged", "b0bd2994231f4787977809af38d28e12", 5},
    {"throttled", "88aca11eb40c4357a4e51c9c32a95dc0"},       {"swapped", "8278d6ba9c814d6ba5cda62bf3e54e78"},
    {"restored", "702a26e6655443a88cc50d4bf8728d35"},        {"not-swapped", "452bc840678342d8ad28bb778de763fb", 5},
    {"not-restored", "a1c980d09d9a4269bd730e72a41146d5", 5},
};

/// The fields of its line in the journal, beside the line itself.
std::vector<std::pair<std::string_view, std::string>> journal_fields(const ipc::Event& event);

/// "process 4711 (./server)", "process 4711 (./server, slice ls)"
std::string who(const ipc::Event& event);
std::string who_in_slice(const ipc::Event& event);
/// Who did it: "root", "user 1000". Names of others are not looked up: that may take long, and callers know them.
std::string user_words(std::uint32_t uid);
/// What a program has counted: "launches 120, evictions 3".
std::string counts_text(const std::vector<ipc::ClientUsage>& usage);
/// "max none -> 40, weight 100 -> 50"; of a new slice (null) what is not the default: "max 40".
std::string change_text(const sched::Slice* before, const sched::Slice& after);

}  // namespace gpuctl::daemon
