#include "gpuctld/host/exes.h"

#include <sys/un.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "base/join_text.h"
#include "base/read_write.h"

namespace gpuctl::daemon {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::string_view kExesEnd = "ok\n";
constexpr std::size_t kMostPidText = 20;  // characters
constexpr std::size_t kMostExesAsked = kMostExes * (kMostPidText + 1);
constexpr std::size_t kMostExesAnswer = kMostExes * (kMostJoinText + 2 * kMostPidText + 3) + kExesEnd.size();

/// Empty unless the text is numbers with one space between two of them.
std::optional<std::vector<std::int32_t>> pids_of_question(std::string_view text) {
  std::vector<std::int32_t> pids;
  for (bool more = true; more;) {
    std::int32_t pid = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    more = text.starts_with(' ');
    if (error != std::errc() || pid <= 0 || (!more && !text.empty()) || pids.size() == kMostExes) return std::nullopt;
    if (more) text.remove_prefix(1);
    pids.push_back(pid);
  }
  return pids;
}

}  // namespace

std::string exes_answer(std::string_view asked, const std::string& proc) {
  const auto pids = pids_of_question(asked);
  if (!pids) return {};
  std::string answer;
  for (const std::int32_t pid : *pids) {
    const std::uint64_t start = start_of(pid, proc);
    const std::string exe = exe_of(pid, proc);
    // Another path is none that a slice could name.
    if (start != 0 && start == start_of(pid, proc) && is_full_path(exe))
      answer += std::to_string(pid) + ' ' + std::to_string(start) + ' ' + exe + '\n';
  }
  return answer += kExesEnd;
}

std::string exe_in_answer(std::string_view answer, const ProcessIdentity& process) {
  if (answer != kExesEnd && !answer.ends_with("\n" + std::string(kExesEnd))) return {};
  const std::string front = std::to_string(process.pid) + ' ' + std::to_string(process.start) + ' ';
  while (!answer.empty()) {
    const std::string_view line = answer.substr(0, answer.find('\n'));
    if (line.starts_with(front)) return std::string(line.substr(front.size()));
    answer.remove_prefix(line.size() + 1);
  }
  return {};
}

int answer_exes(int in, int out) {
  std::string asked;
  read_pieces(in, [&asked](std::string_view piece) {
    asked += piece;
    return asked.size() <= kMostExesAsked && asked.find('\n') == asked.npos;
  });
  const std::string answer = exes_answer(std::string_view(asked).substr(0, asked.find('\n')));
  (void)write_all(out, answer);
  return answer.empty() ? 1 : 0;
}

ExeSearch::ExeSearch(asio::io_context& context, std::string socket, Pace pace)
    : socket_(std::move(socket)), pace_(pace), connection_(context), timer_(context) {}

void ExeSearch::find(const void* who, const ProcessIdentity& process, Found found) {
  waiting_[who] = {.process = process, .found = std::move(found)};
  if (asks_) return;
  asks_ = true;
  // Not from within the caller.
  asio::post(timer_.get_executor(), [this] {
    if (!stopped_) ask();
  });
}

void ExeSearch::forget(const void* who) {
  waiting_.erase(who);
}

void ExeSearch::stop() {
  stopped_ = true;
  waiting_.clear();
  error_code ignored;
  connection_.close(ignored);
  timer_.cancel();
}

void ExeSearch::ask() {
  text_.clear();
  std::size_t asked = 0;
  for (auto& [who, one] : waiting_) {
    if (asked++ == kMostExes) break;
    one.asked = true;
    text_ += (text_.empty() ? "" : " ") + std::to_string(one.process.pid);
  }
  if (waiting_.empty()) {
    asks_ = false;
    return;
  }
  if (socket_.empty()) {
    text_ = exes_answer(text_);
    return hear(true);
  }
  text_ += '\n';
  if (socket_.size() >= sizeof(sockaddr_un::sun_path)) return hear(false);
  timer_.expires_after(pace_.patience);
  timer_.async_wait([this](error_code error) {
    error_code ignored;
    if (!error) connection_.close(ignored);
  });
  connection_.async_connect(socket_, [this](error_code error) {
    if (stopped_) return;
    if (error) return hear(false);
    send();
  });
}

void ExeSearch::send() {
  asio::async_write(connection_, asio::buffer(text_), [this](error_code error, std::size_t) {
    if (stopped_) return;
    if (error) return hear(false);
    read();
  });
}

void ExeSearch::read() {
  text_.clear();
  asio::async_read(connection_, asio::dynamic_buffer(text_, kMostExesAnswer), [this](error_code error, std::size_t) {
    if (!stopped_) hear(error == asio::error::eof);
  });
}

/// Who is told may go, and take others along: so one is taken out after the other.
void ExeSearch::hear(bool whole) {
  error_code ignored;
  connection_.close(ignored);
  const std::string answer = whole ? std::exchange(text_, {}) : "";
  sees_ = answer.ends_with(kExesEnd);
  const auto asked = [this] {
    return std::ranges::find_if(waiting_, [](const auto& entry) { return entry.second.asked; });
  };
  for (auto next = asked(); next != waiting_.end(); next = asked()) {
    const Waiting one = std::move(waiting_.extract(next).mapped());
    one.found(exe_in_answer(answer, one.process));
    if (stopped_) return;
  }
  timer_.expires_after(pace_.pause);
  timer_.async_wait([this](error_code error) {
    if (!error && !stopped_) ask();
  });
}

}  // namespace gpuctl::daemon
