#include "gpuctl/profile/profile_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/stream_parser.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/regular_file.h"
#include "base/replace_file.h"
#include "ipc/codec.h"

namespace gpuctl::cli {

namespace {

constexpr std::int64_t kMostSms = 10'000;
constexpr std::size_t kMostProfileBytes = 64u << 20;  // the profiles of some ten thousand kernels

/// "file:3:17", for what begins after `offset` bytes of the text.
std::string place(const std::string& file, std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t begin = before.rfind('\n') == before.npos ? 0 : before.rfind('\n') + 1;
  return file + ':' + std::to_string(line) + ':' + std::to_string(before.size() - begin + 1);
}

}  // namespace

std::string to_text(const Profile& profile) {
  const auto quoted = [](const std::string& text) { return boost::json::serialize(boost::json::string(text)); };
  std::string text = "{\"version\": " + std::to_string(kProfileVersion) + ",\n \"gpu\": " + quoted(profile.gpu) +
                     ",\n \"sms\": " + std::to_string(profile.sms) + ",\n \"kernels\": [";
  for (const ipc::KernelProfile& kernel : profile.kernels)
    text += (&kernel == profile.kernels.data() ? "\n  " : ",\n  ") + boost::json::serialize(to_json(kernel));
  return text + "]}\n";
}

Result<Profile> parse_profile(std::string_view text, const std::string& file) {
  boost::json::stream_parser parser;
  boost::system::error_code broken;
  const std::size_t read = parser.write_some(text.data(), text.size(), broken);
  if (!broken && !parser.done()) parser.finish(broken);
  if (broken || !parser.done())
    return fail(place(file, text, read) + ": is not JSON" + (broken ? ": " + broken.message() : ""));
  if (text.find_first_not_of(" \t\r\n", read) != text.npos)
    return fail(place(file, text, read) + ": something follows the profile");
  const boost::json::value value = parser.release();
  if (!value.is_object()) return fail(file + ": is not a profile: not a JSON object");
  ipc::Fields fields(value.get_object());
  Profile profile;
  const std::int64_t version = fields.integer("version");
  if (fields.ok() && version != kProfileVersion)
    fields.complain("version",
                    "is " + std::to_string(version) + "; this gpuctl reads " + std::to_string(kProfileVersion));
  profile.gpu = fields.text("gpu");
  profile.sms = fields.integer("sms", 1, kMostSms);
  if (fields.ok()) profile.kernels = ipc::read_list<ipc::KernelProfile>(fields, "kernels");
  fields.refuse_unknown();
  if (!fields.ok()) return fail(file + ": " + fields.error().message);
  return profile;
}

Result<Profile> read_profile(const std::string& file) {
  const auto text = read_regular_file(file, kMostProfileBytes);
  if (!text) return text.error();
  return parse_profile(*text, file);
}

Result<void> may_be_written(const std::string& file) {
  const std::filesystem::path path(file), folder = path.has_parent_path() ? path.parent_path() : ".";
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return fail(file + ": is a directory");
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return fail(file + ": cannot be written: " + std::strerror(errno));
  return {};
}

Result<void> write_profile(const std::string& file, const Profile& profile) {
  const auto failed = replace_file(file, to_text(profile), file + ".unfinished");
  if (failed) return fail(failed->file + ": cannot be written: " + std::strerror(failed->error));
  return {};
}

Result<void> check_writers(const std::string& file, uid_t user) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return fail(file + ": cannot be read: " + std::strerror(errno));
  if (status.st_uid != user && status.st_uid != 0)
    return fail(file + ": belongs to another user, whose word is not taught in your name; copy it first");
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) return fail(file + ": others may write to it; chmod go-w it first");
  return {};
}

}  // namespace gpuctl::cli
