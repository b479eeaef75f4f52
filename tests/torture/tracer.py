"""Run a function in a child process and interfere with its n-th system call that changes files (Linux, x86-64).

The child is traced with ptrace, so the calls of SQLite are counted like those of Python, in every thread.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
import sys
import time
from collections.abc import Callable
from typing import Literal, NamedTuple

Action = Literal["count", "kill", "EIO", "ENOSPC", "EINTR", "short", "stop"]

_TRACE_ME, _GET_REGISTERS, _SET_REGISTERS, _CONTINUE, _SET_OPTIONS = 0, 12, 13, 24, 0x4200
_OPTIONS = 1 | 8 | 0x100000  # mark system calls, follow new threads, kill the child with this process
_WAIT_FOR_ALL = 0x40000000
_SYSTEM_CALL_STOP = signal.SIGTRAP | 0x80
_WRITES = {1: "write", 18: "pwrite64", 20: "writev"}
_CHANGES = {
    **_WRITES, 73: "flock", 74: "fsync", 75: "fdatasync", 77: "ftruncate", 82: "rename", 83: "mkdir", 84: "rmdir",
    86: "link", 87: "unlink", 88: "symlink", 90: "chmod", 91: "fchmod", 257: "openat", 258: "mkdirat", 263: "unlinkat",
    264: "renameat", 265: "linkat", 266: "symlinkat", 285: "fallocate", 316: "renameat2",
}  # fmt: skip
_FIRST_FILE = 3
_CREATES = os.O_CREAT


class Registers(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_ulonglong)
        for name in [
            "r15",
            "r14",
            "r13",
            "r12",
            "rbp",
            "rbx",
            "r11",
            "r10",
            "r9",
            "r8",
            "rax",
            "rcx",
            "rdx",
            "rsi",
            "rdi",
            "orig_rax",
            "rip",
            "cs",
            "eflags",
            "rsp",
            "ss",
            "fs_base",
            "gs_base",
            "ds",
            "es",
            "fs",
            "gs",
        ]
    ]


Observer = Callable[[int, str, Registers], None]
"""Called with the thread, the name of the call, and its registers."""


class Traced(NamedTuple):
    """How a traced run ended: the calls that were counted, the one that was hit, the exit code, and whether it hung."""

    calls: int
    hit: str
    exit_code: int
    has_hung: bool


def is_possible() -> bool:
    """Whether this system lets a process trace its child."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    try:
        return run(lambda: None, "count", 0, ignored=-1).exit_code == 0
    except OSError:
        return False


def run(
    work: Callable[[], None],
    action: Action,
    number: int,
    *,
    ignored: int,
    seconds: float = 60.0,
    observe: Observer | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> Traced:
    """Run ``work`` in a child and interfere with its n-th call; writes to the descriptor ``ignored`` do not count.

    ``observe`` is called before each call that changes files, also those that do not count, and ``meanwhile`` while the
    child is stopped.
    """
    child = os.fork()
    if child == 0:
        _be_traced(work)
    return _Tracer(child, action, number, ignored, time.monotonic() + seconds, observe, meanwhile).serve()


def wait_for(child: int, seconds: float) -> bool:
    """Wait until a child ends, and kill it if it does not; return whether it ended by itself."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def _be_traced(work: Callable[[], None]) -> None:
    code = 70
    try:
        _ptrace(_TRACE_ME, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        work()
        code = 0
    finally:
        os._exit(code)


class _Tracer:
    def __init__(
        self,
        child: int,
        action: Action,
        number: int,
        ignored: int,
        end: float,
        observe: Observer | None,
        meanwhile: Callable[[], None],
    ) -> None:
        self._observe = observe
        self._meanwhile = meanwhile
        self._child = child
        self._action = action
        self._number = number
        self._ignored = ignored
        self._end = end
        self._calls = 0
        self._hit = ""
        self._has_hung = False
        self._entered: set[int] = set()
        self._failing: dict[int, int] = {}
        self._known: set[int] = set()

    def serve(self) -> Traced:
        os.waitpid(self._child, _WAIT_FOR_ALL)
        _ptrace(_SET_OPTIONS, self._child, _OPTIONS)
        self._known.add(self._child)
        _ptrace(_CONTINUE, self._child)
        while True:
            thread, status = self._wait()
            if os.WIFEXITED(status) or os.WIFSIGNALED(status):
                if thread == self._child:
                    return Traced(self._calls, self._hit, os.waitstatus_to_exitcode(status), self._has_hung)
                continue
            self._stopped(thread, os.WSTOPSIG(status))

    def _wait(self) -> tuple[int, int]:
        while True:
            thread, status = os.waitpid(-1, _WAIT_FOR_ALL | os.WNOHANG)
            if thread:
                return thread, status
            if time.monotonic() > self._end and not self._has_hung:
                self._has_hung = True
                os.kill(self._child, signal.SIGKILL)
            time.sleep(0.0001)

    def _stopped(self, thread: int, reason: int) -> None:
        passed_on = 0
        if reason == _SYSTEM_CALL_STOP:
            self._system_call(thread)
        elif reason == signal.SIGSTOP and thread not in self._known:
            self._known.add(thread)
        elif reason != signal.SIGTRAP:
            passed_on = reason
        try:
            _ptrace(_CONTINUE, thread, passed_on)
        except ProcessLookupError:
            return

    def _system_call(self, thread: int) -> None:
        try:
            registers = Registers()
            _ptrace(_GET_REGISTERS, thread, ctypes.addressof(registers))
            if thread in self._entered:
                self._entered.discard(thread)
                self._leave(thread, registers)
            else:
                self._entered.add(thread)
                self._enter(thread, registers)
        except ProcessLookupError:
            return

    def _enter(self, thread: int, registers: Registers) -> None:
        name = _CHANGES.get(registers.orig_rax)
        if name is not None and self._observe is not None:
            self._observe(thread, name, registers)
        if name is None or not self._counts(name, registers):
            return
        self._calls += 1
        if self._calls != self._number or self._action == "count":
            return
        self._hit = name
        match self._action:
            case "kill":
                os.kill(self._child, signal.SIGKILL)
            case "stop":
                self._meanwhile()
            case "short" if registers.orig_rax in _WRITES and name != "writev":
                registers.rdx = max(1, registers.rdx // 2)
                _ptrace(_SET_REGISTERS, thread, ctypes.addressof(registers))
            case "EIO" | "ENOSPC" | "EINTR" as problem:
                self._failing[thread] = getattr(errno, problem)
                registers.orig_rax = ctypes.c_ulonglong(-1).value
                _ptrace(_SET_REGISTERS, thread, ctypes.addressof(registers))

    def _counts(self, name: str, registers: Registers) -> bool:
        if name == "openat":
            return bool(registers.rdx & _CREATES)
        if name in {"flock", "fsync", "fdatasync", "ftruncate", "fchmod", "fallocate"} or name in _WRITES.values():
            return bool(registers.rdi >= _FIRST_FILE and registers.rdi != self._ignored)
        return True

    def _leave(self, thread: int, registers: Registers) -> None:
        problem = self._failing.pop(thread, 0)
        if problem:
            registers.rax = ctypes.c_ulonglong(-problem).value
            _ptrace(_SET_REGISTERS, thread, ctypes.addressof(registers))


_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.restype = ctypes.c_long
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def _ptrace(request: int, thread: int, data: int = 0) -> None:
    if _libc.ptrace(request, thread, 0, data) < 0:
        problem = ctypes.get_errno()
        raise OSError(problem, os.strerror(problem))
