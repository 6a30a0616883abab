#include "tests/nbd/test_server.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace tuck::test {

namespace {

template <class T>
T expect(Result<T, Error> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "cannot set the server up: %s\n", result.error().message.c_str());
    std::exit(1);
  }
  return std::move(*result);
}

std::unique_ptr<vm::SwapArea> add_disk(engine::Engine& engine, const char* name, uint64_t bytes,
                                       engine::CodecSetting codec) {
  engine::AreaOptions area;
  area.codec = codec;
  area.name = name;
  area.slots = (bytes + kPageSize - 1) / kPageSize;
  return std::make_unique<vm::SwapArea>(engine, expect(engine.add_area(area)), bytes);
}

}  // namespace

TemporaryDirectory::TemporaryDirectory() {
  // Short: a socket's path has 107 characters at most.
  std::string pattern = (std::filesystem::temp_directory_path() / "tuck-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) {
    std::perror("mkdtemp");
    std::exit(1);
  }
  path_ = pattern;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

TestServer::TestServer(TestServerOptions options)
    : engine_(expect(engine::Engine::create(options.engine))),
      disk_(add_disk(*engine_, "disk", options.disk_bytes, options.codec)),
      second_(add_disk(*engine_, "second", options.second_bytes, options.codec)) {
  options.server.exports = {{"disk", "", disk_.get(), false}, {"second", "", second_.get(), true}};
  nbd::ListenAddress on_path;
  on_path.unix_path = socket_path();
  options.server.listen.push_back(on_path);
  if (options.tcp) {
    nbd::ListenAddress on_port;
    on_port.tcp_host = "127.0.0.1";
    on_port.tcp_port = 0;
    options.server.listen.push_back(on_port);
  }
  server_ = expect(nbd::Server::start(std::move(options.server)));
}

TestServer::~TestServer() {
  stop();
  server_.reset();
  engine_->quiesce();
  engine_->verify();
}

void TestServer::stop() {
  if (!stopped_) server_->stop();
  stopped_ = true;
}

nbd::OperationReport TestServer::operation(const std::string& name) const {
  for (const nbd::OperationReport& operation : report().operations) {
    if (operation.name == name) return operation;
  }
  std::fprintf(stderr, "no operation is called %s\n", name.c_str());
  std::exit(1);
}

std::string TestServer::unix_uri(const std::string& name) const {
  return "nbd+unix:///" + name + "?socket=" + socket_path();
}

std::string TestServer::tcp_uri(const std::string& name) const {
  return server_->uris().at(1) + name;
}

}  // namespace tuck::test
