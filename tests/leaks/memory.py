# SPDX-License-Identifier: BSD-3-Clause
"""What calls leave behind: bytes that malloc has given out and not got back, objects of Python's
small ones included.

python tests/leaks/memory.py --calls 100000     # `make leaks`: every operator of myns
python tests/leaks/memory.py --calls 10000 --device torchext    # on the test device: the fallback
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch


class _MallInfo(ctypes.Structure):
    """`struct mallinfo2` of malloc.h."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
        )
    ]


_mallinfo2 = getattr(ctypes.CDLL(None), "mallinfo2", None)  # of glibc 2.33
HAS_MALLINFO2 = _mallinfo2 is not None
if HAS_MALLINFO2:
    _mallinfo2.restype = _MallInfo


# Of an object in Python's own arenas, which malloc does not know of.
_LEAST_OBJECT = 16
_NO_CACHES = "glibc.malloc.tcache_count=0"
_WAIT, _MOST_WAITS = 0.01, 100  # seconds, and how often
_MORE_CALLS = (4, 16)  # times as many, where there seems to be a leak


def bytes_in_use() -> int:
    """Bytes of malloc in use, those of large blocks included, and the least that the objects have
    which Python keeps in arenas of its own; when autograd's threads have freed what they free."""
    gc.collect()
    found, previous = _bytes_now(), None
    for _ in range(_MOST_WAITS):
        if found == previous:
            break
        time.sleep(_WAIT)
        found, previous = _bytes_now(), found
    return found


def _bytes_now() -> int:
    info = _mallinfo2()
    return info.uordblks + info.hblkhd + _LEAST_OBJECT * sys.getallocatedblocks()


@dataclass(frozen=True)
class Growth:
    """What one subject's calls left behind."""

    name: str
    calls: int
    bytes: int

    @property
    def is_flat(self) -> bool:
        """Whether it is less than a byte a call: what is allocated is 16 bytes at least."""
        return self.bytes < self.calls


def growth(name: str, call: Callable[[], object], calls: int) -> Growth:
    """The growth over so many calls, after a tenth as many that fill caches."""
    for _ in itertools.repeat(None, max(10, calls // 10)):
        call()
    before = bytes_in_use()
    before = bytes_in_use()  # which is an object itself
    for _ in itertools.repeat(None, calls):
        call()
    return Growth(name, calls, bytes_in_use() - before)


def settled(name: str, call: Callable[[], object], calls: int) -> Growth:
    """The growth; where it is not flat, that of more and more calls. A cache that fills late, and
    what autograd's threads hold for a while, stay as they are and look like a leak of few calls
    only; a leak grows with them."""
    found = growth(name, call, calls)
    for factor in _MORE_CALLS:
        if not found.is_flat:
            found = growth(name, call, factor * calls)
    return found


def subjects(library: str, device: str = "cpu") -> Iterator[tuple[str, Callable[[], object]]]:
    """Every operator of a library on its first sample: a call, and, where it has a gradient, a call
    with backward. What an allocation of the test device is known by is malloc's."""
    from torchext.testing.checking import Runner

    for subject in Runner(library, checks=["samples"], device=device).subjects:
        given = subject.with_outs(subject.calls()[0])
        overload, args, kwargs = subject.overload, given.args, given.kwargs
        yield subject.facts.name, lambda o=overload, a=args, k=kwargs: o(*a, **k)
        for call in itertools.islice(subject.calls_with_gradient(subject.wide_dtype), 1):
            yield f"{subject.facts.name} backward", _with_backward(subject, call)


def _with_backward(subject, call) -> Callable[[], object]:
    function, tensors = subject.function(call), call.tensors
    leaves = [t for t in tensors if t.requires_grad]
    ones = [torch.ones_like(r) for r in function(*tensors) if r.requires_grad]

    def run() -> None:
        results = [r for r in function(*tensors) if r.requires_grad]
        torch.autograd.grad(results, leaves, ones, allow_unused=True)

    return run


def override() -> None:
    """An override that is made, called and taken back."""
    import torchext

    with torchext.override("aten::neg", torch.abs):
        torch.neg(torch.ones(2))


def _without_caches_of_threads() -> None:
    """Begin again with a malloc in which no thread keeps what it frees: to malloc that is in use,
    and what autograd's threads free is now theirs and now another's."""
    if _NO_CACHES not in os.environ.get("GLIBC_TUNABLES", ""):
        os.environ["GLIBC_TUNABLES"] = _NO_CACHES
        os.execv(sys.executable, [sys.executable, *sys.argv])


def main() -> int:
    """Print the growth of every subject; status 1 where one is not flat."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--device", default="cpu", choices=["cpu", "torchext"])
    parser.add_argument("--operators", nargs="*", metavar="NAME", help="these of myns only")
    asked = parser.parse_args()
    calls = asked.calls
    if not HAS_MALLINFO2:
        parser.error("memory is counted by mallinfo2 of glibc 2.33 and later, and this is older")
    if asked.device == "torchext":
        _without_caches_of_threads()
        import torchext.testing

        torchext.testing.device()
        os.environ.setdefault("TORCHEXT_FALLBACK", "silent")
    torch.set_num_threads(1)
    found = []
    own = [("override", override)] if asked.device == "cpu" else []
    for name, call in itertools.chain(subjects("myns", asked.device), own):
        if asked.operators is not None and name.split()[0] not in asked.operators:
            continue
        found.append(settled(name, call, calls))
        print(f"{found[-1].bytes:10} bytes  {name}", flush=True)
    leaking = [g.name for g in found if not g.is_flat]
    total = sum(g.bytes for g in found)
    print(f"{len(found)} subjects, {calls} calls each, {total} bytes, leaking: {leaking or 'none'}")
    return 1 if leaking else 0


if __name__ == "__main__":
    sys.exit(main())
