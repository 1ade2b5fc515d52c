// What survives the daemon: the slices, in STATE/state.json. Clients reattach by themselves.
//
// The file is a JSON object in its first line, and then lines that each change it (state_writer.h). Each of these has a
// sum: one that is not whole, as after a power failure, does not count, nor does what follows it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "ipc/types.h"

namespace gpuctl::daemon {

struct State {
  /// Path and settings, parents first; the root ("/") too.
  std::vector<std::pair<std::string, ipc::SliceSettings>> slices;
  /// What the configuration said about each slice when it was last applied, as JSON text.
  std::map<std::string, std::string> configured;
};

/// A state as far as it could be understood.
struct LoadedState {
  State state;
  std::string text;                   ///< the whole file
  std::vector<std::string> left_out;  ///< a line for each thing in it that is not in `state`, with its field
  std::vector<std::string> notes;     ///< a line for each value in it that is no more, with what took its place
};

/// An empty state if there is no file. An error if the file cannot be read, or does not belong to root or to the
/// daemon's user, or if others may write to it: then it must not be overwritten, because it may be sound.
Result<LoadedState> load_state(const std::string& file);

/// The same from the text of a file.
LoadedState understand_state(std::string text);

/// A line that changes what stands before it: an object in JSON with `gone`, paths, and `slices`.
std::string state_record(std::string_view change);

/// Copies a damaged `file` that is to be written anew to the first of FILE.bad, FILE.bad.1, ... that is free or has
/// this text already; returns which.
Result<std::string> keep_aside(const std::string& file, const std::string& text);

/// What becomes of the room of the file that is replaced.
enum class Room {
  given_back,
  kept,  ///< it is FILE.new, for the next time: then a full disk does not keep a text of about this length from it
};

/// Replaces the file in one step, mode 0600: a reader finds the old file or the new one, complete, also after the
/// daemon is killed. Does not wait for the disk, because the file is for the next daemon, not for the next boot: after
/// a power failure a file on a disk may be empty.
Result<void> replace_file(const std::string& file, const std::string& text, Room room = Room::given_back);

}  // namespace gpuctl::daemon
