#include "frontends/nbd/listen_socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace tuck::nbd {

namespace {

// A client that connects without waiting is turned away when so many others wait to be accepted, so
// there is room for a burst. The kernel's own bound (net.core.somaxconn) may be lower.
constexpr int kBacklog = 1024;

Error failed(std::string what) {
  return Error{Errc::invalid, fmt::format("{}: {}", what, std::strerror(errno))};
}

// For the query part of a URI: everything but unreserved characters and '/' is escaped.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || std::strchr("-._~/", c) != nullptr) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

Result<sockaddr_un, Error> unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return Error{Errc::invalid, fmt::format("the socket path \"{}\" must have 1 to {} characters",
                                            path, sizeof address.sun_path - 1)};
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// Takes away the socket file of a server that is gone. Nothing else at that path is touched.
Status make_way(const std::string& path, const sockaddr_un& address) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return std::nullopt;
  if (!S_ISSOCK(status.st_mode)) {
    return Error{Errc::invalid,
                 fmt::format("{} is there and is not a socket: choose another path", path)};
  }
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return failed("cannot make a socket");
  const int result = connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int error = errno;
  close(probe);
  if (result == 0 || error == EAGAIN) {
    return Error{
        Errc::invalid,
        fmt::format("{} is already served: stop that server or choose another path", path)};
  }
  if (error != ECONNREFUSED) {
    errno = error;
    return failed(fmt::format("cannot tell whether {} is served", path));
  }
  if (unlink(path.c_str()) != 0) return failed(fmt::format("cannot remove the stale {}", path));
  return std::nullopt;
}

bool is_loopback(const sockaddr_storage& storage) noexcept {
  if (storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    return ntohl(v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  if (storage.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
    return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) != 0;
  }
  return false;
}

struct TcpAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

// Loopback only: whoever can reach the port can read and write the disk.
Result<TcpAddress, Error> loopback(const std::string& host, uint16_t port) {
  TcpAddress address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  const std::string number = host == "localhost" ? "127.0.0.1" : host;
  if (inet_pton(AF_INET, number.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    address.length = sizeof *v4;
  } else if (inet_pton(AF_INET6, number.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address.length = sizeof *v6;
  }
  if (is_loopback(address.storage)) return address;
  return Error{Errc::invalid,
               fmt::format("will not listen on \"{}\": only loopback addresses (127.0.0.1, ::1, "
                           "localhost) until there is TLS; for other machines tunnel to it, "
                           "by ssh -L for example",
                           host)};
}

}  // namespace

Status check_tcp_host(const std::string& host) {
  const auto address = loopback(host, 0);
  if (address) return std::nullopt;
  return address.error();
}

ListenSocket::ListenSocket(ListenSocket&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      is_unix_(other.is_unix_),
      uri_(std::move(other.uri_)),
      path_(std::exchange(other.path_, {})),
      device_(other.device_),
      inode_(other.inode_) {}

ListenSocket::~ListenSocket() {
  struct stat status {};
  if (!path_.empty() && lstat(path_.c_str(), &status) == 0 && status.st_dev == device_ &&
      status.st_ino == inode_) {
    unlink(path_.c_str());
  }
  if (fd_ >= 0) close(fd_);
}

Result<ListenSocket, Error> ListenSocket::open(const ListenAddress& address) {
  ListenSocket socket;
  const int ways = (address.unix_path.empty() ? 0 : 1) + (address.tcp_host.empty() ? 0 : 1) +
                   (address.inherited_fd < 0 ? 0 : 1);
  if (ways != 1) {
    return Error{Errc::invalid,
                 "a place to listen is one of: a socket path, a host and port, a descriptor"};
  }
  Status error = !address.unix_path.empty()  ? socket.open_unix(address.unix_path)
                 : !address.tcp_host.empty() ? socket.open_tcp(address.tcp_host, address.tcp_port)
                                             : socket.adopt(address.inherited_fd);
  if (!error) error = socket.listen_and_name();
  if (error) return *error;
  return socket;
}

Status ListenSocket::open_unix(const std::string& path) {
  const auto address = unix_address(path);
  if (!address) return address.error();
  if (Status error = make_way(path, *address)) return error;
  fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0) return failed("cannot make a socket");
  // Before bind(): the file is made with these permissions, and is never open to others.
  fchmod(fd_, S_IRUSR | S_IWUSR);
  if (bind(fd_, reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0) {
    return failed(fmt::format("cannot listen on {}", path));
  }
  struct stat status {};
  if (lstat(path.c_str(), &status) == 0) {
    path_ = path;
    device_ = status.st_dev;
    inode_ = status.st_ino;
  }
  return std::nullopt;
}

Status ListenSocket::open_tcp(const std::string& host, uint16_t port) {
  const auto address = loopback(host, port);
  if (!address) return address.error();
  fd_ = socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0) return failed("cannot make a socket");
  const int on = 1;
  setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd_, reinterpret_cast<const sockaddr*>(&address->storage), address->length) != 0) {
    return failed(fmt::format("cannot listen on {}:{}", host, port));
  }
  return std::nullopt;
}

Status ListenSocket::adopt(int fd) {
  int type = 0;
  socklen_t length = sizeof type;
  if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM) {
    return Error{Errc::invalid,
                 fmt::format("descriptor {} is not a stream socket to listen on", fd)};
  }
  sockaddr_storage storage{};
  length = sizeof storage;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0) {
    return failed(fmt::format("cannot tell the address of descriptor {}", fd));
  }
  if (storage.ss_family != AF_UNIX && !is_loopback(storage)) {
    return Error{Errc::invalid,
                 fmt::format("descriptor {} listens beyond this machine, and there is no TLS yet: "
                             "hand over a Unix socket or a loopback address",
                             fd)};
  }
  // Service managers hand over sockets that block; the listener asks them until there is no more.
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) {
    return failed(fmt::format("cannot use descriptor {}", fd));
  }
  fd_ = fd;
  return std::nullopt;
}

Status ListenSocket::listen_and_name() {
  if (listen(fd_, kBacklog) != 0) return failed("cannot listen");
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (getsockname(fd_, reinterpret_cast<sockaddr*>(&storage), &length) != 0) {
    return failed("cannot tell a socket's address");
  }
  char text[INET6_ADDRSTRLEN] = {};
  is_unix_ = storage.ss_family == AF_UNIX;
  if (is_unix_) {
    const auto* address = reinterpret_cast<const sockaddr_un*>(&storage);
    uri_ = "nbd+unix:///?socket=" + escaped(address->sun_path);
  } else if (storage.ss_family == AF_INET) {
    const auto* address = reinterpret_cast<const sockaddr_in*>(&storage);
    inet_ntop(AF_INET, &address->sin_addr, text, sizeof text);
    uri_ = fmt::format("nbd://{}:{}/", text, ntohs(address->sin_port));
  } else if (storage.ss_family == AF_INET6) {
    const auto* address = reinterpret_cast<const sockaddr_in6*>(&storage);
    inet_ntop(AF_INET6, &address->sin6_addr, text, sizeof text);
    uri_ = fmt::format("nbd://[{}]:{}/", text, ntohs(address->sin6_port));
  }
  return std::nullopt;
}

}  // namespace tuck::nbd
