#include "ipc/trace.h"

#include "ipc/message.h"

namespace gpuctl::ipc {

boost::json::object to_json(const Launch& l) {
  return {{"pid", l.pid},
          {"slice", to_utf8(l.slice)},
          {"kernel", to_utf8(l.kernel)},
          {"device", l.device},
          {"priority", l.priority},
          {"weight", l.weight},
          {"issued_ns", l.issued_ns},
          {"done_ns", l.done_ns},
          {"alone_us", l.alone_us},
          {"block_task_us", l.block_task_us},
          {"capsm", l.capsm},
          {"evictions", l.evictions},
          {"evict_us", l.evict_us}};
}

void read(Fields& fields, Launch& l) {
  l.pid = fields.integer("pid", 0);
  l.slice = fields.text("slice");
  l.kernel = fields.text("kernel");
  l.device = fields.integer("device", 0);
  l.priority = fields.integer("priority");
  l.weight = fields.integer("weight", 1);
  l.issued_ns = fields.integer("issued_ns", 0);
  l.done_ns = fields.integer("done_ns", 0);
  l.alone_us = fields.number("alone_us");
  l.block_task_us = fields.number("block_task_us");
  l.capsm = fields.integer("capsm", 1);
  l.evictions = fields.integer("evictions", 0);
  l.evict_us = fields.number("evict_us");
}

}  // namespace gpuctl::ipc
