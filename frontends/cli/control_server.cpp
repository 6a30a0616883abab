#include "frontends/cli/control_server.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

namespace tuck::cli {
namespace {

sockaddr_un socket_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof address.sun_path - 1));
  return address;
}

Error failed(const std::string& path, const std::string& what) {
  return Error{Errc::invalid, "--control: '" + path + "' " + what};
}

Error system_failed(const std::string& path, const char* what) {
  return failed(path, std::string(what) + ": " + std::strerror(errno));
}

// Makes room for the socket: a file that no server answers on goes away.
Status remove_stale_socket(const std::string& path, const sockaddr_un& address) {
  struct stat state {};
  if (lstat(path.c_str(), &state) != 0)
    return std::nullopt;  // bind says what is wrong, if anything
  if (!S_ISSOCK(state.st_mode)) {
    return failed(path, "is not a socket; remove it, or give another path");
  }
  const FileDescriptor probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe) return system_failed(path, "cannot be tried");
  // A full backlog (EAGAIN) is a living server as well.
  if (connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
      errno == EAGAIN) {
    return failed(path, "belongs to a running server; stop that one, or give another path");
  }
  if (errno != ECONNREFUSED) return system_failed(path, "cannot be tried");
  if (unlink(path.c_str()) != 0) return system_failed(path, "is stale and cannot be removed");
  return std::nullopt;
}

}  // namespace

Result<std::unique_ptr<ControlServer>, Error> ControlServer::open(const std::string& path,
                                                                  Answer answer) {
  const sockaddr_un address = socket_address(path);
  if (Status wrong = remove_stale_socket(path, address)) return *wrong;
  FileDescriptor listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) return system_failed(path, "cannot be opened");
  // On Linux the file gets the mode that the socket has before it is bound, so there is no moment
  // at which others may connect.
  if (fchmod(listener.get(), 0600) != 0 ||
      bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return system_failed(path, "cannot be made");
  }
  if (listen(listener.get(), kConnectionsMax) != 0) {
    Error error = system_failed(path, "cannot be listened on");
    unlink(path.c_str());
    return error;
  }
  return std::unique_ptr<ControlServer>(
      new ControlServer(path, std::move(listener), std::move(answer)));
}

ControlServer::ControlServer(std::string path, FileDescriptor listener, Answer answer)
    : path_(std::move(path)), listener_(std::move(listener)), answer_(std::move(answer)) {
  connections_.reserve(kConnectionsMax);
  struct stat state {};
  if (lstat(path_.c_str(), &state) == 0) {
    device_ = state.st_dev;
    inode_ = state.st_ino;
  }
}

ControlServer::~ControlServer() {
  struct stat state {};
  if (lstat(path_.c_str(), &state) == 0 && state.st_dev == device_ && state.st_ino == inode_) {
    unlink(path_.c_str());
  }
}

void ControlServer::add(std::vector<pollfd>& waits) const {
  // With all places taken the next clients wait in the backlog.
  if (connections_.size() < kConnectionsMax) {
    waits.push_back({.fd = listener_.get(), .events = POLLIN, .revents = 0});
  }
  for (const Connection& connection : connections_) {
    const short events = connection.reply.empty() ? POLLIN : POLLOUT;
    waits.push_back({.fd = connection.socket.get(), .events = events, .revents = 0});
  }
}

int ControlServer::timeout() const {
  if (connections_.empty()) return -1;
  const auto first = std::min_element(
      connections_.begin(), connections_.end(),
      [](const Connection& a, const Connection& b) { return a.deadline < b.deadline; });
  // Rounded up, so that the wait does not end just before the deadline again and again.
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(first->deadline - Clock::now());
  return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

void ControlServer::handle(const std::vector<pollfd>& waits) {
  const auto woken = [&waits](const FileDescriptor& fd) {
    return std::any_of(waits.begin(), waits.end(), [&fd](const pollfd& wait) {
      return wait.fd == fd.get() && wait.revents != 0;
    });
  };
  const Clock::time_point now = Clock::now();
  for (Connection& connection : connections_) {
    const bool late = connection.deadline <= now;
    if (late || (woken(connection.socket) && !serve(connection))) connection.socket.reset();
  }
  std::erase_if(connections_, [](const Connection& connection) { return !connection.socket; });
  if (woken(listener_)) accept_all();
}

void ControlServer::accept_all() {
  while (connections_.size() < kConnectionsMax) {
    FileDescriptor client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!client) return;
    Connection& connection = connections_.emplace_back();
    connection.socket = std::move(client);
    connection.deadline = Clock::now() + kPatience;
  }
}

bool ControlServer::serve(Connection& connection) {
  // Figures are not worth the end of the server: without memory for an answer there is none.
  try {
    if (connection.reply.empty() && !receive(connection)) return false;
  } catch (const std::bad_alloc&) {
    return false;
  }
  return connection.reply.empty() || send_on(connection);
}

bool ControlServer::receive(Connection& connection) {
  std::array<char, kRequestMax> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  const size_t room = kRequestMax - connection.request.size();
  const ssize_t got = recv(connection.socket.get(), buffer.data(), room, 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  connection.request.append(buffer.data(), static_cast<size_t>(got));
  const size_t end = connection.request.find('\n');
  // A client that says no more has ended its line too.
  if (end != std::string::npos || (got == 0 && !connection.request.empty())) {
    connection.reply = answer_(std::string_view(connection.request).substr(0, end));
  } else if (connection.request.size() >= kRequestMax) {
    connection.reply = "{\"error\":\"the request is longer than 4096 bytes\"}\n";
  } else if (got == 0) {
    return false;
  }
  return true;
}

bool ControlServer::send_on(Connection& connection) {
  const std::string_view rest = std::string_view(connection.reply).substr(connection.sent);
  const ssize_t sent = send(connection.socket.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
  if (sent < 0) return errno == EAGAIN || errno == EINTR;
  connection.sent += static_cast<size_t>(sent);
  return connection.sent < connection.reply.size();
}

}  // namespace tuck::cli
