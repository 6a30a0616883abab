#include "tests/nbd/hostile.h"

#include "frontends/nbd/protocol.h"
#include "tests/nbd/handshake.h"
#include "tests/support/seed.h"

namespace tuck::test {

namespace {
constexpr uint64_t kDiskOfMost = 4u << 20;
constexpr uint64_t kWellAt = (2u << 20) + 777;
constexpr size_t kWellBytes = 100'000;
constexpr uint64_t kStepCookie = 0x7357'7357'0000'0001;
}  // namespace

TestServerOptions HostileTest::small_disk() {
  TestServerOptions options;
  options.disk_bytes = kDiskOfMost;
  return options;
}

void HostileTest::start(TestServerOptions options) {
  server_.emplace(std::move(options));
  well_behaved_.emplace();
  ASSERT_EQ(well_behaved_->connect(server_->unix_uri()), 0) << nbd_get_error();
  write_anew();
}

void HostileTest::write_anew() {
  written_ = random_bytes(mix(seed(), ++writes_), kWellBytes);
  ASSERT_EQ(well_behaved_->write(kWellAt, written_), 0) << nbd_get_error();
}

void HostileTest::expect_well() {
  ASSERT_TRUE(server_);
  EXPECT_TRUE(well_behaved_->must_read(kWellAt, kWellBytes) == written_);
  Client new_one;
  ASSERT_EQ(new_one.connect(server_->unix_uri()), 0) << nbd_get_error();
  EXPECT_TRUE(new_one.must_read(kWellAt, kWellBytes) == written_);
  write_anew();
  EXPECT_TRUE(new_one.must_read(kWellAt, kWellBytes) == written_);
}

bool HostileTest::all_gone() {
  return eventually([this] {
    const nbd::ServerReport report = server_->report();
    return report.connections_now == 1 && report.in_flight_bytes == nbd::in_flight_bytes_a_client();
  });
}

void HostileTest::TearDown() {
  if (!server_) return;
  ASSERT_TRUE(all_gone());
  expect_well();
  well_behaved_.reset();
  ASSERT_TRUE(eventually([this] { return server_->report().connections_now == 0; }));
  server_->engine().quiesce();
  server_->engine().verify();
}

std::unique_ptr<RawClient> greeted(const std::string& path) {
  auto client = std::make_unique<RawClient>(path);
  EXPECT_EQ(client->receive(nbd::kGreetingBytes).size(), nbd::kGreetingBytes);
  return client;
}

std::unique_ptr<RawClient> serving(const std::string& path) {
  auto client = std::make_unique<RawClient>(path);
  EXPECT_TRUE(client->go());
  return client;
}

std::unique_ptr<RawClient> serving_structured(const std::string& path) {
  auto client = greeted(path);
  EXPECT_TRUE(
      client->send(client_flags() + option(nbd::Option::structured_reply) +
                   option(nbd::Option::set_meta_context, meta_data("", {"base:allocation"})) +
                   option(nbd::Option::go, info_data(""))));
  EXPECT_EQ(hear(*client, 5), "ACK META ACK INFO ACK");
  return client;
}

std::string hear(RawClient& client, size_t answers) {
  Outcome heard;
  for (size_t i = 0; i < answers; ++i) {
    const std::string header = client.receive(nbd::kOptionReplyHeaderBytes);
    if (header.size() != nbd::kOptionReplyHeaderBytes) return heard.types() + " (then closed)";
    heard.out += header + client.receive(nbd::load32(as_bytes(header).data() + 16));
  }
  return heard.types();
}

bool in_step(RawClient& client) {
  if (!client.send(request(kFlush, kStepCookie, 0, 0))) return false;
  return client.receive(nbd::kSimpleReplyBytes) == simple_reply(kStepCookie);
}

bool negotiation_in_step(RawClient& client) {
  return client.send(option(0x7654321)) && hear(client, 1) == "UNSUP";
}

}  // namespace tuck::test
