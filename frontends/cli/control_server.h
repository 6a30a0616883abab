// The control socket: a client sends one line, gets one answer, and the connection ends.
//
// Everything runs in the thread that polls. Each connection has a deadline and bounded buffers, so
// a client that sends nothing, too much, or does not read costs one of kConnectionsMax places for
// kPatience at most, and never the other clients or the disk.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.h"
#include "frontends/cli/file_descriptor.h"

namespace tuck::cli {

class ControlServer {
 public:
  static constexpr size_t kRequestMax = 4096;  // bytes, newline included
  static constexpr size_t kConnectionsMax = 8;
  static constexpr std::chrono::seconds kPatience{5};

  // Gets the line without its newline, returns the whole answer.
  using Answer = std::function<std::string(std::string_view)>;

  // Listens on a Unix socket that its owner alone may use (mode 0600). The socket file of a dead
  // server is replaced. Errors: a living server listens there, the path is something else, or it
  // cannot be made.
  static Result<std::unique_ptr<ControlServer>, Error> open(const std::string& path, Answer answer);
  // Removes the socket file, unless it has become somebody else's.
  ~ControlServer();

  // One turn of a poll loop: add() what to wait for, poll at most timeout(), handle() what came.
  void add(std::vector<pollfd>& waits) const;
  // Milliseconds until a connection's patience ends; −1: there is none.
  int timeout() const;
  void handle(const std::vector<pollfd>& waits);

 private:
  using Clock = std::chrono::steady_clock;

  struct Connection {
    FileDescriptor socket;
    Clock::time_point deadline;
    std::string request;
    std::string reply;  // not empty: the request is complete
    size_t sent = 0;
  };

  ControlServer(std::string path, FileDescriptor listener, Answer answer);
  void accept_all();
  // Each returns whether the connection goes on.
  bool serve(Connection& connection);
  bool receive(Connection& connection);
  static bool send_on(Connection& connection);

  // Constant after construction.
  const std::string path_;
  const FileDescriptor listener_;
  const Answer answer_;
  dev_t device_ = 0;  // of the socket file that was made here
  ino_t inode_ = 0;

  std::vector<Connection> connections_;
};

}  // namespace tuck::cli
