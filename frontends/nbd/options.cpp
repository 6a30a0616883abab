#include "frontends/nbd/options.h"

#include <fmt/format.h>

#include <set>

#include "frontends/nbd/connection_memory.h"
#include "frontends/nbd/protocol.h"

namespace tuck::nbd {

namespace {

Error invalid(std::string message) {
  return Error{Errc::invalid, std::move(message)};
}

}  // namespace

Status check_options(const ServerOptions& options) {
  if (options.exports.empty()) return invalid("there is no export: at least one is needed");
  std::set<std::string> names;
  for (const Export& e : options.exports) {
    if (e.name.size() > kStringBytesMax || e.description.size() > kStringBytesMax) {
      return invalid(
          fmt::format("names and descriptions of exports have at most {} bytes", kStringBytesMax));
    }
    if (e.name.find('\0') != std::string::npos) return invalid("an export's name has a zero byte");
    if (e.area == nullptr) return invalid(fmt::format("export \"{}\" has no area", e.name));
    if (!names.insert(e.name).second) {
      return invalid(fmt::format("two exports are called \"{}\": names must differ", e.name));
    }
  }
  if (options.connections_max == 0 || options.connections_max > kConnectionsMax) {
    return invalid(fmt::format("the number of connections must be 1 to {}", kConnectionsMax));
  }
  if (options.workers > kWorkersMax) {
    return invalid(fmt::format("the number of workers must be at most {}", kWorkersMax));
  }
  if (options.in_flight_bytes_max != 0 &&
      options.in_flight_bytes_max < in_flight_bytes_a_client()) {
    return invalid(fmt::format("one client needs {} of buffers: bytes in flight must be 0 or more",
                               format_size_rounded(in_flight_bytes_a_client())));
  }
  if (options.negotiation.options_max == 0 || options.negotiation.bytes_max == 0) {
    return invalid("a client needs one option, and its bytes, at least");
  }
  if (options.stall.request.count() < 0 || options.stall.reply.count() < 0) {
    return invalid("the times that clients may stall must not be negative");
  }
  if (options.negotiation_time_max.count() <= 0 || options.poll_time.count() < 0) {
    return invalid("times must not be negative, and negotiating must be given some");
  }
  return std::nullopt;
}

uint64_t in_flight_bytes_a_client() noexcept {
  return TransmissionPlace::kBytes;
}

WorkerOptions worker_options_of(const ServerOptions& options, ClientLog& log) {
  WorkerOptions result;
  result.exports = options.exports;
  result.connections_max = options.connections_max;
  result.negotiation_time_max = options.negotiation_time_max;
  result.negotiation = options.negotiation;
  result.stall = options.stall;
  result.poll_time = options.poll_time;
  result.log = &log;
  return result;
}

}  // namespace tuck::nbd
