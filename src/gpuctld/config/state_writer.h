// Keeps the state file as the slices are. What a change costs does not depend on how many slices there are, but for a
// comparison of each: text is made of what changed alone, and a record of it is put behind what the file has. The file
// is written anew, from the texts that are kept here, when the records take as much room as the rest.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <utility>

#include "base/result.h"
#include "sched/slices.h"

namespace gpuctl::daemon {

class StateWriter {
 public:
  explicit StateWriter(std::string file) : file_(std::move(file)) {}

  /// Makes the file say so: as a whole the first time, or if somebody else has touched it. An error: it says what it
  /// said before, and what is missing is written the next time.
  Result<void> write(const sched::Slices& slices, const std::map<std::string, std::string>& configured);
  /// Writes what is missing.
  Result<void> write();
  /// Without records, for a release that does not know them.
  Result<void> write_whole();

 private:
  /// What the file has, or is to have, of a slice.
  struct Known {
    sched::Slice slice;
    std::string text;
  };
  void note(const sched::Slices& slices);
  std::string whole() const;
  bool append();

  const std::string file_;
  std::map<std::string, Known, sched::PathLess> known_;
  std::map<std::string, std::string> configured_;
  std::string missing_;  ///< records of what is known and not written
  bool anew_ = true;     ///< that is no record: the file must be written anew
  ino_t inode_ = 0;      ///< of the file as this object left it
  std::size_t whole_bytes_ = 0, bytes_ = 0;
};

}  // namespace gpuctl::daemon
