"""Runs in processes of their own, forked from a server that has torch loaded: what a kill or a limit is tried on."""

import multiprocessing
import os
import resource
import signal
import sys
import threading
from pathlib import Path

context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(
    [
        "torch",
        "headcount.use.train",
        "headcount.cli.train",
        "headcount.cli.resume",
        "requests",
        "pooch",
    ]
)


def command(arguments, output, fault, cache):
    """Run one command of headcount with its output in files; `fault` arranges what goes wrong."""
    import torch

    os.environ["HEADCOUNT_CACHE"] = cache  # the server that this was forked from may have had another

    torch.set_num_threads(1)
    for name, descriptor in (("out", 1), ("err", 2)):
        os.dup2(os.open(f"{output}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    if fault:
        globals()[fault[0]](*fault[1:])
    from headcount.cli import run

    code = run(arguments)
    sys.stdout.flush()
    os._exit(code)


def start(arguments, output: Path, fault=None):
    cache = os.environ.get("HEADCOUNT_CACHE", "")
    process = context.Process(target=command, args=([str(a) for a in arguments], str(output), fault, cache))
    process.start()
    return process


def finish(process, timeout=120) -> int:
    process.join(timeout)
    assert process.exitcode is not None, "the process hangs"
    return process.exitcode


def run(arguments, output: Path, fault=None) -> int:
    return finish(start(arguments, output, fault))


def said(output: Path) -> str:
    return Path(f"{output}.err").read_text()


# What can go wrong. Each is called in the child before the command runs.


def die_after(step):
    """The process is gone right after step `step` is logged, before anything else happens."""
    from headcount.learn.trainer import Trainer

    one_step = Trainer._one_step

    def dying(self):
        one_step(self)
        if self.step == step:
            os.kill(os.getpid(), signal.SIGKILL)

    Trainer._one_step = dying


def file_limit(size):
    """No file may grow beyond `size` bytes: a disk that is full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def signal_at(number, place, times=1):
    """Signals that arrive at a certain place: `step N`, `save`, `evaluate` or `begin`; after `time SECONDS`; or at
    step N with nobody at the other end of standard error: `unheard N`.
    """
    from headcount.learn import checkpoint, trainer

    def send():
        for _ in range(times):
            os.kill(os.getpid(), number)

    if place.startswith("time"):
        threading.Timer(float(place.split()[1]), send).start()
    elif place == "begin":
        fit = trainer.Trainer.fit
        trainer.Trainer.fit = lambda self: (send(), fit(self))[1]
    elif place == "save":
        publish = checkpoint.publish
        checkpoint.publish = lambda *arguments: (send(), publish(*arguments))[1]
    elif place == "evaluate":
        measure = trainer.measure
        trainer.measure = lambda *a, **k: (send(), measure(*a, **k))[1]
    else:
        if place.startswith("unheard"):
            reader, writer = os.pipe()
            os.dup2(writer, 2)
            os.close(reader)
        target, one_step = int(place.split()[1]), trainer.Trainer._one_step

        def signalled(self):
            one_step(self)
            if self.step == target:
                send()

        trainer.Trainer._one_step = signalled


def slow(seconds):
    """Every step takes its time."""
    import time

    from headcount.learn.trainer import Trainer

    one_step = Trainer._one_step
    Trainer._one_step = lambda self: (time.sleep(seconds), one_step(self))[1]


def report_memory(path):
    """Write the peak of resident memory that is this process's own when it ends."""
    import headcount.use.train as training

    train = training.train

    def measured(*arguments, **options):
        done = train(*arguments, **options)
        Path(path).write_text(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024))
        return done

    training.train = measured


def die_in_save(save, point):
    """The process is gone at the `point`-th call to the file system inside its `save`-th milestone.

    Opening, flushing, making, renaming and removing are counted, from the checkpoint's folder to the pruning.
    """
    from headcount.learn.trainer import Trainer

    counted = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.listdir", "os.scandir"}
    place = {"save": 0, "point": 0, "inside": False}
    milestones, fsync = Trainer._milestones, os.fsync

    def tick():
        if place["inside"] and place["save"] == save:
            place["point"] += 1
            if place["point"] == point:
                os.kill(os.getpid(), signal.SIGKILL)

    def watched(self, **options):
        due = self.step % self.save_every == 0
        place["save"] += due
        place["inside"] = due
        milestones(self, **options)
        place["inside"] = False

    sys.addaudithook(lambda event, arguments: tick() if event in counted else None)
    os.fsync = lambda descriptor: (tick(), fsync(descriptor))[1]
    Trainer._milestones = watched


def published_at(name, url, md5):
    """A published file lies somewhere else, and is another one; nobody waits long for it."""
    from headcount.text import download, published

    os.environ["NO_PROXY"] = "127.0.0.1"
    download.SECONDS_WITHOUT_A_BYTE = 1.5
    published.FILES[name] = published.Published(url, md5)


def save_often(every):
    """A build of Wikipedia saves its state after so many bytes of XML."""
    from headcount.text import wikipedia

    wikipedia.SAVE_EVERY = every


def limit(more, seconds):
    """No more than `more` bytes beyond what is mapped now, and no more than `seconds` of a processor."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * 4096
    resource.setrlimit(resource.RLIMIT_AS, (mapped + more, mapped + more))
