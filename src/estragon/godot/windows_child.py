"""A child process on Windows, in a job that the system ends together with this process."""

import ctypes
import subprocess
import sys
from collections.abc import Mapping, Sequence
from ctypes import wintypes

if sys.platform != "win32":
    raise ImportError("only Windows has this")

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
    """A started program; it, and all that it starts, ends no later than this process."""

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
        """End it, and what it started, and wait until that is so."""
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
