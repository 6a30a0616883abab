// What `tuck serve` accepts, and that what it refuses is said with the option's name.

#include "frontends/cli/serve_options.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace tuck::cli {
namespace {

ServeArguments valid() {
  ServeArguments arguments;
  arguments.unix_paths = {"disk.sock"};
  arguments.size = "64M";
  return arguments;
}

// Changes a valid set, which must then be refused with a message that holds all of the words.
template <class Change>
void expect_refused(Change change, const std::vector<std::string>& words) {
  ServeArguments arguments = valid();
  change(arguments);
  const auto settings = check_serve(arguments, 0);
  ASSERT_FALSE(settings.ok());
  for (const std::string& word : words) {
    EXPECT_NE(settings.error().message.find(word), std::string::npos)
        << "'" << word << "' is not in: " << settings.error().message;
  }
  EXPECT_EQ(settings.error().message.find('\n'), std::string::npos) << settings.error().message;
}

TEST(ServeOptions, OneDiskByDefault) {
  const auto settings = check_serve(valid(), 0);
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  ASSERT_EQ(settings->exports.size(), 1u);
  EXPECT_EQ(settings->exports[0], (ExportSetting{.name = "", .size_bytes = 64u << 20}));
  ASSERT_EQ(settings->listen.size(), 1u);
  EXPECT_EQ(settings->listen[0].unix_path, "disk.sock");
  EXPECT_EQ(settings->codec, (engine::CodecSetting{engine::CodecKind::lz4, 1}));
  EXPECT_EQ(settings->memory_limit_bytes, 0u);
  EXPECT_EQ(settings->control.path, kDefaultControlPath);
  EXPECT_FALSE(settings->control.required);
}

TEST(ServeOptions, ManyAddresses) {
  ServeArguments arguments = valid();
  arguments.unix_paths = {"a", "b"};
  arguments.tcp_addresses = {"127.0.0.1:10809", "[::1]:0", "localhost:65535"};
  const auto settings = check_serve(arguments, 0);
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  ASSERT_EQ(settings->listen.size(), 5u);
  EXPECT_EQ(settings->listen[1].unix_path, "b");
  EXPECT_EQ(settings->listen[2].tcp_host, "127.0.0.1");
  EXPECT_EQ(settings->listen[2].tcp_port, 10809);
  EXPECT_EQ(settings->listen[3].tcp_host, "::1");
  EXPECT_EQ(settings->listen[3].tcp_port, 0);
  EXPECT_EQ(settings->listen[4].tcp_host, "localhost");
  EXPECT_EQ(settings->listen[4].tcp_port, 65535);
}

TEST(ServeOptions, TcpAddressesThatAreNone) {
  for (const char* text : {"0.0.0.0:1", "192.0.2.1:10809", "[::]:1", "example.com:1"}) {
    const auto address = parse_tcp_address(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_TRUE(address.error().message.starts_with("--listen: ")) << address.error().message;
    EXPECT_NE(address.error().message.find("TLS"), std::string::npos) << address.error().message;
  }
  for (const char* text : {"", ":", "127.0.0.1", ":10809", "host:", "host:x", "host:1x", "host:-1",
                           "host:65536", "::1:10809", "[::1:1", "[]:1", "host: 1"}) {
    EXPECT_FALSE(parse_tcp_address(text).ok()) << text;
  }
}

TEST(ServeOptions, SeveralExports) {
  ServeArguments arguments = valid();
  arguments.exports = {"swap:1G", "scratch", "a:b:4K"};
  const auto settings = check_serve(arguments, 0);
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  const std::vector<ExportSetting> expected{
      {"swap", 1u << 30}, {"scratch", 64u << 20}, {"a:b", 4096}};
  EXPECT_EQ(settings->exports, expected);
}

TEST(ServeOptions, ThePageThatASizeEndsInCounts) {
  EXPECT_EQ((ExportSetting{.name = "", .size_bytes = 1}).slots(), 1u);
  EXPECT_EQ((ExportSetting{.name = "", .size_bytes = kPageSize}).slots(), 1u);
  EXPECT_EQ((ExportSetting{.name = "", .size_bytes = kPageSize + 1}).slots(), 2u);
  EXPECT_EQ((ExportSetting{.name = "", .size_bytes = uint64_t{kPageSize} << 32}).slots(),
            uint64_t{1} << 32);
}

TEST(ServeOptions, WrongExports) {
  expect_refused([](auto& a) { a.size = ""; }, {"--size", "--export NAME:SIZE"});
  expect_refused([](auto& a) { a.size = "much"; }, {"--size", "much"});
  expect_refused([](auto& a) { a.size = "0"; }, {"--size", "'0'"});
  expect_refused([](auto& a) { a.size = "17T"; }, {"--size", "17T", "16T"});
  expect_refused(
      [](auto& a) {
        a.size = "garbage";
        a.exports = {"a:1M"};
      },
      {"--size", "garbage"});
  expect_refused([](auto& a) { a.exports = {"a:1x"}; }, {"--export", "1x"});
  expect_refused([](auto& a) { a.exports = {"a:"}; }, {"--export"});
  expect_refused([](auto& a) { a.exports = {"a:1M", "a:2M"}; }, {"--export", "'a'", "twice"});
  expect_refused([](auto& a) { a.exports = {std::string(4097, 'n') + ":1M"}; },
                 {"--export", "4096"});
  expect_refused(
      [](auto& a) {
        a.size = "";
        a.exports = {"a"};
      },
      {"--export", "'a'", "NAME:SIZE"});
}

TEST(ServeOptions, WrongPlaces) {
  expect_refused([](auto& a) { a.unix_paths.clear(); }, {"--unix", "--listen", "--stdio"});
  expect_refused([](auto& a) { a.unix_paths = {""}; }, {"--unix", "empty"});
  expect_refused([](auto& a) { a.unix_paths = {std::string(108, 'p')}; }, {"--unix", "107"});
  expect_refused([](auto& a) { a.unix_paths = {"a", "a"}; }, {"--unix", "twice"});
  expect_refused([](auto& a) { a.stdio = true; }, {"--stdio", "--unix"});
  expect_refused([](auto& a) { a.tcp_addresses = {"nowhere"}; }, {"--listen", "nowhere"});
  expect_refused([](auto& a) { a.control = "disk.sock"; }, {"--control", "disk.sock"});
}

TEST(ServeOptions, WrongNumbers) {
  expect_refused([](auto& a) { a.codec = "gzip"; }, {"--codec", "gzip"});
  expect_refused([](auto& a) { a.memory_limit = "1K"; }, {"--memory-limit", "1K"});
  expect_refused([](auto& a) { a.memory_limit = "-1"; }, {"--memory-limit", "-1"});
  expect_refused([](auto& a) { a.workers = 65; }, {"--workers", "65", "64"});
  expect_refused([](auto& a) { a.connections = 4097; }, {"--connections", "4097"});
  expect_refused([](auto& a) { a.reserve = "255K"; }, {"--reserve", "255K", "256K"});
  expect_refused(
      [](auto& a) {
        a.memory_limit = "8M";
        a.reserve = "5M";
      },
      {"--reserve", "5M", "--memory-limit"});
  expect_refused([](auto& a) { a.poll_us = 10'001; }, {"--poll", "10001"});
}

TEST(ServeOptions, SwapAsksForMoreThanLockedMemory) {
  ServeArguments arguments = valid();
  const auto plain = check_serve(arguments, 0);
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->protection, ProtectionMode::off);
  EXPECT_EQ(plain->connections_max, kConnectionsDefault);
  EXPECT_EQ(plain->reserve_bytes, kReserveDefault);
  EXPECT_EQ(plain->poll_time.count(), 50);
  arguments.lock_memory = true;
  const auto locked = check_serve(arguments, 0);
  ASSERT_TRUE(locked.ok());
  EXPECT_EQ(locked->protection, ProtectionMode::best_effort);
  EXPECT_EQ(locked->connections_max, kConnectionsDefaultLocked);
  arguments.swap = true;
  arguments.connections = 100;
  arguments.memory_limit = "32M";
  const auto swap = check_serve(arguments, 0);
  ASSERT_TRUE(swap.ok());
  EXPECT_EQ(swap->protection, ProtectionMode::strict);
  EXPECT_EQ(swap->connections_max, 100u);
  EXPECT_EQ(swap->poll_time.count(), 0);
  EXPECT_EQ(swap->reserve_bytes, 4u << 20) << "an eighth of the limit";
  arguments.reserve = "16M";
  ASSERT_TRUE(check_serve(arguments, 0).ok());
  EXPECT_EQ(check_serve(arguments, 0)->reserve_bytes, 16u << 20);
}

TEST(ServeOptions, InheritedSocketsAreAPlaceToListen) {
  ServeArguments arguments = valid();
  arguments.unix_paths.clear();
  const auto settings = check_serve(arguments, 1);
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_TRUE(settings->listen.empty());

  arguments.stdio = true;
  const auto both = check_serve(arguments, 1);
  ASSERT_FALSE(both.ok());
  EXPECT_NE(both.error().message.find("--stdio"), std::string::npos) << both.error().message;
  EXPECT_NE(both.error().message.find("LISTEN_FDS"), std::string::npos) << both.error().message;
}

TEST(ServeOptions, ControlSocket) {
  ServeArguments arguments = valid();
  arguments.control = "elsewhere";
  auto settings = check_serve(arguments, 0);
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->control.path, "elsewhere");
  EXPECT_TRUE(settings->control.required);

  arguments.control = kNoControl;
  settings = check_serve(arguments, 0);
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->control.path, "");

  arguments.control = "";
  arguments.stdio = true;
  arguments.unix_paths.clear();
  settings = check_serve(arguments, 0);
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->control.path, "") << "--stdio leaves no socket behind unasked";
}

// --- What clients may do -----------------------------------------------------------------------

TEST(ClientOptions, Defaults) {
  const auto settings = check_serve(valid(), 0);
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  const nbd::ServerOptions defaults;
  nbd::ServerOptions options;
  set_client_options(settings->clients, options);
  EXPECT_EQ(options.in_flight_bytes_max, defaults.in_flight_bytes_max);
  EXPECT_EQ(options.negotiation_time_max, defaults.negotiation_time_max);
  EXPECT_EQ(options.negotiation.options_max, defaults.negotiation.options_max);
  EXPECT_EQ(options.negotiation.option_bytes_max, defaults.negotiation.option_bytes_max);
  EXPECT_EQ(options.negotiation.bytes_max, defaults.negotiation.bytes_max);
  EXPECT_EQ(options.stall.request.count(), 0) << "a swap client is never given up";
  EXPECT_EQ(options.stall.reply.count(), 0);
  EXPECT_FALSE(options.peers.any_user);
  EXPECT_TRUE(options.peers.users.empty());
}

TEST(ClientOptions, EachIsTaken) {
  ServeArguments arguments = valid();
  arguments.clients.in_flight = "8M";
  arguments.clients.negotiation_s = 3;
  arguments.clients.negotiation_options = 7;
  arguments.clients.negotiation_bytes = "64K";
  arguments.clients.request_stall_s = 60;
  arguments.clients.reply_stall_s = 30;
  arguments.clients.allowed_users = {"1000", "0", "4294967294"};
  const auto settings = check_serve(arguments, 0);
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  nbd::ServerOptions options;
  set_client_options(settings->clients, options);
  EXPECT_EQ(options.in_flight_bytes_max, 8u << 20);
  EXPECT_EQ(options.negotiation_time_max, std::chrono::seconds(3));
  EXPECT_EQ(options.negotiation.options_max, 7u);
  EXPECT_EQ(options.negotiation.bytes_max, 64u << 10);
  EXPECT_EQ(options.negotiation.option_bytes_max, 64u << 10) << "one is not more than all";
  EXPECT_EQ(options.stall.request, std::chrono::seconds(60));
  EXPECT_EQ(options.stall.reply, std::chrono::seconds(30));
  EXPECT_EQ(options.peers.users, (std::vector<uint32_t>{1000, 0, 4294967294}));
  EXPECT_FALSE(options.peers.any_user);
  arguments.clients.allowed_users = {"any"};
  EXPECT_TRUE(check_serve(arguments, 0)->clients.peers.any_user);
}

TEST(ClientOptions, WhatCannotBeIsRefused) {
  expect_refused([](ServeArguments& a) { a.clients.in_flight = "100K"; }, {"--in-flight", "100K"});
  expect_refused([](ServeArguments& a) { a.clients.in_flight = "much"; }, {"--in-flight"});
  expect_refused([](ServeArguments& a) { a.clients.negotiation_s = 0; }, {"--negotiation-time"});
  expect_refused([](ServeArguments& a) { a.clients.negotiation_options = 0; },
                 {"--negotiation-options"});
  expect_refused([](ServeArguments& a) { a.clients.negotiation_bytes = "1K"; },
                 {"--negotiation-bytes", "1K"});
  expect_refused([](ServeArguments& a) { a.clients.request_stall_s = 100'000; },
                 {"--request-stall"});
  expect_refused([](ServeArguments& a) { a.clients.reply_stall_s = 100'000; }, {"--reply-stall"});
  for (const char* user : {"root", "", "-1", "4294967295", "4294967296", " 1", "1 ", "0x1"}) {
    expect_refused([user](ServeArguments& a) { a.clients.allowed_users = {user}; },
                   {"--allow-uid"});
  }
}

}  // namespace
}  // namespace tuck::cli
