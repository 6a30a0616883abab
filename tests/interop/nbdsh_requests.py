# Requests in transmission: run by nbdsh.sh through nbdsh, which provides the module nbd.
import errno
import os

SOCKET = os.environ["TUCK_SOCKET"]
MIB = 1 << 20
SIZE = 16 * MIB
ODD_SIZE = 1000003
# Requests that libnbd itself would refuse must reach the server.
NO_CHECKS = 0


def connect(name="first", **settings):
    handle = nbd.NBD()
    handle.set_export_name(name)
    handle.set_strict_mode(NO_CHECKS)
    for setting, value in settings.items():
        getattr(handle, "set_" + setting)(value)
    handle.connect_unix(SOCKET)
    return handle


def refused(wanted, call, *args, **kwargs):
    """The call must fail with this error, and the connection must go on."""
    try:
        call(*args, **kwargs)
    except nbd.Error as error:
        names = wanted if isinstance(wanted, tuple) else (wanted,)
        assert error.errnum in names, f"{error} instead of {[errno.errorcode[n] for n in names]}"
        return
    raise AssertionError(f"{call.__name__}{args} was not refused")


def unaligned(handle):
    model = bytearray(SIZE)
    cases = [(0, 1), (1, 4095), (4095, 2), (4097, 8192), (12287, 4098), (100000, 70001), (SIZE - 1, 1)]
    for number, (offset, length) in enumerate(cases):
        data = bytes((number + 1 + i * 7) & 255 for i in range(length))
        handle.pwrite(data, offset)
        model[offset : offset + length] = data
    for offset, length in cases + [(0, MIB), (1, MIB), (SIZE - MIB, MIB)]:
        assert handle.pread(length, offset) == model[offset : offset + length], (offset, length)
    handle.zero(5000, 3000)
    model[3000:8000] = bytes(5000)
    handle.trim(4096 * 3, 4096 * 25 + 1)
    # A TRIM frees whole pages and leaves the bytes of others alone.
    model[4096 * 26 : 4096 * 28] = bytes(8192)
    assert handle.pread(MIB, 0) == model[:MIB]


def odd_end():
    handle = connect("odd")
    assert handle.get_size() == ODD_SIZE
    handle.pwrite(b"end", ODD_SIZE - 3)
    assert handle.pread(5, ODD_SIZE - 5) == b"\0\0end"
    refused(errno.EINVAL, handle.pread, 2, ODD_SIZE - 1)
    refused(errno.ENOSPC, handle.pwrite, b"xy", ODD_SIZE - 1)
    assert handle.pread(3, ODD_SIZE - 3) == b"end"
    handle.zero(1000, ODD_SIZE - 1000)
    assert handle.pread(1000, ODD_SIZE - 1000) == bytes(1000)
    handle.shutdown()


def illegal(handle):
    # Each of these must leave the connection in step: the read after it tells.
    handle.pwrite(b"canary" * 100, 4096)

    def in_step():
        assert handle.pread(600, 4096) == b"canary" * 100

    refused(errno.EINVAL, handle.pread, 4096, SIZE)
    in_step()
    refused(errno.EINVAL, handle.pread, 4096, (1 << 63) - 4096)
    in_step()
    refused((errno.ENOSPC, errno.EINVAL), handle.pwrite, b"x" * 4096, SIZE - 1)
    in_step()
    refused(errno.EINVAL, handle.trim, 4096, SIZE)
    in_step()
    refused((errno.ENOSPC, errno.EINVAL), handle.zero, 4096, SIZE)
    in_step()
    refused(errno.EINVAL, handle.cache, 4096, SIZE)
    in_step()
    # A command flag that does not exist.
    refused(errno.EINVAL, handle.pread, 512, 0, flags=1 << 9)
    in_step()
    refused(errno.EINVAL, handle.pwrite, b"x" * 512, 0, flags=1 << 9)
    in_step()
    refused(errno.EINVAL, handle.flush, flags=1 << 9)
    in_step()
    # FAST_ZERO belongs to WRITE_ZEROES alone.
    refused(errno.EINVAL, handle.trim, 512, 0, flags=nbd.CMD_FLAG_FAST_ZERO)
    in_step()
    # Beyond 32 MiB no server need go; this disk is smaller anyway.
    refused((errno.EINVAL, errno.EOVERFLOW), handle.pread, 33 * MIB, 0)
    in_step()


def flags(handle):
    handle.pwrite(b"f" * 8192, 8192, flags=nbd.CMD_FLAG_FUA)
    handle.zero(4096, 8192, flags=nbd.CMD_FLAG_FAST_ZERO)
    handle.zero(4096, 12288, flags=nbd.CMD_FLAG_NO_HOLE | nbd.CMD_FLAG_FUA)
    assert handle.pread(8192, 8192) == bytes(8192)
    handle.trim(4096, 8192, flags=nbd.CMD_FLAG_FUA)
    handle.flush()
    handle.cache(MIB, 0)


def structured(handle):
    handle.pwrite(b"s" * 4096, 2 * MIB)
    handle.trim(MIB, 3 * MIB)
    chunks = []

    def chunk(part, offset, status, error):
        chunks.append((offset, len(part), status))
        return 0

    buffer = handle.pread_structured(MIB, 2 * MIB, chunk)
    assert buffer == b"s" * 4096 + bytes(MIB - 4096)
    assert sum(length for _, length, _ in chunks) == MIB, chunks
    chunks.clear()
    handle.pread_structured(65536, 2 * MIB, chunk, flags=nbd.CMD_FLAG_DF)
    assert len(chunks) == 1 and chunks[0][:2] == (2 * MIB, 65536), chunks


def extents(handle):
    handle.pwrite(b"e" * 4096, 5 * MIB)
    handle.trim(MIB, 6 * MIB)
    entries = []

    def collect(context, offset, values, error):
        assert context == "base:allocation" and offset == 5 * MIB
        entries.extend(zip(values[::2], values[1::2]))

    handle.block_status(2 * MIB, 5 * MIB, collect)
    assert entries[0] == (4096, 0), entries
    assert any(flags == 3 for _, flags in entries), entries
    entries.clear()
    handle.block_status(2 * MIB, 5 * MIB, collect, flags=nbd.CMD_FLAG_REQ_ONE)
    assert entries == [(4096, 0)], entries
    refused(errno.EINVAL, handle.block_status, MIB, SIZE, lambda *arguments: 0)


def simple_replies():
    handle = connect(request_structured_replies=False)
    assert not handle.get_structured_replies_negotiated()
    handle.pwrite(b"simple", 7 * MIB + 1)
    assert handle.pread(6, 7 * MIB + 1) == b"simple"
    refused(errno.EINVAL, handle.pread, 512, SIZE)
    # Neither DF nor BLOCK_STATUS exist without structured replies.
    refused(errno.EINVAL, handle.pread, 512, 0, flags=nbd.CMD_FLAG_DF)
    refused((errno.EINVAL, errno.ENOTSUP), handle.block_status, MIB, 0, lambda *arguments: 0)
    assert handle.pread(6, 7 * MIB + 1) == b"simple"
    handle.shutdown()


def pipelined():
    """Many requests at once on one connection, answered in any order."""
    handle = connect()
    block = 65536
    pending = []
    for number in range(64):
        data = nbd.Buffer.from_bytearray(bytearray([number + 1]) * block)
        pending.append(handle.aio_pwrite(data, number * block))
    wait(handle, pending)
    buffers = [nbd.Buffer(block) for _ in range(64)]
    pending = [handle.aio_pread(buffer, n * block) for n, buffer in enumerate(buffers)]
    wait(handle, pending)
    for number, buffer in enumerate(buffers):
        assert buffer.to_bytearray() == bytearray([number + 1]) * block, number
    handle.shutdown()


def wait(handle, cookies):
    waiting = set(cookies)
    while waiting:
        handle.poll(-1)
        waiting = {cookie for cookie in waiting if not handle.aio_command_completed(cookie)}


def shared_page():
    """What one connection has been told is written, every other one reads."""
    one, two = connect(), connect()
    assert one.can_multi_conn()
    for turn in range(100):
        one.pwrite(bytes([turn + 1]) * 100, 9 * MIB + 100)
        two.pwrite(bytes([turn + 2]) * 100, 9 * MIB + 200)
        assert two.pread(100, 9 * MIB + 100) == bytes([turn + 1]) * 100
        assert one.pread(100, 9 * MIB + 200) == bytes([turn + 2]) * 100
    one.shutdown()
    two.shutdown()


main = nbd.NBD()
main.set_strict_mode(NO_CHECKS)
main.set_export_name("first")
main.add_meta_context("base:allocation")
main.connect_unix(SOCKET)
assert main.get_size() == SIZE
for part in (unaligned, illegal, flags, structured, extents):
    part(main)
    print("ok:", part.__name__)
main.shutdown()
for part in (odd_end, simple_replies, pipelined, shared_page):
    part()
    print("ok:", part.__name__)
