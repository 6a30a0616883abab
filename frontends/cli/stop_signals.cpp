#include "frontends/cli/stop_signals.h"

#include <sys/signalfd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace tuck::cli {

Result<StopSignals, Error> StopSignals::take() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGQUIT);
  // A terminal that is closed is no reason to lose a disk at once. Started by nohup, which ignores
  // it, it is none at all; a signal that is blocked would come here all the same.
  struct sigaction hangup {};
  if (sigaction(SIGHUP, nullptr, &hangup) != 0 || hangup.sa_handler != SIG_IGN) {
    sigaddset(&set, SIGHUP);
  }
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  FileDescriptor fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return Error{Errc::no_space, std::string("signalfd: ") + std::strerror(errno)};
  return StopSignals(std::move(fd));
}

std::string StopSignals::take_name() {
  signalfd_siginfo info{};
  if (read(fd_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return "";
  switch (info.ssi_signo) {
    case SIGTERM:
      return "SIGTERM";
    case SIGHUP:
      return "SIGHUP";
    case SIGQUIT:
      return kStopAtOnce;
    default:
      return "SIGINT";
  }
}

}  // namespace tuck::cli
