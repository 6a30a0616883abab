"""Runs the tuck program for tests: to its end, or as a server until it is told to stop."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PATIENCE = 60  # seconds; only a hang takes that long


class TuckTest(unittest.TestCase):
    """A test with a folder of its own, in which the program runs. Servers that a failed test has left
    behind are killed."""

    tuck = ""  # set by the main program

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tuck-cli-")
        self._running = []

    def tearDown(self):
        for process in self._running:
            if process.poll() is None:
                process.kill()
                process.wait()
            for stream in (process.stdout, process.stderr):
                if stream:
                    stream.close()
        shutil.rmtree(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_tuck(self, *arguments, **options):
        """Runs it to its end: status, output, errors."""
        done = subprocess.run(
            [self.tuck, *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            **options,
        )
        return done.returncode, done.stdout, done.stderr

    def start(self, *arguments, **options):
        """Starts a program (tuck, unless options say what) in the folder, its errors in a file."""
        command = options.pop("command", [self.tuck])
        log_path = self.path(f"log{len(self._running)}")
        with open(log_path, "wb") as log:
            process = subprocess.Popen(
                [*command, *arguments], cwd=self.folder, **{"stderr": log, **options}
            )
        process.log_path = log_path
        self._running.append(process)
        return process

    def serve(self, *arguments, control="tuck.control", **options):
        """Starts `tuck serve` and waits until it answers on its control socket."""
        process = self.start("serve", *arguments, **options)
        self.wait_for_answer(process, control)
        return process

    def wait_for_answer(self, process, control):
        """Waits until the server answers on its control socket."""
        for _ in range(PATIENCE * 50):
            if process.poll() is not None:
                self.fail(f"tuck serve ended with {process.returncode}: {self.log_of(process)}")
            status, _, _ = self.run_tuck("stat", "--control", control)
            if status == 0:
                return
            try:
                process.wait(0.02)
            except subprocess.TimeoutExpired:
                pass
        self.fail(f"tuck serve does not answer: {self.log_of(process)}")

    def log_of(self, process):
        with open(process.log_path, encoding="utf-8") as log:
            return log.read()

    def wait_for_log(self, process, words):
        """Waits until the server has logged this."""
        for _ in range(PATIENCE * 50):
            if words in self.log_of(process):
                return
            time.sleep(0.02)
        self.fail(f"never logged '{words}': {self.log_of(process)}")

    def stop(self, process, number=signal.SIGTERM):
        """Stops a server and checks that it ended well."""
        process.send_signal(number)
        self.assert_ends(process, 0)

    def assert_ends(self, process, status):
        self.assertEqual(process.wait(PATIENCE), status, self.log_of(process))

    def stat(self, control="tuck.control"):
        status, output, errors = self.run_tuck("stat", "--json", "--control", control)
        self.assertEqual(status, 0, errors)
        return json.loads(output)

    def assert_refused(self, status, words, *arguments):
        """The command must end with this status and one line that holds all the words."""
        got, output, errors = self.run_tuck(*arguments)
        self.assertEqual(got, status, errors)
        self.assertEqual(output, "")
        self.assertRegex(errors, r"\Atuck: [^\n]+\n\Z")
        for word in words:
            self.assertIn(word, errors)


def run_tests():
    """The main program of a test file: --tuck PROGRAM, and unittest's options."""
    at = sys.argv.index("--tuck")
    TuckTest.tuck = os.path.abspath(sys.argv[at + 1])
    del sys.argv[at : at + 2]
    unittest.main(verbosity=2)
