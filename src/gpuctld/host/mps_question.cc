#include "gpuctld/host/mps_question.h"

#include <sys/un.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "gpuctld/host/child_program.h"
#include "gpuctld/host/mps_helper.h"

namespace gpuctl::daemon {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

/// Output of the control program, and the line that ends it.
constexpr std::size_t kMostMpsAnswer = ChildProgram::kMostOutput + 1024;

}  // namespace

Result<std::shared_ptr<MpsQuestion>> MpsQuestion::ask(asio::io_context& context, const std::string& socket,
                                                      const std::string& command, Done done) {
  if (socket.size() >= sizeof(sockaddr_un::sun_path)) return fail(socket + ": too long for the path of a socket");
  std::shared_ptr<MpsQuestion> question(new MpsQuestion(context, socket, command + "\n", std::move(done)));
  question->connect();
  return question;
}

MpsQuestion::MpsQuestion(asio::io_context& context, std::string path, std::string text, Done done)
    : connection_(context), path_(std::move(path)), text_(std::move(text)), done_(std::move(done)) {}

void MpsQuestion::cancel() {
  done_ = nullptr;
  error_code ignored;
  connection_.close(ignored);
}

void MpsQuestion::connect() {
  connection_.async_connect(path_, [self = shared_from_this()](error_code error) {
    if (!self->failed(error)) self->write();
  });
}

void MpsQuestion::write() {
  asio::async_write(connection_, asio::buffer(text_), [self = shared_from_this()](error_code error, std::size_t) {
    if (!self->failed(error)) self->read();
  });
}

void MpsQuestion::read() {
  text_.clear();
  asio::async_read(connection_, asio::dynamic_buffer(text_, kMostMpsAnswer),
                   [self = shared_from_this()](error_code error, std::size_t) {
                     if (error != asio::error::eof && self->failed(error)) return;
                     auto output = from_mps_answer(std::move(self->text_));
                     self->finish(output ? std::move(output) : fail(self->path_ + ": " + output.error().message));
                   });
}

/// Ends the question if there is an error, or if it was cancelled.
bool MpsQuestion::failed(error_code error) {
  if (error) finish(fail("cannot give commands for MPS at " + path_ + ": " + error.message()));
  return !done_;
}

void MpsQuestion::finish(const Result<std::string>& output) {
  const Done done = std::exchange(done_, nullptr);
  cancel();
  if (done) done(output);
}

}  // namespace gpuctl::daemon
