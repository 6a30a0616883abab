// The control socket and its client, on real sockets: answers, bounds, and what a bad client costs.

#include "frontends/cli/control_server.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "frontends/cli/control_client.h"

namespace tuck::cli {
namespace {

using namespace std::chrono_literals;

class ControlSocket : public ::testing::Test {
 protected:
  ControlSocket() {
    std::array<char, 32> name{"/tmp/tuck-control-XXXXXX"};
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name.data();
    path_ = folder_ + "/control";
  }
  ~ControlSocket() override {
    stop();
    std::filesystem::remove_all(folder_);
  }

  // Answers with what answer returns, in a thread, until stop().
  void start(ControlServer::Answer answer) {
    auto server = ControlServer::open(path_, std::move(answer));
    ASSERT_TRUE(server.ok()) << server.error().message;
    server_ = std::move(*server);
    stop_ = FileDescriptor(eventfd(0, EFD_CLOEXEC));
    thread_ = std::thread([this] { run(); });
  }
  void stop() {
    if (!thread_.joinable()) return;
    eventfd_write(stop_.get(), 1);
    thread_.join();
    server_.reset();
  }

  FileDescriptor connect_client() const {
    FileDescriptor client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    EXPECT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0)
        << std::strerror(errno);
    return client;
  }
  // Everything up to the end of the connection.
  static std::string read_all(const FileDescriptor& client) {
    std::string text;
    std::array<char, 4096> buffer{};
    ssize_t got = 0;
    while ((got = recv(client.get(), buffer.data(), buffer.size(), 0)) > 0) {
      text.append(buffer.data(), static_cast<size_t>(got));
    }
    return text;
  }
  Result<std::string, Error> ask(const std::string& line) const {
    return ask_control(path_, line, 30s);
  }

  std::string folder_;
  std::string path_;

 private:
  void run() {
    std::vector<pollfd> waits;
    while (true) {
      waits.assign(1, {.fd = stop_.get(), .events = POLLIN, .revents = 0});
      server_->add(waits);
      ASSERT_GE(poll(waits.data(), waits.size(), server_->timeout()), 0);
      if (waits[0].revents != 0) return;
      server_->handle(waits);
    }
  }

  std::unique_ptr<ControlServer> server_;
  FileDescriptor stop_;
  std::thread thread_;
};

std::string echo(std::string_view line) {
  return "<" + std::string(line) + ">\n";
}

TEST_F(ControlSocket, WithoutMemoryForAnAnswerItHangsUpAndGoesOn) {
  start([](std::string_view line) -> std::string {
    if (line == "much") throw std::bad_alloc();
    return echo(line);
  });
  const FileDescriptor client = connect_client();
  ASSERT_EQ(send(client.get(), "much\n", 5, MSG_NOSIGNAL), 5);
  EXPECT_EQ(read_all(client), "");
  const auto answer = ask("little");
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(*answer, echo("little"));
}

TEST_F(ControlSocket, AnswersALine) {
  start(echo);
  for (const char* line : {"hello", "", "second"}) {
    const auto answer = ask(line);
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    EXPECT_EQ(*answer, echo(line));
  }
}

TEST_F(ControlSocket, IsItsOwnersAlone) {
  start(echo);
  struct stat state {};
  ASSERT_EQ(lstat(path_.c_str(), &state), 0);
  EXPECT_TRUE(S_ISSOCK(state.st_mode));
  EXPECT_EQ(state.st_mode & 0777u, 0600u);
}

TEST_F(ControlSocket, AnswersARequestInPieces) {
  start(echo);
  const FileDescriptor client = connect_client();
  for (const char letter : std::string("slow\n")) {
    ASSERT_EQ(send(client.get(), &letter, 1, MSG_NOSIGNAL), 1);
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(read_all(client), "<slow>\n");
}

TEST_F(ControlSocket, TheEndOfTheInputEndsTheLine) {
  start(echo);
  const FileDescriptor client = connect_client();
  ASSERT_EQ(send(client.get(), "bare", 4, MSG_NOSIGNAL), 4);
  shutdown(client.get(), SHUT_WR);
  EXPECT_EQ(read_all(client), "<bare>\n");
}

TEST_F(ControlSocket, ALongAnswerArrivesWhole) {
  const std::string large(8u << 20, 'x');
  start([&large](std::string_view) { return std::string(large); });
  const auto answer = ask("all");
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(*answer, large);
}

TEST_F(ControlSocket, ARequestWithoutEndGetsAnError) {
  start(echo);
  const FileDescriptor client = connect_client();
  const std::string endless(ControlServer::kRequestMax, 'x');
  ASSERT_EQ(send(client.get(), endless.data(), endless.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(endless.size()));
  EXPECT_NE(read_all(client).find("\"error\""), std::string::npos);
}

TEST_F(ControlSocket, ClientsThatSayNothingCostOthersTheirPatienceAtMost) {
  start(echo);
  std::vector<FileDescriptor> silent;
  for (size_t i = 0; i < ControlServer::kConnectionsMax - 1; ++i)
    silent.push_back(connect_client());
  // One place is left: answered at once, however often.
  for (int i = 0; i < 20; ++i)
    EXPECT_TRUE(ask("quick").ok());
  // None is left: answered when the silent ones have been sent away.
  silent.push_back(connect_client());
  const auto answer = ask("waits");
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(*answer, "<waits>\n");
  for (const FileDescriptor& client : silent)
    EXPECT_EQ(read_all(client), "");
}

TEST_F(ControlSocket, AClientThatDoesNotReadBlocksNobody) {
  const std::string large(8u << 20, 'x');
  start([&large](std::string_view line) { return line == "large" ? large : echo(line); });
  const FileDescriptor client = connect_client();
  ASSERT_EQ(send(client.get(), "large\n", 6, MSG_NOSIGNAL), 6);
  EXPECT_TRUE(ask("quick").ok());
  EXPECT_LE(read_all(client).size(), large.size());
}

TEST_F(ControlSocket, GoesWithItsServer) {
  start(echo);
  stop();
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_FALSE(ask("anybody").ok());
}

TEST_F(ControlSocket, LeavesAnothersFileAlone) {
  start(echo);
  std::filesystem::remove(path_);
  std::ofstream(path_) << "somebody else's";
  stop();
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(ControlSocket, ReplacesADeadServersFile) {
  {
    const FileDescriptor dead(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    ASSERT_EQ(bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ASSERT_TRUE(std::filesystem::exists(path_));
  start(echo);
  EXPECT_TRUE(ask("alive").ok());
}

TEST_F(ControlSocket, RefusesALivingServersPath) {
  start(echo);
  const auto second = ControlServer::open(path_, echo);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find("running server"), std::string::npos);
  EXPECT_TRUE(ask("still there").ok());
}

TEST_F(ControlSocket, RefusesAPathThatIsSomethingElse) {
  std::ofstream(path_) << "precious";
  const auto server = ControlServer::open(path_, echo);
  ASSERT_FALSE(server.ok());
  EXPECT_NE(server.error().message.find("not a socket"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(ControlSocket, RefusesAFolderThatIsNotThere) {
  const auto server = ControlServer::open(folder_ + "/none/control", echo);
  ASSERT_FALSE(server.ok());
  EXPECT_NE(server.error().message.find("No such file"), std::string::npos);
}

TEST_F(ControlSocket, TheClientSaysWhatIsWrong) {
  const auto nobody = ask("hello");
  ASSERT_FALSE(nobody.ok());
  EXPECT_NE(nobody.error().message.find("no such file"), std::string::npos);
  const auto too_long = ask_control(std::string(200, 'p'), "hello", 1s);
  EXPECT_FALSE(too_long.ok());
}

}  // namespace
}  // namespace tuck::cli
