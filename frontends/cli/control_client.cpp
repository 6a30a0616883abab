#include "frontends/cli/control_client.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "frontends/cli/file_descriptor.h"

namespace tuck::cli {
namespace {

// Far above any answer; keeps a wrong peer from filling memory.
constexpr size_t kAnswerMax = 64u << 20;

Error failed(const std::string& path, const std::string& what) {
  return Error{Errc::invalid, "control socket '" + path + "': " + what};
}

Error describe_connect(const std::string& path, int code) {
  switch (code) {
    case ENOENT:
      return failed(path, "no such file; give --control PATH as tuck serve was given it");
    case ECONNREFUSED:
      return failed(path, "no server behind it; start one with tuck serve --control " + path);
    case EACCES:
      return failed(path, "not allowed; ask as the user that runs the server");
    default:
      return failed(path, std::strerror(code));
  }
}

Error describe_transfer(const std::string& path) {
  if (errno == EAGAIN) return failed(path, "the server does not answer in time; try again");
  return failed(path, std::strerror(errno));
}

}  // namespace

Result<std::string, Error> ask_control(const std::string& path, const std::string& line,
                                       std::chrono::milliseconds patience) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return failed(path, "not a path that a socket can have");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  const FileDescriptor server(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!server) return failed(path, std::strerror(errno));
  timeval limit{};
  limit.tv_sec = patience.count() / 1000;
  limit.tv_usec = (patience.count() % 1000) * 1000;
  setsockopt(server.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(server.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return describe_connect(path, errno);
  }
  const std::string request = line + "\n";
  std::string_view rest = request;
  while (!rest.empty()) {
    const ssize_t sent = send(server.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0) return describe_transfer(path);
    rest.remove_prefix(static_cast<size_t>(sent));
  }
  std::string answer;
  std::array<char, 16384> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  while (true) {
    const ssize_t got = recv(server.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return describe_transfer(path);
    if (got == 0) return answer;
    answer.append(buffer.data(), static_cast<size_t>(got));
    if (answer.size() > kAnswerMax) return failed(path, "the answer has no end; is this tuck's?");
  }
}

}  // namespace tuck::cli
