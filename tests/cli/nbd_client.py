"""The least NBD client: fixed newstyle, one request at a time. For tests that need a client on any
socket, without libnbd."""

import socket
import struct

_OPTION_MAGIC = b"IHAVEOPT"
_REQUEST = struct.Struct(">IHHQQI")
_REPLY = struct.Struct(">IIQ")
_READ, _WRITE, _DISCONNECT, _FLUSH, _TRIM = 0, 1, 2, 3, 4


class NbdError(Exception):
    """The server's error number for a request."""

    def __init__(self, code):
        super().__init__(f"NBD error {code}")
        self.code = code


class NbdClient:
    def __init__(self, connection, name=""):
        self._connection = connection
        connection.settimeout(60)
        magic, option_magic, _ = struct.unpack(">8s8sH", self._receive(18))
        assert magic == b"NBDMAGIC" and option_magic == _OPTION_MAGIC, (magic, option_magic)
        encoded = name.encode()
        # Both client flags (fixed newstyle, no zeroes), then EXPORT_NAME.
        connection.sendall(
            struct.pack(">I8sII", 3, _OPTION_MAGIC, 1, len(encoded)) + encoded
        )
        self.size, self.flags = struct.unpack(">QH", self._receive(10))

    @classmethod
    def on_unix(cls, path, name=""):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(path)
        return cls(connection, name)

    def read(self, length, offset):
        return self._call(_READ, offset, length)

    def write(self, data, offset):
        self._call(_WRITE, offset, len(data), data)

    def trim(self, length, offset):
        self._call(_TRIM, offset, length)

    def flush(self):
        self._call(_FLUSH, 0, 0)

    def close(self):
        """Says goodbye and waits until the server has closed."""
        self._connection.sendall(_REQUEST.pack(0x25609513, 0, _DISCONNECT, 0, 0, 0))
        assert self._connection.recv(1) == b""
        self._connection.close()

    def abandon(self):
        """Closes without a word."""
        self._connection.close()

    def _call(self, command, offset, length, data=b""):
        self._connection.sendall(
            _REQUEST.pack(0x25609513, 0, command, 42, offset, length) + data
        )
        magic, error, cookie = _REPLY.unpack(self._receive(_REPLY.size))
        assert magic == 0x67446698 and cookie == 42, (hex(magic), cookie)
        if error:
            raise NbdError(error)
        return self._receive(length) if command == _READ else b""

    def _receive(self, length):
        data = b""
        while len(data) < length:
            piece = self._connection.recv(length - len(data))
            if not piece:
                raise EOFError(f"the server closed after {len(data)} of {length} bytes")
            data += piece
        return data
