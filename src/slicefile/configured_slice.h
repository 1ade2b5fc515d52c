// A slice as a file describes it.
#pragma once

#include <map>
#include <string>

#include "sched/slice.h"

namespace gpuctl::slicefile {

struct ConfiguredSlice {
  std::string path;
  sched::SliceChange change;
  std::string where;                            ///< the place of the table
  std::map<std::string, std::string> where_of;  ///< the place of each key, by the name of its field
};

}  // namespace gpuctl::slicefile
