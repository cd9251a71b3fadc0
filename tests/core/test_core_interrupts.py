"""The contexts that keep interrupts from compiled code, and answer them."""

import os
import signal
import threading
import time

import numpy as np
import pytest

from pymc_trees.core.interrupts import answered_interrupts, deferred_interrupts, run_interruptible


def interrupt():
    signal.raise_signal(signal.SIGINT)


@pytest.fixture
def handler():
    """Install a handler that notes its calls and raises nothing."""
    calls = []
    before = signal.signal(signal.SIGINT, lambda *arguments: calls.append(arguments))
    yield calls
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_comes_after_the_body():
    before, done = signal.getsignal(signal.SIGINT), []
    with pytest.raises(KeyboardInterrupt), deferred_interrupts():
        interrupt()
        interrupt()
        done.append(1)
    assert done and signal.getsignal(signal.SIGINT) is before
    with deferred_interrupts():  # nothing is left over
        pass


def test_a_handler_of_the_users_own_gets_number_and_frame(handler):
    mine = signal.getsignal(signal.SIGINT)
    with deferred_interrupts():
        interrupt()
        assert not handler
    [(number, frame)] = handler
    assert number == signal.SIGINT and frame.f_code.co_name.startswith("test_a_handler")
    assert signal.getsignal(signal.SIGINT) is mine


@pytest.mark.parametrize("ignored", [signal.SIG_IGN, signal.SIG_DFL])
def test_what_is_no_function_is_left_alone(ignored):
    before = signal.signal(signal.SIGINT, ignored)
    try:
        with deferred_interrupts():
            assert signal.getsignal(signal.SIGINT) is ignored
            if ignored is signal.SIG_IGN:
                interrupt()
        assert signal.getsignal(signal.SIGINT) is ignored
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_handler_that_is_not_pythons_is_left_alone(monkeypatch):
    import _signal

    monkeypatch.setattr(_signal, "getsignal", lambda number: None)
    with pytest.raises(KeyboardInterrupt), deferred_interrupts():
        interrupt()
        raise AssertionError("not deferred: the handler could not be put back")


def test_the_inner_context_does_nothing():
    done = []
    with pytest.raises(KeyboardInterrupt), deferred_interrupts():
        with deferred_interrupts():
            interrupt()
        done.append("after the inner one")
    assert done


def test_an_exception_of_the_body_goes_first():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ValueError, match="mine") as caught, deferred_interrupts():
        interrupt()
        raise ValueError("mine")
    assert "KeyboardInterrupt" in caught.value.__notes__[0]
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(ValueError, match="mine") as caught, deferred_interrupts():
        raise ValueError("mine")
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize("depth", [1, 2])
def test_where_the_body_can_be_left_an_interrupt_is_answered(depth, handler):
    with deferred_interrupts() as outer:
        interrupt()
        held = outer
        if depth == 2:
            with deferred_interrupts() as held:
                held.answer()
        held.answer()
        assert len(handler) == 1
        held.answer()
    assert len(handler) == 1
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt), deferred_interrupts() as held:
        interrupt()
        held.answer()
        raise AssertionError("the body was not left")


def test_while_python_waits_the_handler_runs_at_once_and_compiled_code_defers_again(handler):
    with deferred_interrupts():
        with answered_interrupts():
            interrupt()
            assert len(handler) == 1
            with deferred_interrupts() as held:
                interrupt()
                assert len(handler) == 1
                held.answer()
                assert len(handler) == 2
            interrupt()
            assert len(handler) == 3
        interrupt()
        assert len(handler) == 3
    assert len(handler) == 4


def test_other_threads_change_nothing():
    seen = []

    def work():
        before = signal.getsignal(signal.SIGINT)
        with deferred_interrupts() as held:
            held.answer()
            seen.append(signal.getsignal(signal.SIGINT) is before)
        seen.append(
            run_interruptible(threading.get_ident, np.zeros(1, bool)) == threading.get_ident()
        )

    with deferred_interrupts():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen == [True, True]


def test_a_call_apart_gives_its_result_or_its_error():
    stop_flag = np.ones(1, dtype=bool)
    with np.errstate(divide="raise"):  # it goes along
        with pytest.raises(FloatingPointError):
            run_interruptible(lambda: np.float64(1) / 0, stop_flag)
    assert (
        run_interruptible(lambda: (stop_flag[0], threading.get_ident()), stop_flag)[0] == np.False_
    )
    assert run_interruptible(threading.get_ident, stop_flag) != threading.get_ident()


def wait_for(stop_flag, ended):
    """Kernel-like: looks at a flag now and then."""
    signal.raise_signal(signal.SIGINT)  # to the process: the main thread's handler is run
    until = time.monotonic() + 60
    while not stop_flag[0] and time.monotonic() < until:
        time.sleep(0.001)
    time.sleep(0.02)
    ended.append(bool(stop_flag[0]))
    return "result"


def test_a_call_apart_is_asked_to_end_and_has_ended_when_the_interrupt_goes_on():
    stop_flag, ended = np.zeros(1, dtype=bool), []
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run_interruptible(lambda: wait_for(stop_flag, ended), stop_flag)
    assert ended == [True] and signal.getsignal(signal.SIGINT) is before


def test_a_call_apart_goes_on_when_the_handler_raises_nothing(handler):
    def work():
        interrupt()
        until = time.monotonic() + 60
        while not handler and time.monotonic() < until:
            time.sleep(0.001)
        return "result"

    stop_flag = np.zeros(1, dtype=bool)
    assert run_interruptible(work, stop_flag) == "result"
    assert len(handler) == 1 and not stop_flag[0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_starts_without_the_context():
    with deferred_interrupts():
        child = os.fork()
        if child == 0:
            try:
                with deferred_interrupts():
                    interrupt()
            except KeyboardInterrupt:
                os._exit(7)
            os._exit(1)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
