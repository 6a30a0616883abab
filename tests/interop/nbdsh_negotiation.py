# Negotiation, option by option: run by nbdsh.sh through nbdsh, which provides the module nbd.
import os

SOCKET = os.environ["TUCK_SOCKET"]


def in_negotiation():
    handle = nbd.NBD()
    handle.set_opt_mode(True)
    handle.connect_unix(SOCKET)
    assert handle.aio_is_negotiating()
    return handle


def names_of(handle):
    names = []
    handle.opt_list(lambda name, description: names.append(name))
    return names


def must_fail(call, *arguments):
    try:
        call(*arguments)
    except nbd.Error:
        return
    raise AssertionError(f"{call.__name__}{arguments} was not refused")


def listing():
    handle = in_negotiation()
    assert names_of(handle) == ["first", "odd"]
    assert names_of(handle) == ["first", "odd"]
    handle.opt_abort()


def info_then_go():
    handle = in_negotiation()
    handle.set_export_name("no such export")
    must_fail(handle.opt_info)
    must_fail(handle.opt_go)
    # A refusal is no end: the next option is heard.
    handle.set_export_name("odd")
    handle.opt_info()
    assert handle.get_size() == 1000003
    handle.set_export_name("first")
    handle.opt_info()
    assert handle.get_size() == 16 << 20
    assert handle.get_block_size(nbd.SIZE_MINIMUM) == 1
    assert handle.get_block_size(nbd.SIZE_PREFERRED) >= 4096
    assert handle.get_block_size(nbd.SIZE_MAXIMUM) >= 1 << 20
    handle.opt_go()
    assert handle.get_protocol() == "newstyle-fixed"
    handle.pwrite(b"go", 0)
    assert handle.pread(2, 0) == b"go"
    handle.shutdown()


def contexts():
    handle = in_negotiation()
    handle.set_export_name("first")
    found = []
    handle.opt_list_meta_context(lambda name: found.append(name))
    assert found == ["base:allocation"], found
    handle.add_meta_context("base:allocation")
    handle.add_meta_context("unknown:context")
    handle.opt_go()
    assert handle.can_meta_context("base:allocation")
    assert not handle.can_meta_context("unknown:context")
    handle.shutdown()


def handshake(flags):
    """With fewer handshake flags than libnbd has: the ways older clients take."""
    handle = nbd.NBD()
    handle.set_handshake_flags(flags)
    handle.set_export_name("odd")
    handle.connect_unix(SOCKET)
    assert handle.get_size() == 1000003
    handle.pwrite(b"flags", 10)
    assert handle.pread(5, 10) == b"flags"
    handle.shutdown()
    return handle


def old_clients():
    # EXPORT_NAME, with and without the 124 zero bytes behind its answer.
    handshake(0)
    handshake(nbd.HANDSHAKE_FLAG_NO_ZEROES)
    handshake(nbd.HANDSHAKE_FLAG_FIXED_NEWSTYLE)


def full_info():
    handle = in_negotiation()
    handle.set_full_info(True)
    handle.set_export_name("first")
    handle.opt_info()
    assert handle.get_canonical_export_name() == "first"
    handle.opt_abort()


def tls_is_refused():
    handle = nbd.NBD()
    if not handle.supports_tls():
        return
    handle.set_tls(nbd.TLS_REQUIRE)
    handle.set_export_name("first")
    must_fail(handle.connect_unix, SOCKET)
    handle = nbd.NBD()
    handle.set_tls(nbd.TLS_ALLOW)
    handle.set_export_name("first")
    handle.connect_unix(SOCKET)
    assert not handle.get_tls_negotiated()
    handle.shutdown()


def abandoned():
    # Clients that leave in the middle of negotiation cost nobody anything.
    handles = [in_negotiation() for _ in range(20)]
    del handles
    info_then_go()


for part in (listing, info_then_go, contexts, old_clients, full_info, tls_is_refused, abandoned):
    part()
    print("ok:", part.__name__)
