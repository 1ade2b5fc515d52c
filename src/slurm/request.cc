#include "slurm/request.h"

#include <algorithm>
#include <charconv>

#include "base/limit_text.h"
#include "base/slice_settings.h"
#include "ipc/interface.h"

namespace gpuctl::slurm {
namespace {

std::string quoted(std::string_view text) {
  return "'" + std::string(text) + "'";
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string> parts(std::string_view list) {
  std::vector<std::string> all;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    if (std::string part = without_slashes(list.substr(begin, end - begin)); !part.empty())
      all.push_back(std::move(part));
    begin = end + 1;
  }
  return all;
}

std::string with_node(std::string_view text, const std::string& node) {
  std::string path;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool name = text.substr(i, 2) == "%n";
    if (name) ++i;
    name ? path += node : path += text[i];
  }
  return path;
}

}  // namespace

std::string without_slashes(std::string_view path) {
  const std::size_t first = path.find_first_not_of('/');
  if (first == std::string_view::npos) return {};
  return std::string(path.substr(first, path.find_last_not_of('/') - first + 1));
}

Result<void> take_option(Option option, std::string_view value, Request& request) {
  switch (option) {
    case Option::slice:
      request.slice = without_slashes(value);
      if (request.slice->empty()) return fail("--gpu-slice: " + quoted(value) + " names no slice below the root");
      break;
    case Option::sms:
      request.sms = whole_number(value);
      if (!request.sms || *request.sms < 1 || *request.sms > kSmsGreatest)
        return fail("--gpu-sms: " + quoted(value) + " is not a number of SMs; give a whole number such as 40");
      break;
    case Option::memory:
      request.memory = parse_size(value);
      if (!request.memory || *request.memory < 1)
        return fail("--gpu-mem: " + quoted(value) +
                    " is not a size; give bytes or a number with K, M, G or T such as 8G");
      break;
    case Option::latency:
      request.latency = value;
      if (value.empty()) return fail("--gpu-latency: give a time such as 5ms");
      break;
  }
  return {};
}

Result<Arguments> read_arguments(const std::vector<std::string_view>& words, const std::string& node) {
  Arguments arguments;
  arguments.socket = ipc::kDefaultSocket;
  arguments.library = GPUCTL_LIBRARY;
  for (const std::string_view word : words) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string_view name = word.substr(0, equals);
    const std::string_view value = equals < word.size() ? word.substr(equals + 1) : std::string_view();
    if (name == "admin-comment" && equals == word.size()) {
      arguments.admin_comment = true;
    } else if (value.empty()) {
      return fail(quoted(word) + " in plugstack.conf is not NAME=VALUE");
    } else if (name == "socket") {
      arguments.socket = with_node(value, node);
    } else if (name == "library") {
      arguments.library = value;
    } else if (name == "slices") {
      arguments.slices = parts(value);
    } else if (name == "dcgm") {
      arguments.dcgm = with_node(value, node);
    } else if (name == "shards") {
      const auto number = whole_number(value);
      if (!number || *number < 1) return fail(quoted(word) + " in plugstack.conf is not a number of shards");
      arguments.shards = *number;
    } else {
      return fail("there is no argument " + quoted(name) +
                  " for plugstack.conf; there are socket, library, shards, slices, dcgm and admin-comment");
    }
  }
  return arguments;
}

}  // namespace gpuctl::slurm
