"""Ctrl-C while processes are started."""

import os
import signal
import threading
import time

import pytest

from bayes_lcs.runtime.interrupts import block_sigint

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "pthread_sigmask"), reason="signals cannot be blocked on this system"
)


def test_ctrl_c_waits_until_a_process_is_started_whichever_thread_receives_it():
    stop = threading.Event()
    other = threading.Thread(target=stop.wait)
    other.start()  # a thread that does not block the signal
    is_complete = False
    try:
        with pytest.raises(KeyboardInterrupt), block_sigint():  # noqa: PT012
            os.kill(os.getpid(), signal.SIGINT)
            signal.pthread_kill(other.ident, signal.SIGINT)
            time.sleep(0.05)
            is_complete = True
    finally:
        stop.set()
        other.join()
    assert is_complete
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_without_ctrl_c_nothing_is_raised():
    with block_sigint():
        assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
