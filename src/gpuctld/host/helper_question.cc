#include "gpuctld/host/helper_question.h"

#include <sys/un.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "gpuctld/host/child_program.h"

namespace gpuctl::daemon {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

/// Output of a program, and the line that ends it.
constexpr std::size_t kMostHelperAnswer = ChildProgram::kMostOutput + 1024;

}  // namespace

Result<std::shared_ptr<HelperQuestion>> HelperQuestion::ask(asio::io_context& context, const std::string& socket,
                                                            std::string line, std::string what, Done done) {
  if (socket.size() >= sizeof(sockaddr_un::sun_path)) return fail(socket + ": too long for the path of a socket");
  std::shared_ptr<HelperQuestion> question(
      new HelperQuestion(context, socket, std::move(line), std::move(what), std::move(done)));
  question->connect();
  return question;
}

HelperQuestion::HelperQuestion(asio::io_context& context, std::string path, std::string text, std::string what,
                               Done done)
    : connection_(context),
      path_(std::move(path)),
      text_(std::move(text)),
      what_(std::move(what)),
      done_(std::move(done)) {}

void HelperQuestion::cancel() {
  done_ = nullptr;
  error_code ignored;
  connection_.close(ignored);
}

void HelperQuestion::connect() {
  connection_.async_connect(path_, [self = shared_from_this()](error_code error) {
    if (!self->failed(error)) self->write();
  });
}

void HelperQuestion::write() {
  asio::async_write(connection_, asio::buffer(text_), [self = shared_from_this()](error_code error, std::size_t) {
    if (!self->failed(error)) self->read();
  });
}

void HelperQuestion::read() {
  text_.clear();
  asio::async_read(connection_, asio::dynamic_buffer(text_, kMostHelperAnswer),
                   [self = shared_from_this()](error_code error, std::size_t) {
                     if (error != asio::error::eof && self->failed(error)) return;
                     self->finish(std::move(self->text_));
                   });
}

/// Ends the question if there is an error, or if it was cancelled.
bool HelperQuestion::failed(error_code error) {
  if (error) finish(fail(what_ + " at " + path_ + ": " + error.message()));
  return !done_;
}

void HelperQuestion::finish(const Result<std::string>& answer) {
  const Done done = std::exchange(done_, nullptr);
  cancel();
  if (done) done(answer);
}

}  // namespace gpuctl::daemon
