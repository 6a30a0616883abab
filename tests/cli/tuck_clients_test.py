"""`tuck serve` with clients that mean ill, or have bad luck: its bounds as options, its signals, its log.
What the server answers on the wire is tested in tests/nbd (hostile_*).

    tuck_clients_test.py --tuck build/debug/bin/tuck [unittest options]
"""

import os
import signal
import socket
import struct
import sys
import threading
import time
import unittest

from nbd_client import NbdClient
from tuck_process import PATIENCE, TuckTest

PAGE = 4096
ONE = ("--unix", "s", "--size", "4M")


def option(code, data=b""):
    return b"IHAVEOPT" + struct.pack(">II", code, len(data)) + data


def go(name=b""):
    return option(7, struct.pack(">I", len(name)) + name + b"\0\0")


def request(command, offset, length):
    return struct.pack(">IHHQQI", 0x25609513, 0, command, 7, offset, length)


class ClientsTest(TuckTest):
    def raw(self, sent=b"", name="s"):
        """A socket that has sent this, behind both client flags if it is anything."""
        connection = socket.socket(socket.AF_UNIX)
        self.addCleanup(connection.close)
        connection.connect(self.path(name))  # waits while the server's queue is full
        connection.settimeout(PATIENCE)
        if sent:
            connection.sendall(struct.pack(">I", 3) + sent)
        return connection

    def assert_closed(self, connection):
        """The server closes; whatever it says before is thrown away."""
        try:
            while connection.recv(1 << 16):
                pass
        except ConnectionResetError:
            pass

    def wait_for(self, section, key, value):
        deadline = time.monotonic() + PATIENCE
        while self.stat()[section][key] != value:
            self.assertLess(time.monotonic(), deadline, f"{key}: {self.stat()[section]}")
            time.sleep(0.02)

    def assert_serves(self):
        client = NbdClient.on_unix(self.path("s"))
        data = os.urandom(PAGE)
        client.write(data, 3 << 20)
        self.assertEqual(client.read(PAGE, 3 << 20), data)
        client.close()


class Bounds(ClientsTest):
    def test_help_names_the_options(self):
        _, output, _ = self.run_tuck("serve", "--help")
        for name in (
            "--allow-uid --in-flight --negotiation-time --negotiation-options --negotiation-bytes "
            "--request-stall --reply-stall"
        ).split():
            self.assertIn(name, output)

    def test_wrong_values_are_usage(self):
        for name, values in (
            ("--allow-uid", ("root", "-1", "4294967295", "4294967296", "", "1 ", "0x1")),
            ("--in-flight", ("1", "100K", "x", "-1", "1T")),
            ("--negotiation-time", ("0", "-1", "x", "86401")),
            ("--negotiation-options", ("0", "-1", "x")),
            ("--negotiation-bytes", ("1", "x", "2G")),
            ("--request-stall", ("-1", "x", "86401")),
            ("--reply-stall", ("-1", "x", "86401")),
        ):
            for value in values:
                with self.subTest(option=name, value=value):
                    self.assert_refused(2, [name], "serve", *ONE, f"{name}={value}")

    def test_each_bound_holds_and_counts(self):
        server = self.serve(
            *(*ONE, "--connections", "4", "--in-flight", "1M", "--request-stall", "1"),
            *("--negotiation-time", "1", "--negotiation-options", "3"),
        )
        first = NbdClient.on_unix(self.path("s"))
        full = self.stat()["connections"]
        self.assertEqual(full["max"], 4)
        self.assertEqual(full["in_flight_bytes"], full["in_flight_max_bytes"])
        # No buffers for a second one.
        second = self.raw(go())
        heard = second.recv(18, socket.MSG_WAITALL) + second.recv(20, socket.MSG_WAITALL)
        self.assertEqual(heard[18 + 12 :][:4], b"\x80\0\0\2")
        self.wait_for("connections", "refused_in_flight", 1)
        # It says no more: its time is up.
        self.assert_closed(second)
        self.wait_for("connections", "negotiations_timed_out", 1)
        self.assert_closed(self.raw(option(99) * 4))
        self.wait_for("connections", "negotiations_over_limits", 1)
        # More at once than there are places; on a busy machine the first may have left already.
        deadline = time.monotonic() + PATIENCE
        while self.stat()["connections"]["refused"] == 0:
            self.assertLess(time.monotonic(), deadline)
            for other in [self.raw() for _ in range(8)]:
                other.close()
        first.close()
        self.wait_for("connections", "now", 0)
        # Half a request.
        stalled = self.raw(go() + request(1, 0, PAGE) + b"half")
        self.assert_closed(stalled)
        self.wait_for("connections", "stalled_requests", 1)
        self.assertEqual(self.stat()["connections"]["in_flight_bytes"], 0)
        self.assert_serves()
        self.stop(server)

    def limited(self, limit, *arguments):
        return ["sh", "-c", f'ulimit {limit} && exec "$@"', "sh", self.tuck, *arguments]

    def test_a_hard_limit_of_open_files_that_is_too_low_is_said(self):
        process = self.start(
            *("serve", *ONE, "--connections", "200"), command=self.limited("-n 100")
        )
        self.assert_ends(process, 1)
        log = self.log_of(process)
        for word in ("open files", "100", "connections", "LimitNOFILE"):
            self.assertIn(word, log)

    def test_a_soft_limit_of_open_files_is_raised(self):
        server = self.serve(*ONE, "--connections", "200", command=self.limited("-Sn 60"))
        held = [self.raw() for _ in range(150)]
        for connection in held:
            self.assertEqual(connection.recv(8, socket.MSG_WAITALL), b"NBDMAGIC")
        self.assert_serves()
        self.stop(server)

    @unittest.skipIf(os.geteuid() != 0, "only root can connect as somebody else")
    def test_other_users_are_refused_unless_allowed(self):
        os.chmod(self.folder, 0o711)
        for arguments, let_in in (
            ([], False),
            (["--allow-uid", "6553"], False),
            (["--allow-uid", "1", "--allow-uid", "65534"], True),
            (["--allow-uid", "any"], True),
        ):
            with self.subTest(arguments=arguments):
                server = self.serve(*ONE, *arguments)
                os.chmod(self.path("s"), 0o666)
                self.assertEqual(self.greeted_as(65534), let_in)
                refused = self.stat()["connections"]["refused_user"]
                self.assertEqual(refused, 0 if let_in else 1)
                self.assertEqual("user 65534" in self.log_of(server), not let_in)
                self.assert_serves()
                self.stop(server)

    def greeted_as(self, user):
        child = os.fork()
        if child == 0:
            status = 2
            try:
                os.setuid(user)
                connection = socket.socket(socket.AF_UNIX)
                connection.connect(self.path("s"))
                status = 0 if connection.recv(8) == b"NBDMAGIC" else 1
            finally:
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        self.assertIn(status, (0, 1))
        return status == 0


class Log(ClientsTest):
    def test_nothing_that_a_client_sends_gets_into_it(self):
        server = self.serve(*ONE, "--log-level", "debug")
        evil = b"\x1b[31mEVIL\r\n[error] EVIL \xff\xfe%s%n{}"
        meta = struct.pack(">I", len(evil)) + evil + struct.pack(">II", 1, len(evil)) + evil
        for sent in (
            go(evil),
            option(1, evil),
            option(3, evil),
            option(8) + option(10, meta),
            option(0x4556494C, evil),
            evil * 3,
            go() + evil * 3,
            go() + request(0x4556, 0x4556494C, 0x4556494C) + evil * 3,
        ):
            connection = self.raw(sent)
            connection.shutdown(socket.SHUT_WR)
            self.assert_closed(connection)
        self.wait_for("connections", "now", 0)
        self.assert_serves()
        self.stop(server)
        with open(server.log_path, "rb") as log:
            text = log.read()
        self.assertIn(b"connection closed", text)
        self.assertNotIn(b"EVIL", text)
        self.assertEqual([c for c in text if (c < 32 and c != 10) or c > 126], [])


class Signals(ClientsTest):
    def test_a_storm_while_clients_work(self):
        """CVE-2015-0847: a handler that was not safe at any moment was a deadlock. There are none here;
        that nothing else stops either is seen from outside."""
        server = self.serve(*ONE)
        ended = threading.Event()
        wrong = []

        def work(number):
            try:
                client = NbdClient.on_unix(self.path("s"))
                while not ended.is_set():
                    data = os.urandom(PAGE)
                    client.write(data, number * PAGE)
                    if client.read(PAGE, number * PAGE) != data:
                        raise AssertionError("another page came back")
                client.close()
            except Exception as error:  # pylint: disable=broad-except
                wrong.append(error)

        workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for worker in workers:
            worker.start()
        for _ in range(500):
            for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGURG, signal.SIGWINCH):
                server.send_signal(number)
            for number in (signal.SIGSTOP, signal.SIGCONT):
                server.send_signal(number)
        ended.set()
        for worker in workers:
            worker.join(PATIENCE)
            self.assertFalse(worker.is_alive())
        self.assertEqual(wrong, [])
        self.assert_serves()
        self.stop(server)

    def test_a_storm_of_stops_with_clients_in_every_phase(self):
        for round_ in range(10):
            server = self.serve(*ONE)
            reading = self.raw(go() + request(0, 0, 4 << 20) * 8)  # and takes nothing of it
            held = [
                self.raw(),
                self.raw(option(8)),
                self.raw(go()),
                self.raw(go() + request(1, 0, 1 << 20) + b"x" * 1000),
                self.raw(go() + request(3, 0, 0)),
            ]
            if round_ % 2 == 0:
                reading.close()  # a SIGPIPE for whoever does not mind that
            numbers = [signal.SIGTERM, signal.SIGCHLD, signal.SIGINT, signal.SIGTERM]
            for i in range(400):
                if server.poll() is not None:
                    break
                server.send_signal(numbers[i % len(numbers)])
            if round_ % 2 == 1:
                reading.close()
            self.assert_ends(server, 0)
            for connection in held:
                self.assert_closed(connection)
            self.assertFalse(os.path.exists(self.path("s")))


if __name__ == "__main__":
    at = sys.argv.index("--tuck")
    TuckTest.tuck = os.path.abspath(sys.argv[at + 1])
    del sys.argv[at : at + 2]
    unittest.main(verbosity=2)
