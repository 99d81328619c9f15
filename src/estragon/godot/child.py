"""A child process that ends no later than this process: under a guard, on Windows in a job.

On Linux and macOS this file is also the guard, a program of its own that starts the command and
waits. Its standard input is a pipe that only the owner holds: when that closes, the command and its
whole process group are killed. The kernel's PR_SET_PDEATHSIG alone is not enough: it exists on
Linux only, and fires when the *thread* that started the child ends. Here it is the second line of
defence: it ends the command when the guard itself is killed, and the guard has one thread. The
third is the parent's id, for an owner that forked and so left the pipe open in others.

The guard's arguments are the owner's process id and the command. It reports `started PID` or
`failed REASON` on standard output, and finally `ended STATUS` (negative: the signal's number). The
command writes to the guard's standard error.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from types import FrameType

if sys.platform == "win32":
    from ctypes import wintypes

    EXTENDED_LIMITS = 9
    KILL_ON_JOB_CLOSE = 0x2000
    MAY_ASSIGN = 0x0100 | 0x0001
    KILLED = 1

    class _BasicLimits(ctypes.Structure):
        _fields_ = (
            ("PerProcessUserTimeLimit", wintypes.LARGE_INTEGER),
            ("PerJobUserTimeLimit", wintypes.LARGE_INTEGER),
            ("LimitFlags", wintypes.DWORD),
            ("MinimumWorkingSetSize", ctypes.c_size_t),
            ("MaximumWorkingSetSize", ctypes.c_size_t),
            ("ActiveProcessLimit", wintypes.DWORD),
            ("Affinity", ctypes.c_size_t),
            ("PriorityClass", wintypes.DWORD),
            ("SchedulingClass", wintypes.DWORD),
        )

    class _ExtendedLimits(ctypes.Structure):
        _fields_ = (
            ("BasicLimitInformation", _BasicLimits),
            ("IoInfo", ctypes.c_uint64 * 6),
            ("ProcessMemoryLimit", ctypes.c_size_t),
            ("JobMemoryLimit", ctypes.c_size_t),
            ("PeakProcessMemoryUsed", ctypes.c_size_t),
            ("PeakJobMemoryUsed", ctypes.c_size_t),
        )

    class Child:
        """A started program; it and everything it starts end no later than this process."""

        def __init__(self, words: Sequence[str], log: int, env: Mapping[str, str]) -> None:
            self._kernel = _load_kernel()
            self._job: int | None = _require(self._kernel.CreateJobObjectW(None, None))
            limits = _ExtendedLimits()
            limits.BasicLimitInformation.LimitFlags = KILL_ON_JOB_CLOSE
            _require(
                self._kernel.SetInformationJobObject(
                    self._job, EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits)
                )
            )
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=env,
                creationflags=subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW,
            )
            self.pid = self._process.pid
            try:
                process = _require(self._kernel.OpenProcess(MAY_ASSIGN, False, self.pid))
                _require(self._kernel.AssignProcessToJobObject(self._job, process))
                self._kernel.CloseHandle(process)
            except BaseException:
                self._process.kill()
                self._process.wait()
                raise

        def poll(self) -> int | None:
            """The exit status once it has ended."""
            status = self._process.poll()
            if status is not None and self._job is not None:
                self._kernel.CloseHandle(self._job)  # ends what it started
                self._job = None
            return status

        def terminate(self) -> None:
            """End it: a program without a window cannot be asked to."""
            self.kill()

        def kill(self) -> None:
            """End it and everything it started, and wait for that."""
            if self.poll() is None:
                self._kernel.TerminateJobObject(self._job, KILLED)
                self._process.wait()
                self.poll()

    def _load_kernel() -> ctypes.CDLL:
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        handle, number = wintypes.HANDLE, wintypes.DWORD
        kernel.CreateJobObjectW.restype = handle
        kernel.OpenProcess.restype = handle
        kernel.SetInformationJobObject.argtypes = [handle, ctypes.c_int, ctypes.c_void_p, number]
        kernel.AssignProcessToJobObject.argtypes = [handle, handle]
        kernel.TerminateJobObject.argtypes = [handle, wintypes.UINT]
        kernel.CloseHandle.argtypes = [handle]
        return kernel

    def _require(answer: int | None) -> int:
        if not answer:
            raise ctypes.WinError(ctypes.get_last_error())
        return answer

else:
    START_TIMEOUT_SEC = 20.0
    REAP_TIMEOUT_SEC = 2.0
    OWNER_CHECK_SEC = 0.5
    PR_SET_PDEATHSIG = 1

    class Child:
        """A started program; it and everything it starts end no later than this process."""

        def __init__(self, words: Sequence[str], log: int, env: Mapping[str, str]) -> None:
            held, leash = os.pipe()
            report, reporting = os.pipe()
            self._leash = os.fdopen(leash, "wb", buffering=0)
            self._report = os.fdopen(report, "rb", buffering=0)
            self._reported = b""
            self._status: int | None = None
            try:
                # -I -S: the guard needs the standard library only, and starts in half the time
                self._guard = subprocess.Popen(
                    [sys.executable, "-I", "-S", __file__, str(os.getpid()), *words],
                    stdin=held,
                    stdout=reporting,
                    stderr=log,
                    env=env,
                    start_new_session=True,
                )
            except BaseException:
                self._close()
                raise
            finally:
                os.close(held)
                os.close(reporting)
            try:
                self.pid = self._read_start()
            except BaseException:
                self.kill()
                raise

        def poll(self) -> int | None:
            """The exit status once it has ended; negative for the number of the signal."""
            if self._status is None and self._guard.poll() is not None:
                self._status = self._read_end()
            return self._status

        def terminate(self) -> None:
            """Ask it, and what it started, to end."""
            self._signal_group(signal.SIGTERM)

        def kill(self) -> None:
            """End it and everything it started, and wait for that."""
            if self.poll() is not None:
                return
            self._leash.close()  # the guard kills, and reaps its child before it ends
            try:
                self._guard.wait(REAP_TIMEOUT_SEC)
            except subprocess.TimeoutExpired:
                self._signal_group(signal.SIGKILL)
                self._guard.wait()
            self.poll()

        def _signal_group(self, number: int) -> None:
            # Until it is waited for, the guard's id is not given to another process.
            if self._guard.poll() is None:
                os.killpg(self._guard.pid, number)

        def _read_start(self) -> int:
            deadline = time.monotonic() + START_TIMEOUT_SEC
            while b"\n" not in self._reported:
                left = max(0.0, deadline - time.monotonic())
                if not select.select([self._report], [], [], left)[0]:
                    raise OSError(f"nothing happened within {START_TIMEOUT_SEC:.0f} s")
                if not (part := self._report.read(4096)):
                    raise OSError("its guard ended")
                self._reported += part
            word, _, rest = self._reported.split(b"\n")[0].decode().partition(" ")
            if word != "started":
                raise OSError(rest)
            return int(rest)

        def _read_end(self) -> int:
            self._reported += self._report.read()
            self._close()
            last = self._reported.decode().splitlines()[-1:]
            if last and last[0].startswith("ended "):
                return int(last[0].removeprefix("ended "))
            # The guard was killed; what is left of its group keeps its id from being reused.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._guard.pid, signal.SIGKILL)
            return -signal.SIGKILL

        def _close(self) -> None:
            self._leash.close()
            self._report.close()

    def guard(owner: int, words: list[str]) -> None:
        """Start the command, watch it and its owner, and leave nothing behind."""
        # Handlers, not SIG_IGN: the command would inherit that.
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, _survive)
        woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        try:
            child = _start(words)
        except OSError as error:
            _tell_owner(f"failed {error.strerror or error}")
            return
        try:
            _tell_owner(f"started {child.pid}")
            while child.poll() is None and os.getppid() == owner:
                ready, _, _ = select.select([0, woken], [], [], OWNER_CHECK_SEC)
                if woken in ready:
                    os.read(woken, 64)
                if 0 in ready and not os.read(0, 64):
                    break
            if child.poll() is None:
                child.kill()
            _tell_owner(f"ended {child.wait()}")
        finally:
            os.killpg(os.getpgrp(), signal.SIGKILL)  # what the command started, and the guard

    def _start(words: list[str]) -> subprocess.Popen[bytes]:
        libc = ctypes.CDLL(None) if sys.platform == "linux" else None
        guard_pid = os.getpid()

        def die_with_the_guard() -> None:
            if libc is not None:
                libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                if os.getppid() != guard_pid:
                    os._exit(1)

        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno(),
            stderr=sys.stderr.fileno(),
            preexec_fn=die_with_the_guard,  # noqa: PLW1509 - the guard has one thread
        )

    def _tell_owner(line: str) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(1, f"{line}\n".encode())

    def _survive(_number: int, _frame: FrameType | None) -> None:
        """The guard ends last."""

    if __name__ == "__main__":
        guard(int(sys.argv[1]), sys.argv[2:])
