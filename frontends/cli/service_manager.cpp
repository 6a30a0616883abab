#include "frontends/cli/service_manager.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include <cerrno>
#include <cstring>

namespace tuck::cli {
namespace {

// TCP beyond this machine needs TLS, whoever has bound the socket.
bool is_local(int socket_fd) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (getsockname(socket_fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return false;
  if (storage.ss_family == AF_UNIX) return true;
  if (storage.ss_family == AF_INET) {
    sockaddr_in address{};
    std::memcpy(&address, &storage, sizeof address);
    return (ntohl(address.sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
  }
  if (storage.ss_family == AF_INET6) {
    sockaddr_in6 address{};
    std::memcpy(&address, &storage, sizeof address);
    return IN6_IS_ADDR_LOOPBACK(&address.sin6_addr) != 0;
  }
  return false;
}

}  // namespace

Result<std::vector<int>, Error> take_inherited_sockets() {
  const int count = sd_listen_fds(/*unset_environment=*/1);
  if (count < 0) {
    return Error{Errc::invalid,
                 std::string("LISTEN_FDS: the sockets handed over cannot be taken: ") +
                     std::strerror(-count)};
  }
  std::vector<int> sockets;
  for (int fd = SD_LISTEN_FDS_START; fd < SD_LISTEN_FDS_START + count; ++fd) {
    const std::string name = "LISTEN_FDS: descriptor " + std::to_string(fd);
    if (sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, /*listening=*/1) <= 0) {
      return Error{Errc::invalid, name +
                                      " is not a listening stream socket; use ListenStream= and "
                                      "Accept=no in the socket unit"};
    }
    if (!is_local(fd)) {
      return Error{Errc::invalid,
                   name +
                       " listens beyond this machine, and there is no TLS yet; use a "
                       "Unix socket or a loopback address"};
    }
    // Service managers hand over sockets that block; the server asks them until there is no more.
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0) {
      return Error{Errc::invalid, name + " cannot be used: " + std::strerror(errno)};
    }
    sockets.push_back(fd);
  }
  return sockets;
}

void notify_ready(const std::string& status) {
  // A manager that is gone is no reason to stop serving; there is nobody else to tell.
  static_cast<void>(sd_notify(0, ("READY=1\nSTATUS=" + status).c_str()));
}

void notify_stopping() {
  static_cast<void>(sd_notify(0, "STOPPING=1\nSTATUS=Stopping"));
}

}  // namespace tuck::cli
