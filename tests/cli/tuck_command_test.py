"""The tuck command as a user, a script and a service manager see it: the real program, end to end.

    tuck_command_test.py --tuck build/debug/bin/tuck [unittest options]
"""

import fcntl
import json
import os
import pty
import re
import signal
import socket
import stat
import subprocess
import unittest

from nbd_client import NbdClient, NbdError
from tuck_process import PATIENCE, TuckTest, run_tests

PAGE = 4096
ENOSPC = 28
F_SETPIPE_SZ = 1031


class CommandLine(TuckTest):
    def test_help_and_version_end_well(self):
        status, output, errors = self.run_tuck("--version")
        self.assertEqual((status, errors), (0, ""))
        self.assertRegex(output, r"\Atuck \d+\.\d+\.\d+\n\Z")
        for arguments in (["--help"], ["serve", "--help"], ["stat", "--help"], ["top", "-h"]):
            status, output, errors = self.run_tuck(*arguments)
            self.assertEqual((status, errors), (0, ""), arguments)
            self.assertIn("--help", output)

    def test_help_names_every_option(self):
        _, output, _ = self.run_tuck("serve", "--help")
        for option in (
            "--unix --listen --stdio --size --export --codec --memory-limit --swap --lock-memory "
            "--reserve --workers "
            "--connections --poll --control --log-level"
        ).split():
            self.assertIn(option, output)

    def test_wrong_usage_is_status_2(self):
        for arguments, words in (
            ([], ["--help"]),
            (["swim"], ["swim", "--help"]),
            (["serve"], ["--unix", "--listen", "--stdio"]),
            (["serve", "--unix", "s"], ["--size"]),
            (["serve", "--unix", "s", "--size", "1X"], ["--size", "1X"]),
            (["serve", "--unix", "s", "--size", "1M", "--fast"], ["--fast", "tuck serve --help"]),
            (["serve", "--unix", "s", "--size", "1M", "--workers", "few"], ["--workers"]),
            (["serve", "--unix", "s", "--size", "1M", "--codec", "zip"], ["--codec", "zip"]),
            (["serve", "--unix", "s", "--size", "1M", "--log-level", "x"], ["--log-level", "x"]),
            (["serve", "--unix", "s", "--size"], ["--size"]),
            (["serve", "--unix", "s", "--size", "1M", "--unit", "64K"], ["--unit"]),
            (["serve", "--unix", "s", "--export", "a:1M", "--export", "a:1M"], ["'a'"]),
            (["serve", "--size", "1M", "--listen", "0.0.0.0:1"], ["--listen", "0.0.0.0", "TLS"]),
            (["serve", "--stdio", "--unix", "s", "--size", "1M"], ["--stdio"]),
            (["serve", "--stdio", "--size", "1M", "--swap"], ["--swap", "--stdio"]),
            (["serve", "--unix", "s", "--size", "1M", "--reserve", "1K"], ["--reserve", "256K"]),
            (["serve", "--unix", "s", "--size", "1M", "--connections", "0"], ["--connections"]),
            (["stat", "--jason"], ["--jason", "tuck stat --help"]),
            (["top", "--count", "many"], ["--count"]),
        ):
            with self.subTest(arguments=arguments):
                self.assert_refused(2, words, *arguments)

    def test_what_goes_wrong_is_status_1(self):
        for arguments, words in (
            (["stat"], ["tuck.control", "no such file"]),
            (["top", "--control", "nowhere"], ["nowhere"]),
            (["serve", "--size", "1M", "--unix", "none/sock", "--control", "none"], ["none/sock"]),
            (["serve", "--size", "1M", "--unix", "s", "--control", "none/c"], ["none/c"]),
        ):
            with self.subTest(arguments=arguments):
                self.assert_refused(1, words, *arguments)

    def test_closed_standard_descriptors_stay_nobodys(self):
        server = self.serve(
            *("--unix", "s", "--size", "1M"),
            command=["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", self.tuck],
        )
        for descriptor in range(3):
            self.assertEqual(os.readlink(f"/proc/{server.pid}/fd/{descriptor}"), "/dev/null")
        NbdClient.on_unix(self.path("s")).close()
        self.stop(server)

    def test_the_last_of_repeated_values_counts(self):
        server = self.serve("--unix", "s", "--size", "1M", "--size", "2M")
        self.assertEqual(self.stat()["exports"][0]["size_bytes"], 2 << 20)
        self.stop(server)


class Serving(TuckTest):
    def test_pages_in_and_out_show_in_the_figures(self):
        server = self.serve("--unix", "s", "--export", "swap:16M", "--export", "two:1M")
        client = NbdClient.on_unix(self.path("s"), "swap")
        self.assertEqual(client.size, 16 << 20)
        pages = {
            0: bytes(1000) + b"compressible" * 258,
            5: b"\0" * PAGE,
            6: b"abcdefgh" * 512,
            7: os.urandom(PAGE),
        }
        for slot, data in pages.items():
            client.write(data[:PAGE], slot * PAGE)
        for slot, data in pages.items():
            self.assertEqual(client.read(PAGE, slot * PAGE), data[:PAGE])
        self.assertEqual(client.read(PAGE, 3 * PAGE), bytes(PAGE))
        figures = self.stat()
        self.assertEqual(figures["memory"]["pages"], 4)
        self.assertEqual(figures["memory"]["original_bytes"], 4 * PAGE)
        self.assertGreaterEqual(figures["memory"]["same_filled_pages"], 1)
        self.assertEqual(figures["memory"]["incompressible_pages"], 1)
        swap, two = figures["exports"]
        self.assertEqual((swap["name"], swap["pages"]), ("swap", 4))
        self.assertEqual((two["name"], two["pages"]), ("two", 0))
        self.assertEqual(figures["operations"]["write"]["requests"], 4)
        self.assertEqual(figures["operations"]["read"]["requests"], 5)
        self.assertEqual(figures["operations"]["read"]["bytes"], 5 * PAGE)
        self.assertGreater(figures["operations"]["read"]["latency_p50_ns"], 0)
        self.assertEqual(figures["connections"]["now"], 1)
        self.assertEqual(figures["pid"], server.pid)
        client.trim(8 * PAGE, 0)
        self.assertEqual(self.stat()["memory"]["pages"], 0)
        client.close()
        self.stop(server)

    def test_the_ledger_is_what_the_kernel_says(self):
        server = self.serve("--unix", "s", "--size", "64M")
        client = NbdClient.on_unix(self.path("s"))
        for megabyte in range(24):
            client.write(os.urandom(1 << 19) + bytes(1 << 19), megabyte << 20)
        # The background fills the reserve while it is looked at, so one look may be in between.
        for _ in range(100):
            ledger = self.stat()["ledger"]
            kernel = ledger["kernel_resident_bytes"] + ledger["kernel_swapped_bytes"]
            if ledger["sum_bytes"] == kernel:
                break
        self.assertGreaterEqual(ledger["payload_bytes"], 12 << 20)
        self.assertEqual(ledger["sum_bytes"], kernel)
        client.close()
        self.stop(server)

    def test_a_memory_limit_refuses_writes_and_nothing_else(self):
        server = self.serve("--unix", "s", "--size", "64M", "--memory-limit", "8M")
        client = NbdClient.on_unix(self.path("s"))
        stored = []
        with self.assertRaises(NbdError) as refused:
            for slot in range(16 << 8):
                page = os.urandom(PAGE)
                client.write(page, slot * PAGE)
                stored.append(page)
        self.assertEqual(refused.exception.code, ENOSPC)
        self.assertGreater(len(stored), 256)
        for slot, page in enumerate(stored):
            self.assertEqual(client.read(PAGE, slot * PAGE), page)
        figures = self.stat()
        self.assertEqual(figures["memory"]["limit_bytes"], 8 << 20)
        self.assertGreaterEqual(figures["engine"]["stores_no_space"], 1)
        self.assertEqual(figures["operations"]["write"]["errors"], 1)
        client.trim(64 << 20, 0)
        client.write(os.urandom(PAGE), 0)
        client.close()
        self.stop(server)

    def test_stat_is_for_people_without_json(self):
        server = self.serve("--unix", "s", "--size", "1M")
        status, output, errors = self.run_tuck("stat")
        self.assertEqual((status, errors), (0, ""))
        for word in ("original", "compressed", "resident", "same-filled", "Ledger", "Process"):
            self.assertIn(word, output)
        self.stop(server)

    def test_the_control_socket_answers_bad_requests_with_an_error(self):
        server = self.serve("--unix", "s", "--size", "1M")
        for request in (b"stop\n", b'{"command":"dance"}\n', b"\xff\n", b"x" * 4096):
            with socket.socket(socket.AF_UNIX) as control:
                control.settimeout(PATIENCE)
                control.connect(self.path("tuck.control"))
                control.sendall(request)
                self.assertEqual(list(json.loads(control.makefile().readline())), ["error"])
        mode = os.stat(self.path("tuck.control")).st_mode
        self.assertEqual((stat.S_ISSOCK(mode), stat.S_IMODE(mode)), (True, 0o600))
        self.stop(server)

    def test_top(self):
        server = self.serve("--unix", "s", "--size", "1M")
        status, output, errors = self.run_tuck("top", "--count", "2")
        self.assertEqual((status, errors), (0, ""))
        self.assertEqual(output.count("original"), 2)
        self.assertNotIn("\033", output)
        self.assertRegex(output, r"write +0/s")
        self.stop(server)

    def test_top_on_a_terminal_ends_at_an_interrupt(self):
        server = self.serve("--unix", "s", "--size", "1M")
        terminal, far_end = pty.openpty()
        top = self.start("top", stdout=far_end)
        os.close(far_end)
        screen = b""
        while screen.count(b"\033[H") < 2:
            screen += os.read(terminal, 65536)
        top.send_signal(signal.SIGINT)
        self.assert_ends(top, 0)
        os.close(terminal)
        self.stop(server)


class Stopping(TuckTest):
    def test_each_signal_ends_it_well_and_leaves_no_files(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            server = self.serve("--unix", "s", "--size", "1M")
            self.assertTrue(os.path.exists(self.path("s")))
            self.stop(server, number)
            self.assertFalse(os.path.exists(self.path("s")))
            self.assertFalse(os.path.exists(self.path("tuck.control")))
            self.assertIn(signal.Signals(number).name, self.log_of(server))

    def test_a_hangup_that_was_ignored_before_stays_ignored(self):
        server = self.serve("--unix", "s", "--size", "1M", command=["nohup", self.tuck])
        server.send_signal(signal.SIGHUP)
        client = NbdClient.on_unix(self.path("s"))
        client.write(b"x" * PAGE, 0)
        client.close()
        self.stop(server)
        self.assertNotIn("SIGHUP", self.log_of(server))

    def test_with_a_client_attached(self):
        server = self.serve("--unix", "s", "--size", "1M")
        client = NbdClient.on_unix(self.path("s"))
        client.write(b"x" * PAGE, 0)
        server.send_signal(signal.SIGTERM)
        server.send_signal(signal.SIGTERM)
        server.send_signal(signal.SIGINT)
        self.assert_ends(server, 0)
        with self.assertRaises((EOFError, ConnectionError)):
            client.read(PAGE, 0)
        client.abandon()

    def test_a_signal_in_the_middle_of_the_start(self):
        for _ in range(10):
            process = self.start("serve", "--unix", "s", "--size", "1M")
            while "export" not in self.log_of(process) and process.poll() is None:
                pass
            self.stop(process)


class Sockets(TuckTest):
    def test_a_dead_servers_sockets_are_replaced(self):
        server = self.serve("--unix", "s", "--size", "1M")
        server.kill()
        server.wait()
        self.assertTrue(os.path.exists(self.path("s")))
        server = self.serve("--unix", "s", "--size", "1M")
        NbdClient.on_unix(self.path("s")).close()
        self.stop(server)

    def test_a_living_servers_socket_is_refused(self):
        server = self.serve("--unix", "s", "--size", "1M")
        client = NbdClient.on_unix(self.path("s"))
        self.assert_refused(
            1, ["s"], "serve", "--unix", "s", "--size", "1M", "--control", "none"
        )
        self.assert_refused(
            1,
            ["tuck.control", "running server"],
            *("serve", "--unix", "other", "--size", "1M", "--control", "tuck.control"),
        )
        client.write(b"x" * PAGE, 0)
        client.close()
        NbdClient.on_unix(self.path("s")).close()
        self.stop(server)

    def test_two_servers_in_one_folder(self):
        first = self.serve("--unix", "s", "--size", "1M")
        second = self.start("serve", "--unix", "other", "--size", "2M")
        while "serving at" not in self.log_of(second) and second.poll() is None:
            pass
        self.assertIn("no control socket", self.log_of(second))
        client = NbdClient.on_unix(self.path("other"))
        self.assertEqual(client.size, 2 << 20)
        client.close()
        self.assertEqual(self.stat()["pid"], first.pid)
        self.stop(second)
        self.assertEqual(self.stat()["pid"], first.pid)
        self.stop(first)

    def test_several_addresses(self):
        server = self.serve("--unix", "a", "--unix", "b", "--listen", "127.0.0.1:0", "--size", "1M")
        NbdClient.on_unix(self.path("a")).close()
        NbdClient.on_unix(self.path("b")).close()
        uris = self.stat()["uris"]
        self.assertEqual(len(uris), 3, uris)
        port = int(re.search(r"nbd://127\.0\.0\.1:(\d+)", " ".join(uris)).group(1))
        NbdClient(socket.create_connection(("127.0.0.1", port))).close()
        self.stop(server)


class ServiceManager(TuckTest):
    def notify_socket(self):
        receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(receiver.close)
        receiver.settimeout(PATIENCE)
        receiver.bind(self.path("notify"))
        return receiver

    def test_says_when_it_is_ready_and_when_it_stops(self):
        receiver = self.notify_socket()
        environment = {**os.environ, "NOTIFY_SOCKET": self.path("notify")}
        server = self.start("serve", "--unix", "s", "--size", "1M", env=environment)
        ready = receiver.recv(4096).decode()
        # Ready means ready: the first attempt must succeed.
        NbdClient.on_unix(self.path("s")).close()
        self.assertIn("READY=1", ready.splitlines())
        self.assertRegex(ready, r"(?m)^STATUS=.*socket=")
        self.assertEqual(self.run_tuck("stat")[0], 0)
        server.send_signal(signal.SIGTERM)
        self.assertIn("STOPPING=1", receiver.recv(4096).decode().splitlines())
        self.assert_ends(server, 0)

    def serve_inherited(self, listener, *arguments):
        """Starts it with the socket as descriptor 3, as sd_listen_fds(3) wants it."""

        def hand_over():
            os.dup2(listener.fileno(), 3)

        return self.start(
            *("serve", *arguments),
            command=["sh", "-c", 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"', "sh", self.tuck],
            preexec_fn=hand_over,
            pass_fds=[3],
        )

    def test_serves_a_socket_that_is_handed_over(self):
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.path("activated"))
            listener.listen()
            # The client is there before the server, as on the first use of a socket unit.
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(self.path("activated"))
            server = self.serve_inherited(listener, "--size", "1M")
        client = NbdClient(connection)
        client.write(b"activated".ljust(PAGE), PAGE)
        self.assertEqual(client.read(PAGE, PAGE), b"activated".ljust(PAGE))
        client.close()
        self.stop(server)
        # It is the service manager's file and stays.
        self.assertTrue(os.path.exists(self.path("activated")))

    def test_refuses_what_is_no_listening_socket(self):
        with socket.socket(socket.AF_UNIX) as sock:
            server = self.serve_inherited(sock, "--size", "1M")
        self.assert_ends(server, 1)
        self.assertIn("not a listening stream socket", self.log_of(server))

    def test_refuses_a_socket_beyond_this_machine(self):
        with socket.socket(socket.AF_INET) as sock:
            sock.bind(("0.0.0.0", 0))
            sock.listen()
            server = self.serve_inherited(sock, "--size", "1M")
        self.assert_ends(server, 1)
        self.assertIn("beyond this machine", self.log_of(server))

    def test_log_lines_for_the_journal_carry_priorities(self):
        with open(self.path("journal"), "wb") as journal:
            status = os.fstat(journal.fileno())
            environment = {**os.environ, "JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
            done = subprocess.run(
                [self.tuck, "serve", "--unix", "none/s", "--size", "1M"],
                cwd=self.folder,
                stderr=journal,
                env=environment,
                timeout=PATIENCE,
                check=False,
            )
        self.assertEqual(done.returncode, 1)
        with open(self.path("journal"), encoding="utf-8") as journal:
            self.assertRegex(journal.read(), r"(?m)^<3>tuck: ")


class StandardStreams(TuckTest):
    def serve_pair(self, *arguments):
        near, far = socket.socketpair()
        self.addCleanup(near.close)
        server = self.start("serve", "--stdio", "--size", "1M", *arguments, stdin=far, stdout=far)
        far.close()
        return server, near

    def test_serves_one_client_and_ends(self):
        server, connection = self.serve_pair()
        client = NbdClient(connection)
        client.write(b"by hand".ljust(PAGE), 0)
        self.assertEqual(client.read(PAGE, 0), b"by hand".ljust(PAGE))
        client.close()
        self.assert_ends(server, 0)
        self.assertFalse(os.path.exists(self.path("tuck.control")))

    def test_a_log_that_nobody_reads_stops_nobody(self):
        reader, writer = os.pipe()
        fcntl.fcntl(writer, F_SETPIPE_SZ, PAGE)
        os.set_blocking(writer, False)
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(writer, b"full")
        os.set_blocking(writer, True)
        server = self.start(
            *("serve", "--unix", "s", "--size", "1M", "--log-level", "debug"), stderr=writer
        )
        self.wait_for_answer(server, "tuck.control")
        for _ in range(50):
            NbdClient.on_unix(self.path("s")).close()
            bad = socket.socket(socket.AF_UNIX)
            bad.connect(self.path("s"))
            bad.sendall(bytes(64))
            bad.close()
        client = NbdClient.on_unix(self.path("s"))
        client.write(b"x" * PAGE, 0)
        self.assertEqual(client.read(PAGE, 0), b"x" * PAGE)
        client.close()
        self.stop(server)
        os.close(reader)
        os.close(writer)

    def test_serves_pipes(self):
        server = self.start(
            *("serve", "--stdio", "--size", "1M"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.assertEqual(server.stdout.read(16), b"NBDMAGICIHAVEOPT")
        server.stdin.close()
        server.wait(PATIENCE)

    def test_stops_at_a_signal_while_the_client_waits(self):
        server, connection = self.serve_pair("--control", "c")
        client = NbdClient(connection)
        figures = self.stat("c")
        self.assertNotIn("operations", figures)
        self.assertEqual(figures["memory"]["pages"], 0)
        self.stop(server)
        self.assertFalse(os.path.exists(self.path("c")))
        with self.assertRaises((EOFError, ConnectionError)):
            client.read(PAGE, 0)


if __name__ == "__main__":
    run_tests()
