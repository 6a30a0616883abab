// Clients that come, misbehave, vanish and are too many; the server's own comings and goings.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <memory>
#include <thread>

#include "tests/nbd/clients.h"
#include "tests/nbd/exports.h"
#include "tests/nbd/handshake.h"
#include "tests/nbd/test_server.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"

namespace tuck::test {
namespace {

// A client that has nothing to do with the others still gets what it should.
void expect_others_served(TestServer& server) {
  Client client;
  ASSERT_EQ(client.connect(server.unix_uri()), 0) << nbd_get_error();
  const Bytes data = random_bytes(1, 10'000);
  ASSERT_EQ(client.write(1'000'001, data), 0);
  EXPECT_EQ(client.must_read(1'000'001, data.size()), data);
}

bool all_gone(TestServer& server) {
  return eventually([&] { return server.report().connections_now == 0; });
}

// For hundreds of clients that come and go faster than the server buries them.
TestServerOptions room_for_all() {
  TestServerOptions options;
  options.server.connections_max = 1024;
  return options;
}

TEST(NbdClients, HangingUpAtAnyByteHurtsNobody) {
  TestServer server(room_for_all());
  const std::string session = hello_and_go() + request(1, 1, 4095, 5000) + std::string(5000, 'x') +
                              request(0, 2, 0, 100'000) + request(7, 3, 0, 4096) +
                              request(2, 4, 0, 0);
  size_t step = 1;
  for (size_t length = 0; length <= session.size(); length += step) {
    RawClient client(server.socket_path());
    ASSERT_TRUE(client.send(session.substr(0, length)));
    if (length % 2 == 0) client.receive(1);
    // Around the headers each byte, inside the payload some.
    step = length > 200 && length + 200 < session.size() ? 97 : 1;
  }
  ASSERT_TRUE(all_gone(server));
  expect_others_served(server);
}

TEST(NbdClients, NoiseHurtsNobody) {
  TestServer server(room_for_all());
  Random random(seed());
  for (uint32_t i = 0; i < scaled(400); ++i) {
    RawClient client(server.socket_path());
    // Noise after a beginning that is right as far as it goes.
    const std::string right = hello_and_go() + request(0, 1, 0, 4096) + request(3, 2, 0, 0);
    std::string sent = right.substr(0, random.below(right.size() + 1));
    for (uint64_t n = random.below(300); n > 0; --n)
      sent += static_cast<char>(random.next());
    if (random.one_in(3) && !sent.empty()) {
      sent[random.below(sent.size())] = static_cast<char>(random.next());
    }
    client.send(sent);
  }
  ASSERT_TRUE(all_gone(server));
  expect_others_served(server);
}

TEST(NbdClients, WhatBreaksTheProtocolCostsTheConnection) {
  TestServer server;
  const auto go = [&](const std::string& then) {
    RawClient client(server.socket_path());
    EXPECT_TRUE(client.go());
    EXPECT_TRUE(client.send(then));
    EXPECT_TRUE(client.closed_by_server());
  };
  go(std::string(28, '\0'));
  go(request(1, 1, 0, 0xffffffff));
  EXPECT_TRUE(eventually([&] { return server.report().connections_broken == 2; }));
  EXPECT_EQ(server.report().negotiations_failed, 0u);
  // Neither does who connects and says nothing: port scans do that.
  RawClient(server.socket_path()).hang_up();
  EXPECT_TRUE(all_gone(server));
  EXPECT_EQ(server.report().negotiations_failed, 0u);
  RawClient client(server.socket_path());
  EXPECT_TRUE(client.send(client_flags(0xffff)));
  EXPECT_TRUE(client.closed_by_server());
  EXPECT_TRUE(eventually([&] { return server.report().negotiations_failed == 1; }));
  // A client that is in the middle of something and goes is not served any more, either.
  RawClient vanished(server.socket_path());
  ASSERT_TRUE(vanished.go());
  ASSERT_TRUE(vanished.send(request(1, 1, 0, 1u << 20) + std::string(300'000, 'v')));
  vanished.hang_up();
  EXPECT_TRUE(eventually([&] { return server.report().connections_broken == 3; }));
  expect_others_served(server);
}

TEST(NbdClients, TooManyAreTurnedAwayUntilOneLeaves) {
  TestServerOptions options;
  options.server.connections_max = 3;
  TestServer server(std::move(options));
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<RawClient>(server.socket_path()));
    ASSERT_TRUE(clients.back()->go());
  }
  RawClient fourth(server.socket_path());
  EXPECT_TRUE(fourth.closed_by_server());
  EXPECT_EQ(server.report().connections_refused, 1u);
  EXPECT_EQ(server.report().connections_accepted, 3u);
  clients.pop_back();
  EXPECT_TRUE(eventually([&] { return server.report().connections_now == 2; }));
  RawClient fifth(server.socket_path());
  EXPECT_TRUE(fifth.go());
}

TEST(NbdClients, NegotiatingForeverIsNotPossible) {
  TestServerOptions options;
  options.server.negotiation_time_max = std::chrono::milliseconds(1000);
  TestServer server(std::move(options));
  RawClient patient(server.socket_path());
  ASSERT_TRUE(patient.go());
  RawClient silent(server.socket_path());
  RawClient slow(server.socket_path());
  EXPECT_TRUE(slow.send(client_flags() + option(nbd::Option::list)));
  EXPECT_TRUE(silent.closed_by_server());
  EXPECT_TRUE(slow.closed_by_server());
  EXPECT_TRUE(eventually([&] { return server.report().negotiations_failed == 2; }));
  // Once in transmission a client may be silent as long as it likes.
  EXPECT_TRUE(patient.send(request(3, 5, 0, 0)));
  EXPECT_EQ(patient.receive(16), simple_reply(5));
}

TEST(NbdServer, StopsWithClientsAttached) {
  TestServer server;
  RawClient idle(server.socket_path());
  RawClient negotiating(server.socket_path());
  RawClient writing(server.socket_path());
  RawClient not_reading(server.socket_path());
  RawClient answered(server.socket_path());
  ASSERT_TRUE(idle.go());
  ASSERT_TRUE(writing.go());
  ASSERT_TRUE(not_reading.go());
  ASSERT_TRUE(answered.go());
  ASSERT_TRUE(writing.send(request(1, 1, 0, 1u << 20) + std::string(100'000, 'w')));
  // More than fits any socket's buffer, never taken.
  ASSERT_TRUE(not_reading.send(request(0, 1, 0, 32u << 20)));
  ASSERT_TRUE(answered.send(request(0, 7, 0, 4096)));
  ASSERT_TRUE(eventually([&] { return server.operation("read").requests >= 1; }));
  server.stop();
  EXPECT_TRUE(idle.closed_by_server());
  EXPECT_TRUE(negotiating.closed_by_server());
  EXPECT_TRUE(writing.closed_by_server());
  EXPECT_EQ(answered.receive(16), simple_reply(7)) << "what was answered arrives";
  EXPECT_NE(access(server.socket_path().c_str(), F_OK), 0) << "the socket's file is gone";
  EXPECT_EQ(server.report().connections_now, 0u);
  EXPECT_EQ(server.report().connections_broken, 1u) << "the one that did not take its reply";
}

// --- Where it listens ------------------------------------------------------------------------

nbd::ServerOptions listening_on(const std::string& path) {
  nbd::ServerOptions options;
  options.exports = Exports::pair();
  options.workers = 1;
  nbd::ListenAddress address;
  address.unix_path = path;
  options.listen = {address};
  return options;
}

TEST(NbdListen, ReplacesAStaleSocketAndNothingElse) {
  const TemporaryDirectory directory;
  const std::string path = directory.path("s");
  // A socket whose process is gone.
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  close(fd);

  auto server = nbd::Server::start(listening_on(path));
  ASSERT_TRUE(server.ok()) << server.error().message;
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ((*server)->uris(), std::vector<std::string>{"nbd+unix:///?socket=" + path});

  const auto second = nbd::Server::start(listening_on(path));
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find("already served"), std::string::npos);
  RawClient client(path);
  EXPECT_TRUE(client.go()) << "the one that was there goes on";
  client.hang_up();
  (*server)->stop();
  EXPECT_NE(access(path.c_str(), F_OK), 0);

  std::ofstream(path) << "precious";
  const auto third = nbd::Server::start(listening_on(path));
  ASSERT_FALSE(third.ok());
  EXPECT_NE(third.error().message.find("not a socket"), std::string::npos);
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
}

TEST(NbdListen, OnlyWhereNobodyElseCanConnect) {
  for (const char* host : {"0.0.0.0", "192.0.2.1", "::", "example.com", "128.0.0.1"}) {
    nbd::ServerOptions options = listening_on("");
    options.listen[0].tcp_host = host;
    options.listen[0].tcp_port = 0;
    const auto server = nbd::Server::start(std::move(options));
    ASSERT_FALSE(server.ok()) << host;
    EXPECT_NE(server.error().message.find("TLS"), std::string::npos) << server.error().message;
  }
  for (const char* host : {"localhost", "127.0.0.1", "127.1.2.3"}) {
    nbd::ServerOptions options = listening_on("");
    options.listen[0].tcp_host = host;
    options.listen[0].tcp_port = 0;
    const auto server = nbd::Server::start(std::move(options));
    ASSERT_TRUE(server.ok()) << server.error().message;
    Client client;
    EXPECT_EQ(client.connect((*server)->uris().at(0)), 0) << nbd_get_error();
  }
}

int listening_socket(const char* host) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  EXPECT_EQ(inet_pton(AF_INET, host, &address.sin_addr), 1);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(listen(fd, 1), 0);
  return fd;
}

// As service managers hand them over: they block.
TEST(NbdListen, SocketsHandedOver) {
  const auto start = [](int fd) {
    nbd::ServerOptions options = listening_on("");
    options.listen[0].inherited_fd = fd;
    return nbd::Server::start(std::move(options));
  };
  {
    const auto server = start(listening_socket("127.0.0.1"));
    ASSERT_TRUE(server.ok()) << server.error().message;
    Client client;
    EXPECT_EQ(client.connect((*server)->uris().at(0)), 0) << nbd_get_error();
    // With a socket that blocks the listener would sit in accept() and not hear the stop.
    (*server)->stop();
  }
  const int open_to_all = listening_socket("0.0.0.0");
  const auto server = start(open_to_all);
  ASSERT_FALSE(server.ok());
  EXPECT_NE(server.error().message.find("beyond this machine"), std::string::npos);
  close(open_to_all);
}

TEST(NbdListen, OptionsThatCannotBeAreRefused) {
  const TemporaryDirectory directory;
  const auto refused = [&](auto change) {
    nbd::ServerOptions options = listening_on(directory.path("s"));
    change(options);
    const auto server = nbd::Server::start(std::move(options));
    return !server.ok() && !server.error().message.empty();
  };
  using Options = nbd::ServerOptions;
  EXPECT_TRUE(refused([](Options& o) { o.exports.clear(); }));
  EXPECT_TRUE(refused([](Options& o) { o.exports.push_back(o.exports[0]); }));
  EXPECT_TRUE(refused([](Options& o) { o.exports[0].name.assign(4097, 'n'); }));
  EXPECT_TRUE(refused([](Options& o) { o.exports[0].area = nullptr; }));
  EXPECT_TRUE(refused([](Options& o) { o.listen.clear(); }));
  EXPECT_TRUE(refused([](Options& o) { o.listen[0].tcp_host = "localhost"; }));
  EXPECT_TRUE(refused([](Options& o) { o.listen[0].unix_path.assign(108, 'p'); }));
  EXPECT_TRUE(refused([](Options& o) { o.connections_max = 0; }));
  EXPECT_FALSE(refused([](Options&) {}));
}

// --- One client, without listening -----------------------------------------------------------

TEST(NbdServeOne, OnASocketPair) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  std::thread server([fd = pair[0]] {
    nbd::ServerOptions options;
    options.exports = Exports::pair();
    const Status error = nbd::Server::serve_one(std::move(options), fd, fd);
    EXPECT_FALSE(error);
  });
  Client client;
  ASSERT_EQ(nbd_connect_socket(client.handle(), pair[1]), 0) << nbd_get_error();
  const Bytes data = random_bytes(seed(), 1 << 20);
  EXPECT_EQ(client.write(777, data), 0);
  EXPECT_TRUE(client.must_read(777, data.size()) == data);
  EXPECT_EQ(nbd_shutdown(client.handle(), 0), 0);
  server.join();
}

TEST(NbdServeOne, OnTwoPipes) {
  int to_server[2];
  int from_server[2];
  ASSERT_EQ(pipe(to_server), 0);
  ASSERT_EQ(pipe(from_server), 0);
  // As a shell may leave them.
  fcntl(to_server[0], F_SETFL, O_NONBLOCK);
  const int shared = dup(to_server[0]);
  std::thread server([in = to_server[0], out = from_server[1]] {
    nbd::ServerOptions options;
    options.exports = Exports::pair();
    EXPECT_FALSE(nbd::Server::serve_one(std::move(options), in, out));
  });
  const std::string session =
      hello_and_go() + request(1, 1, 5, 3) + "abc" + request(0, 2, 4, 5) + request(2, 3, 0, 0);
  ASSERT_EQ(write(to_server[1], session.data(), session.size()),
            static_cast<ssize_t>(session.size()));
  std::string heard;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(from_server[0], buffer, sizeof buffer)) > 0;) {
    heard.append(buffer, static_cast<size_t>(n));
  }
  server.join();
  const std::string end =
      simple_reply(1) + simple_reply(2) + std::string(1, '\0') + "abc" + std::string(1, '\0');
  ASSERT_GE(heard.size(), end.size());
  EXPECT_EQ(heard.substr(heard.size() - end.size()), end);
  EXPECT_NE(fcntl(shared, F_GETFL) & O_NONBLOCK, 0) << "as it was before";
  close(shared);
  close(to_server[1]);
  close(from_server[0]);
}

TEST(NbdServeOne, ADescriptorThatStopsWaitingInTheMiddle) {
  int to_server[2];
  int from_server[2];
  ASSERT_EQ(pipe(to_server), 0);
  ASSERT_EQ(pipe(from_server), 0);
  const int shared = dup(to_server[0]);
  std::thread server([in = to_server[0], out = from_server[1]] {
    nbd::ServerOptions options;
    options.exports = Exports::pair();
    EXPECT_FALSE(nbd::Server::serve_one(std::move(options), in, out));
  });
  std::string heard(nbd::kGreetingBytes, '\0');
  ASSERT_EQ(read(from_server[0], heard.data(), heard.size()), static_cast<ssize_t>(heard.size()));
  // Whoever shares the pipe's end does this; the receive that is under way does not notice.
  ASSERT_EQ(fcntl(shared, F_SETFL, O_NONBLOCK), 0);
  for (const std::string& part : {hello_and_go(), request(3, 1, 0, 0), request(2, 2, 0, 0)}) {
    for (const char& byte : part) {
      ASSERT_EQ(write(to_server[1], &byte, 1), 1);
      if (&byte == &part.back()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  heard.clear();
  char buffer[4096];
  for (ssize_t n = 0; (n = read(from_server[0], buffer, sizeof buffer)) > 0;)
    heard.append(buffer, static_cast<size_t>(n));
  server.join();
  EXPECT_TRUE(heard.ends_with(simple_reply(1)));
  for (const int fd : {shared, to_server[1], from_server[0]})
    close(fd);
}

TEST(NbdServeOne, AReaderThatIsGoneIsNoSignal) {
  int to_server[2];
  int from_server[2];
  ASSERT_EQ(pipe(to_server), 0);
  ASSERT_EQ(pipe(from_server), 0);
  close(from_server[0]);
  nbd::ServerOptions options;
  options.exports = Exports::pair();
  // SIGPIPE would end the test.
  EXPECT_FALSE(nbd::Server::serve_one(std::move(options), to_server[0], from_server[1]));
  sigset_t pending;
  ASSERT_EQ(sigpending(&pending), 0);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
  close(to_server[1]);
}

}  // namespace
}  // namespace tuck::test
