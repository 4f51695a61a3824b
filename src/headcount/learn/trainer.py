"""Training: a loop in which everything is a function of (recipe, step).

Learning rate, data and dropout of a step do not depend on the clock, on how often the run was interrupted, or on what
ran before it: generators are seeded anew at every step. A checkpoint therefore needs weights, moments, the carried
state, the step and the best so far, and a run that goes on from one is the uninterrupted run, to the bit.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from headcount.errors import Interrupted, TrainingError
from headcount.layers.products import fast_products
from headcount.learn import checkpoint, optimisers, schedules
from headcount.learn.checkpoint import Checkpoint
from headcount.learn.device import Device, machine, peak_memory
from headcount.learn.events import MetricsLog, Sink, cut
from headcount.learn.interrupt import Interruption
from headcount.learn.plan import Plan
from headcount.learn.run import Run
from headcount.measure.protocols import measure
from headcount.measure.sample import Sampling, write

SAMPLED, PROMPT = 200, 256
"""Bytes that are drawn after every save, and held-out bytes that are read before: a cold memory copies itself."""
FAILED_SAVES = 3
"""Saves in a row that may fail, on a full disk say, before the run stops."""


def derive_seed(seed: int, step: int, purpose: str) -> int:
    """A seed for one purpose at one step, unlike all others."""
    return int.from_bytes(hashlib.sha256(f"{purpose} {seed} {step}".encode()).digest()[:7])


class Learner:
    """Model, optimiser and carried state, and one step of learning."""

    def __init__(self, plan: Plan, device: Device) -> None:
        self.plan, self.recipe, self.device = plan, plan.recipe, device
        self.batches = plan.batches()
        torch.manual_seed(derive_seed(self.recipe.seed, 0, "weights"))
        self.model = plan.model(plan.config).to(device.name).train()
        self.optimiser = optimisers.build(self.recipe.optimiser, self.model)
        streams, parts = self.recipe.batches.streams, self.recipe.batches.accumulate
        self.rows = torch.arange(streams).tensor_split(parts)
        """Accumulation splits streams, not time: which streams each part holds."""
        self.states = self._empty()

    def _empty(self) -> list[Any]:
        return [self.model.start(len(rows)) for rows in self.rows]

    def learn(self, step: int, steps: int) -> dict[str, Any]:
        """Step `step` (counted from 0): bits per byte, gradient norm and rate; `skipped` if a number is not finite."""
        torch.manual_seed(derive_seed(self.recipe.seed, step, "step"))
        batch = self.batches.at(step)
        rate = schedules.rate(self.recipe.schedule, self.recipe.optimiser.lr, step, steps)
        before = self._empty() if batch.fresh else self.states
        losses, after = self._gradients(torch.from_numpy(batch.tokens), before, step / steps)
        largest = self.recipe.optimiser.clip or math.inf
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), largest).item()
        facts = {"lr": rate, "bytes": batch.bytes}
        if not all(map(math.isfinite, (norm, *losses.values()))):
            self.states = before  # weights, moments and state stay as they were
            return {**facts, "skipped": True}
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.step()
        for parameter in self.model.retired(step / steps):
            self.optimiser.state.pop(parameter, None)  # a longer schedule may want it back, but not its old momentum
        self.states = after
        bits = losses["nll"] / math.log(2) * (batch.predictions / batch.bytes)
        named = {"losses": losses} if len(losses) > 1 else {}
        return {**facts, "skipped": False, "bits_per_byte": bits, "gradient_norm": norm, **named}

    def _gradients(self, tokens: Tensor, states: Sequence[Any], progress: float) -> tuple[dict[str, float], list[Any]]:
        """Gradients of the mean over all streams, part by part; the nats of every named loss, the states after them."""
        self.optimiser.zero_grad(set_to_none=True)
        losses: dict[str, float] = {}
        after = []
        for rows, state in zip(self.rows, states, strict=True):
            part = tokens[rows].to(self.device.name)
            share = len(rows) / len(tokens)
            with fast_products():
                with self.device.autocast():
                    loss, new = self.model.objective(part, state, progress)
                torch.autograd.backward(loss.total * share)
            for name, value in loss.parts.items():
                losses[name] = losses.get(name, 0.0) + value.item() * share
            after.append(new.detach())
        return losses, after

    def to_checkpoint(self, record: Mapping[str, Any]) -> Checkpoint:
        """Everything needed to go on."""
        return Checkpoint(
            model=self.model.state_dict(),
            optimiser=optimisers.to_tensors(self.optimiser, self.model),
            state={f"{i}.{name}": t for i, s in enumerate(self.states) for name, t in s.to_tensors().items()},
            record=record,
        )

    def from_checkpoint(self, saved: Checkpoint) -> None:
        """Go on from there."""
        self.model.load_state_dict(dict(saved.model))  # copies into the parameters
        optimisers.from_tensors(self.optimiser, self.model, saved.optimiser)
        self.states = [
            state.from_tensors({k.partition(".")[2]: t for k, t in saved.state.items() if k.startswith(f"{i}.")})
            for i, state in enumerate(self._empty())
        ]


def draw_sample(plan: Plan, learner: Learner, step: int, check: Callable[[], None] = lambda: None) -> bytes:
    """Bytes that go on from the first of the held-out text, by a generator of their own."""
    how = Sampling(seed=derive_seed(plan.recipe.seed, step, "sample"))
    written = bytearray()
    for byte in islice(write(learner.model, prompt_of(plan), how, plan.tokens), SAMPLED):
        check()
        written.append(byte)
    return bytes(written)


def prompt_of(plan: Plan) -> bytes:
    """What every sample of a run goes on from."""
    return plan.held_out.text[:PROMPT].tobytes()


class Trainer:
    """A run under way: learns, saves, evaluates, says what happens."""

    def __init__(self, run: Run, plan: Plan, device: Device, sinks: Sequence[Sink], interruption: Interruption) -> None:
        self.run, self.plan, self.device = run, plan, device
        self.learner = Learner(plan, device)
        self.log = MetricsLog(run.metrics_file)
        self.sinks: list[Sink] = [self.log, *sinks]
        self.interruption = interruption
        self.step, self.bytes, self.seconds = 0, 0, 0.0
        self.best: dict[str, Any] | None = None
        self.skipped_in_row = 0
        self.failed_saves = 0
        self.ended_before: int | None = None
        """Where the run ended before `resume --steps` made it longer: that step was evaluated, and stays so."""
        train = plan.recipe.train
        assert train.steps and train.evaluate_every and train.save_every, "a plan is settled"
        self.steps, self.evaluate_every, self.save_every = train.steps, train.evaluate_every, train.save_every

    def emit(self, event: str, **facts: Any) -> None:
        """Tell the log and everybody else."""
        for sink in self.sinks:
            sink({"event": event, **facts})

    def begin(self, weights: Mapping[str, Tensor] | None = None) -> None:
        """Begin at step 0: drawn from the seed, or with given weights, which are kept as the checkpoint of step 0."""
        cut(self.run.metrics_file, 0)
        self.run.set_best(None)
        self._begun("started")
        if weights is not None:
            self.learner.model.load_state_dict(dict(weights))
            self.run.checkpoints.mkdir(exist_ok=True)
            checkpoint.publish(self.run.checkpoints, 0, self.learner.to_checkpoint(self._record()))

    def restore(self, saved: Checkpoint) -> None:
        """Go back to a checkpoint: the log is cut there, and what was due at its step is due again."""
        record = saved.record
        self.learner.from_checkpoint(saved)
        self.step, self.bytes, self.seconds = record["step"], record["bytes"], record["seconds"]
        self.best, self.skipped_in_row = record["best"], record["skipped_in_row"]
        self.ended_before = self.step if self.step == record["recipe"]["train"]["steps"] else None
        cut(self.run.metrics_file, self.step)
        self.run.set_best(self.best)
        self._begun("resumed")

    def _begun(self, event: str) -> None:
        """Say where it begins, on what, and whether the text that it learns from can be restored from its tokens."""
        exact = self.learner.batches.text.exact
        self.emit(event, at=self.step, fingerprint=self.device.fingerprint(), machine=machine(), exact=exact)

    def fit(self) -> None:
        """Train to the last step."""
        self.run.checkpoints.mkdir(exist_ok=True)
        if self.step:
            self._milestones(saved=True)
        while self.step < self.steps:
            self._stop_if_asked()
            self._one_step()
            self._milestones()
        self.emit("finished", at=self.step, seconds=self.seconds, memory=peak_memory())

    def _one_step(self) -> None:
        began = time.perf_counter()
        facts = self.learner.learn(self.step, self.steps)
        self.step += 1
        self.bytes += facts.pop("bytes")
        self.seconds += time.perf_counter() - began
        if facts.pop("skipped"):
            self.skipped_in_row += 1
            self.emit("skipped", step=self.step, in_row=self.skipped_in_row, **facts)
            limit = self.plan.recipe.train.give_up_after
            if self.skipped_in_row >= limit:
                raise TrainingError(
                    f"{limit} steps in a row had a loss or gradient that is not finite (the last is step {self.step}); "
                    "lower optimiser.lr; the last checkpoint is untouched"
                )
        else:
            self.skipped_in_row = 0
            self.emit("step", step=self.step, **facts, bytes=self.bytes, seconds=self.seconds)

    def _milestones(self, *, saved: bool = False) -> None:
        """What is due after this step: saving, before evaluating."""
        last = self.step in (self.steps, self.ended_before)
        evaluate = last or self.step % self.evaluate_every == 0
        if evaluate or self.step % self.save_every == 0:
            if saved or self.save():
                self.emit("saved", step=self.step)
                self._sample()
            if evaluate:
                self._evaluate()
            checkpoint.prune(self.run.checkpoints, self.best["step"] if self.best else None)

    def _sample(self) -> None:
        """What the model writes now, after the same prompt every time: the checkpoints themselves are not kept."""
        written = draw_sample(self.plan, self.learner, self.step, self._stop_if_asked)
        self.emit("sampled", step=self.step, text=written.decode(errors="backslashreplace"))

    def _evaluate(self) -> None:
        began = time.perf_counter()
        measured = measure(
            self.learner.model,
            self.plan.held_out,
            self.plan.recipe.evaluate,
            split="valid",
            check=self._stop_if_asked,
        )
        value = measured.bits_per_byte
        if not math.isfinite(value):
            raise TrainingError(f"the evaluation at step {self.step} is not finite; the last checkpoint is untouched")
        there = checkpoint.folder_of(self.run.checkpoints, self.step).is_dir()
        if there and (self.best is None or value < self.best["bits_per_byte"]):
            self.best = {"step": self.step, "bits_per_byte": value}
            self._keep_best()
        self.emit(
            "evaluated",
            step=self.step,
            bits_per_byte=value,
            nats=measured.nats,
            bytes=measured.bytes,
            sha256=measured.sha256,
            protocol=dict(measured.protocol),
            tokens=dict(measured.tokens),
            seconds=time.perf_counter() - began,
        )

    def _keep_best(self) -> None:
        """Point at the best checkpoint; a disk that is full delays that to the next one."""
        try:
            self.run.set_best(self.best)
        except OSError as error:
            self.emit("save_failed", at=self.step, why=str(error))

    def save(self) -> bool:
        """Publish a checkpoint; a disk that does not take it costs a warning, several in a row cost the run."""
        try:
            if not self.log.flush(to_disk=True):
                raise OSError(f"{self.run.metrics_file} cannot be written")
            checkpoint.publish(self.run.checkpoints, self.step, self.learner.to_checkpoint(self._record()))
        except OSError as error:
            self.failed_saves += 1
            self.emit("save_failed", at=self.step, why=str(error))
            if self.failed_saves >= FAILED_SAVES or self.step == self.steps:
                raise TrainingError(
                    f"no checkpoint could be written at step {self.step} ({error}); the ones before it are intact: "
                    f"make room, then headcount resume {self.run.path}"
                ) from error
            return False
        self.failed_saves = 0
        return True

    def _record(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "bytes": self.bytes,
            "seconds": self.seconds,
            "best": self.best,
            "skipped_in_row": self.skipped_in_row,
            "recipe": self.plan.recipe.to_dict(),
            "fingerprint": self.device.fingerprint(),
        }

    def _stop_if_asked(self) -> None:
        """Save and leave if a signal came."""
        if self.interruption.signal is None:
            return
        there = checkpoint.folder_of(self.run.checkpoints, self.step).is_dir()
        if self.step == 0 and not there:
            kept = "before there was anything to save"
        elif there or self.save():
            kept = "saved"
            checkpoint.prune(self.run.checkpoints, self.best["step"] if self.best else None)
        else:
            kept = "not saved: the disk takes no more; the checkpoint before it is intact"
        self.emit("stopped", at=self.step, signal=self.interruption.signal)
        raise Interrupted(
            self.interruption.signal, f"stopped at step {self.step}, {kept}; headcount resume {self.run.path}"
        )
