#include "frontends/cli/serve_options.h"

#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_set>
#include <utility>

namespace tuck::cli {
namespace {

// 2^32 slots: SlotIndex has 32 bits.
constexpr uint64_t kExportBytesMax = uint64_t{kPageSize} << 32;
// The NBD protocol's bound for a name.
constexpr size_t kExportNameMax = 4096;
constexpr size_t kSocketPathMax = sizeof(sockaddr_un{}.sun_path) - 1;
// A pool smaller than this has no room for one zspage of every size class in use.
constexpr uint64_t kMemoryLimitMin = 1ull << 20;
// A reserve is populated in blocks of 256 KiB.
constexpr uint64_t kReserveMin = 256ull << 10;

Error usage(std::string message) {
  return Error{Errc::invalid, std::move(message)};
}

Result<uint64_t, Error> parse_size_option(const std::string& option, const std::string& text) {
  Result<uint64_t, Error> size = parse_size(text);
  if (!size) return usage(option + ": " + size.error().message);
  return *size;
}

Result<uint64_t, Error> parse_export_size(const std::string& option, const std::string& text) {
  Result<uint64_t, Error> size = parse_size_option(option, text);
  if (!size) return size.error();
  if (*size == 0 || *size > kExportBytesMax) {
    return usage(option + ": an export has 1 byte to " + format_size(kExportBytesMax) + ", not '" +
                 text + "'");
  }
  return *size;
}

Result<std::vector<ExportSetting>, Error> check_exports(const ServeArguments& arguments) {
  std::vector<ExportSetting> exports;
  uint64_t default_bytes = 0;
  if (!arguments.size.empty()) {  // wrong is wrong, also where each export has its own
    Result<uint64_t, Error> size = parse_export_size("--size", arguments.size);
    if (!size) return size.error();
    default_bytes = *size;
  }
  if (arguments.exports.empty()) {
    if (default_bytes == 0) {
      return usage(
          "no size: give --size S for one export, or --export NAME:SIZE for each of several");
    }
    exports.push_back({.name = "", .size_bytes = default_bytes});
    return exports;
  }
  std::unordered_set<std::string> names;
  for (const std::string& text : arguments.exports) {
    Result<ExportSetting, Error> one = parse_export(text, arguments.size);
    if (!one) return one.error();
    if (!names.insert(one->name).second) {
      return usage("--export: the name '" + one->name +
                   "' is given twice; each export needs its own");
    }
    exports.push_back(std::move(*one));
  }
  return exports;
}

Result<std::vector<nbd::ListenAddress>, Error> check_listen(const ServeArguments& arguments,
                                                            int inherited_sockets) {
  std::vector<nbd::ListenAddress> listen;
  const bool addresses = !arguments.unix_paths.empty() || !arguments.tcp_addresses.empty();
  if (arguments.stdio) {
    if (addresses)
      return usage(
          "--stdio serves one client and listens to nothing: leave out --unix and --listen");
    if (inherited_sockets != 0)
      return usage(
          "--stdio serves one client and listens to nothing, but sockets were handed over "
          "(LISTEN_FDS): start it without them, or leave out --stdio");
    return listen;
  }
  if (!addresses && inherited_sockets == 0) {
    return usage("nowhere to listen: give --unix PATH, --listen HOST:PORT or --stdio");
  }
  std::unordered_set<std::string> seen;
  for (const std::string& path : arguments.unix_paths) {
    if (Status wrong = check_socket_path("--unix", path)) return *wrong;
    if (!seen.insert("unix:" + path).second) return usage("--unix: '" + path + "' is given twice");
    nbd::ListenAddress address;
    address.unix_path = path;
    listen.push_back(std::move(address));
  }
  for (const std::string& text : arguments.tcp_addresses) {
    Result<nbd::ListenAddress, Error> address = parse_tcp_address(text);
    if (!address) return address.error();
    if (!seen.insert("tcp:" + text).second) return usage("--listen: '" + text + "' is given twice");
    listen.push_back(std::move(*address));
  }
  return listen;
}

Status check_number(const char* option, unsigned number, unsigned least, unsigned most) {
  if (number >= least && number <= most) return std::nullopt;
  return usage(std::string(option) + ": " + std::to_string(number) + " is not between " +
               std::to_string(least) + " and " + std::to_string(most));
}

Result<ControlSetting, Error> check_control(const ServeArguments& arguments) {
  ControlSetting control;
  if (arguments.control == kNoControl) return control;
  control.required = !arguments.control.empty();
  // One client on standard input has the lifetime of a command; it leaves no file behind unasked.
  if (!control.required && arguments.stdio) return control;
  control.path = control.required ? arguments.control : kDefaultControlPath;
  if (Status wrong = check_socket_path("--control", control.path)) return *wrong;
  for (const std::string& path : arguments.unix_paths) {
    if (path == control.path) {
      return usage("--control: '" + path + "' is where --unix serves the disk; give another path");
    }
  }
  return control;
}

// --swap, --lock-memory, --reserve.
Status check_protection(const ServeArguments& arguments, ServeSettings& settings) {
  if (arguments.swap) {
    if (arguments.stdio) {
      return usage("--swap: the kernel's client connects to a socket; leave out --stdio");
    }
    settings.protection = ProtectionMode::strict;
    settings.reserve_bytes = kReserveDefaultSwap;
  } else if (arguments.lock_memory) {
    settings.protection = ProtectionMode::best_effort;
  }
  const uint64_t limit = settings.memory_limit_bytes;
  // Frames held ready count against the limit; a small pool keeps at most an eighth of it for them.
  if (limit != 0) settings.reserve_bytes = std::min(settings.reserve_bytes, limit / 8);
  if (arguments.reserve.empty()) return std::nullopt;
  Result<uint64_t, Error> reserve = parse_size_option("--reserve", arguments.reserve);
  if (!reserve) return reserve.error();
  if (*reserve < kReserveMin || (limit != 0 && *reserve > limit / 2)) {
    return usage("--reserve: '" + arguments.reserve + "' is not between " +
                 format_size(kReserveMin) + " and half of --memory-limit");
  }
  settings.reserve_bytes = *reserve;
  return std::nullopt;
}

}  // namespace

Status check_socket_path(const std::string& option, const std::string& path) {
  if (path.empty()) return usage(option + ": the path is empty");
  if (path.size() > kSocketPathMax) {
    return usage(option + ": the path has " + std::to_string(path.size()) +
                 " bytes and a socket's may have " + std::to_string(kSocketPathMax) +
                 "; give a shorter one, or one relative to the working directory");
  }
  return std::nullopt;
}

Result<ExportSetting, Error> parse_export(const std::string& text,
                                          const std::string& default_size) {
  ExportSetting setting;
  // The last colon divides, so that a name may hold colons when the size is given as well.
  const size_t colon = text.rfind(':');
  setting.name = text.substr(0, colon);
  const bool own_size = colon != std::string::npos;
  if (!own_size && default_size.empty()) {
    return usage("--export: '" + text + "' has no size: write NAME:SIZE, or give --size for all");
  }
  if (setting.name.size() > kExportNameMax) {
    return usage("--export: a name has at most " + std::to_string(kExportNameMax) + " bytes");
  }
  Result<uint64_t, Error> size = own_size ? parse_export_size("--export", text.substr(colon + 1))
                                          : parse_export_size("--size", default_size);
  if (!size) return size.error();
  setting.size_bytes = *size;
  return setting;
}

Result<nbd::ListenAddress, Error> parse_tcp_address(const std::string& text) {
  const auto wrong = [&text] {
    return usage("--listen: '" + text +
                 "' is not HOST:PORT, as in 127.0.0.1:10809, localhost:10809 or [::1]:10809");
  };
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return wrong();
  std::string host = text.substr(0, colon);
  if (host.front() == '[') {
    if (host.back() != ']' || host.size() < 3) return wrong();
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string::npos) {
    return wrong();
  }
  nbd::ListenAddress address;
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data() + colon + 1, end, address.tcp_port);
  if (failure != std::errc{} || rest != end) return wrong();
  if (Status wrong_host = nbd::check_tcp_host(host)) {
    return usage("--listen: " + wrong_host->message);
  }
  address.tcp_host = std::move(host);
  return address;
}

Result<ServeSettings, Error> check_serve(const ServeArguments& arguments, int inherited_sockets) {
  ServeSettings settings;
  settings.stdio = arguments.stdio;

  Result<std::vector<nbd::ListenAddress>, Error> listen =
      check_listen(arguments, inherited_sockets);
  if (!listen) return listen.error();
  settings.listen = std::move(*listen);

  Result<std::vector<ExportSetting>, Error> exports = check_exports(arguments);
  if (!exports) return exports.error();
  settings.exports = std::move(*exports);

  Result<engine::CodecSetting, Error> codec = engine::parse_codec(arguments.codec);
  if (!codec) return usage("--codec: " + codec.error().message);
  settings.codec = *codec;

  if (!arguments.memory_limit.empty()) {
    Result<uint64_t, Error> limit = parse_size_option("--memory-limit", arguments.memory_limit);
    if (!limit) return limit.error();
    if (*limit < kMemoryLimitMin) {
      return usage("--memory-limit: '" + arguments.memory_limit +
                   "' is too little to store in; give " + format_size(kMemoryLimitMin) +
                   " or more, or leave it out for no limit");
    }
    settings.memory_limit_bytes = *limit;
  }

  if (Status wrong = check_protection(arguments, settings)) return *wrong;

  if (arguments.workers != 0) {
    if (Status wrong = check_number("--workers", arguments.workers, 1, nbd::kWorkersMax))
      return *wrong;
  }
  if (arguments.connections != 0) {
    settings.connections_max = arguments.connections;
  } else if (settings.protection == ProtectionMode::strict) {
    settings.connections_max = kConnectionsDefaultSwap;
  } else if (settings.protection == ProtectionMode::best_effort) {
    settings.connections_max = kConnectionsDefaultLocked;
  }
  if (Status wrong =
          check_number("--connections", settings.connections_max, 1, nbd::kConnectionsMax))
    return *wrong;
  Result<ClientSettings, Error> clients = check_clients(arguments.clients);
  if (!clients) return clients.error();
  settings.clients = std::move(*clients);
  const bool swap = settings.protection == ProtectionMode::strict;
  const unsigned poll_us = arguments.poll_us.value_or(swap ? kPollDefaultSwapUs : kPollDefaultUs);
  if (Status wrong = check_number("--poll", poll_us, 0, kPollMaxUs)) return *wrong;
  settings.workers = arguments.workers;
  settings.poll_time = std::chrono::microseconds(poll_us);

  Result<ControlSetting, Error> control = check_control(arguments);
  if (!control) return control.error();
  settings.control = std::move(*control);
  return settings;
}

}  // namespace tuck::cli
