# cython: language_level=3, boundscheck=False, wraparound=False, autotestdict=False
"""What is known of TLS connections, in a saved state: how far they are, and never their secrets.

Rules
  1. The analyzer that continues asks for keys again: hello, epoch and number say which.
  2. NULL is handed back, and the source is failed, when a state ends early or memory is refused.
"""

from kwsniff.core.bytes.buffer cimport Buffer, contents
from kwsniff.core.bytes.checkpoint cimport Source, get, get_bytes, put, put_bytes
from kwsniff.core.tls.hello cimport Hello, make_hello
from kwsniff.core.tls.decryption cimport make_tls
from kwsniff.core.tls.tls_state cimport Tls, TlsSide


cdef bint save_hello(Buffer* out, Hello* hello) noexcept nogil:
    return (put(out, hello, sizeof(Hello)) and put_bytes(out, contents(&hello.side[0].message))
            and put_bytes(out, contents(&hello.side[1].message)) and put_bytes(out, contents(&hello.server_name)))


cdef Hello* load_hello(Source* source) noexcept nogil:
    cdef Hello* hello = make_hello()
    if hello == NULL:
        source.failed = True
        return NULL
    get(source, hello, sizeof(Hello))
    get_bytes(source, &hello.side[0].message)
    get_bytes(source, &hello.side[1].message)
    get_bytes(source, &hello.server_name)
    return hello


cdef bint save_tls(Buffer* out, Tls* tls) noexcept nogil:
    cdef int i
    cdef bint ok = put(out, tls, sizeof(Tls))
    for i in range(2):
        ok = (ok and put_bytes(out, contents(&tls.side[i].kept)) and put_bytes(out, contents(&tls.side[i].carriers))
              and put_bytes(out, contents(&tls.side[i].turns)))
    return ok and (tls.again == NULL or save_hello(out, tls.again))


cdef Tls* load_tls(Source* source, Hello* hello) noexcept nogil:
    cdef Tls* tls = make_tls(hello)
    cdef TlsSide* side
    cdef bint with_again
    cdef int i
    if tls == NULL:
        source.failed = True
        return NULL
    get(source, tls, sizeof(Tls))
    with_again = tls.again != NULL
    tls.hello = hello
    tls.again = NULL
    tls.inside = False
    for i in range(2):
        side = &tls.side[i]
        side.key = NULL
        side.asked = side.guessed = -1
        get_bytes(source, &side.kept)
        get_bytes(source, &side.carriers)
        get_bytes(source, &side.turns)
    if with_again and not source.failed:
        tls.again = load_hello(source)
    return tls
