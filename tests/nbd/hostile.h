// For tests with clients that mean ill, or have bad luck: a server, what a bare socket hears from
// it, and a client that behaves and must never notice the others.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tests/nbd/clients.h"
#include "tests/nbd/commands.h"
#include "tests/nbd/test_server.h"

namespace tuck::test {

class HostileTest : public ::testing::Test {
 protected:
  // A disk of 4 MiB unless the options say otherwise. The well-behaved client's pages are on the
  // second half of it: tests leave that alone.
  void start(TestServerOptions options = small_disk());
  static TestServerOptions small_disk();

  TestServer& server() { return *server_; }
  std::string path() { return server_->socket_path(); }
  // A well-behaved client still reads what it wrote before, on a connection that it has had all the
  // time and on a new one; and writes something else.
  void expect_well();
  // Every client but the well-behaved one is gone, with all that the server had for it.
  bool all_gone();
  // When all test bodies' clients are gone: expect_well(), and the engine looks at itself.
  void TearDown() override;

 private:
  void write_anew();
  std::optional<TestServer> server_;
  std::optional<Client> well_behaved_;
  Bytes written_;
  uint64_t writes_ = 0;
};

// A client that has connected and read the greeting.
std::unique_ptr<RawClient> greeted(const std::string& path);
// One that has said GO as well.
std::unique_ptr<RawClient> serving(const std::string& path);
// One that has structured replies and base:allocation besides.
std::unique_ptr<RawClient> serving_structured(const std::string& path);
// The types of the next answers to options, in words: "UNSUP ACK"; "?" where they are none. Answers
// to a GO or an INFO are INFO, perhaps more of them, and ACK.
std::string hear(RawClient& client, size_t answers);
// The server answers a FLUSH, and nothing else comes before it.
bool in_step(RawClient& client);
// The same before transmission, by an option that nobody knows.
bool negotiation_in_step(RawClient& client);

}  // namespace tuck::test
