#include "frontends/cli/client_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>

namespace tuck::cli {
namespace {

constexpr unsigned kSecondsMax = 24 * 3600;
constexpr unsigned kOptionsMax = 1'000'000;
// Room for any one option that the protocol knows.
constexpr uint64_t kNegotiationBytesMin = 16ull << 10;
constexpr uint64_t kNegotiationBytesMax = 1ull << 30;

Error usage(std::string message) {
  return Error{Errc::invalid, std::move(message)};
}

Status check_number(const char* option, unsigned number, unsigned least, unsigned most) {
  if (number >= least && number <= most) return std::nullopt;
  return usage(std::string(option) + ": " + std::to_string(number) + " is not between " +
               std::to_string(least) + " and " + std::to_string(most));
}

Result<uint64_t, Error> check_size(const std::string& option, const std::string& text,
                                   uint64_t least, uint64_t most) {
  Result<uint64_t, Error> size = parse_size(text);
  if (!size) return usage(option + ": " + size.error().message);
  if (*size < least || *size > most) {
    return usage(option + ": '" + text + "' is not between " + format_size(least) + " and " +
                 format_size(most));
  }
  return *size;
}

Status check_users(const std::vector<std::string>& texts, nbd::PeerPolicy& policy) {
  for (const std::string& text : texts) {
    if (text == kAnyUser) {
      policy.any_user = true;
      continue;
    }
    uint32_t user = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, failure] = std::from_chars(text.data(), end, user);
    // The highest number means "no user" to the system.
    if (failure != std::errc{} || rest != end || user == UINT32_MAX) {
      return usage("--allow-uid: '" + text + "' is not a user's number (as id -u prints it), nor " +
                   kAnyUser);
    }
    policy.users.push_back(user);
  }
  return std::nullopt;
}

}  // namespace

void add_client_options(CLI::App& serve, ClientArguments& arguments) {
  const auto add = [&serve](const char* name, auto& value, const char* help, const char* type) {
    return serve.add_option(name, value, help)->type_name(type)->take_last();
  };
  serve
      .add_option("--allow-uid", arguments.allowed_users,
                  "Let this user's processes use the Unix sockets too, besides root's and our own, "
                  "or any; may be repeated")
      ->type_name("UID")
      ->allow_extra_args(false);
  add("--in-flight", arguments.in_flight,
      "Buffers for requests and replies of all clients together; whoever comes then is refused "
      "[enough for --connections]",
      "SIZE");
  add("--negotiation-time", arguments.negotiation_s,
      "Seconds that a client has until it opens a disk", "S")
      ->capture_default_str();
  add("--negotiation-options", arguments.negotiation_options,
      "Options that a client may send until it opens a disk", "N")
      ->capture_default_str();
  add("--negotiation-bytes", arguments.negotiation_bytes,
      "Bytes that a client may send until it opens a disk", "SIZE")
      ->capture_default_str();
  add("--request-stall", arguments.request_stall_s,
      "Close clients that send nothing for so many seconds in the middle of a request; 0: never",
      "S")
      ->capture_default_str();
  add("--reply-stall", arguments.reply_stall_s,
      "Close clients that take nothing of their replies for so many seconds; 0: never", "S")
      ->capture_default_str();
}

Result<ClientSettings, Error> check_clients(const ClientArguments& arguments) {
  ClientSettings settings;
  if (!arguments.in_flight.empty()) {
    const uint64_t least = nbd::in_flight_bytes_a_client();
    Result<uint64_t, Error> bytes =
        check_size("--in-flight", arguments.in_flight, least, least * nbd::kConnectionsMax);
    if (!bytes) return bytes.error();
    settings.in_flight_bytes_max = *bytes;
  }
  for (const Status& wrong :
       {check_number("--negotiation-time", arguments.negotiation_s, 1, kSecondsMax),
        check_number("--negotiation-options", arguments.negotiation_options, 1, kOptionsMax),
        check_number("--request-stall", arguments.request_stall_s, 0, kSecondsMax),
        check_number("--reply-stall", arguments.reply_stall_s, 0, kSecondsMax),
        check_users(arguments.allowed_users, settings.peers)}) {
    if (wrong) return *wrong;
  }
  Result<uint64_t, Error> bytes = check_size("--negotiation-bytes", arguments.negotiation_bytes,
                                             kNegotiationBytesMin, kNegotiationBytesMax);
  if (!bytes) return bytes.error();
  settings.negotiation.bytes_max = *bytes;
  settings.negotiation.option_bytes_max = static_cast<uint32_t>(
      std::min<uint64_t>(settings.negotiation.option_bytes_max, settings.negotiation.bytes_max));
  settings.negotiation.options_max = arguments.negotiation_options;
  settings.negotiation_time_max = std::chrono::seconds(arguments.negotiation_s);
  settings.stall.request = std::chrono::seconds(arguments.request_stall_s);
  settings.stall.reply = std::chrono::seconds(arguments.reply_stall_s);
  return settings;
}

void set_client_options(const ClientSettings& settings, nbd::ServerOptions& options) {
  options.in_flight_bytes_max = settings.in_flight_bytes_max;
  options.negotiation_time_max = settings.negotiation_time_max;
  options.negotiation = settings.negotiation;
  options.stall = settings.stall;
  options.peers = settings.peers;
}

}  // namespace tuck::cli
