"""A budget in minutes becomes a number of steps before step 0; from then on the clock has no say."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

from headcount.learn.device import Device
from headcount.learn.interrupt import Interruption
from headcount.learn.plan import EVALUATIONS, Plan
from headcount.learn.trainer import Learner, draw_sample
from headcount.measure.protocols import measure
from headcount.text.batches import Segments
from headcount.text.encoding import encode

TIMED_STEPS, MOST_TIMED_STEPS, TIMED_SECONDS = 10, 200, 3.0
"""Ten steps at least, and so many that a short disturbance does not decide."""
TIMED_BYTES = 4_096


@dataclass(frozen=True)
class Timing:
    """Seconds that a step with a full memory, an evaluation and a sample take here."""

    step: float
    evaluation: float
    sample: float

    def steps_in(self, minutes: float, plan: Plan) -> int:
        """How many steps fit, with what happens every so many of them: half of the time at least is learning."""
        train, budget = plan.recipe.train, minutes * 60
        step, fixed = self.step, 0.0
        if train.evaluate_every is None:
            fixed += EVALUATIONS * self.evaluation
        else:
            step += self.evaluation / train.evaluate_every
        save_every = train.save_every or train.evaluate_every
        if save_every is None:
            fixed += EVALUATIONS * self.sample
        else:
            step += self.sample / save_every
        return max(1, int((budget - min(fixed, budget / 2)) / step))


def time_steps(plan: Plan, device: Device, interruption: Interruption) -> Timing:
    """Time a throw-away copy of what is about to be trained."""
    with device.own_generators():
        learner = Learner(plan, device)
        until_full = _steps_until_full(plan, learner)
        times: list[float] = []
        for step in range(until_full + MOST_TIMED_STEPS):
            interruption.check()
            began = time.perf_counter()
            learner.learn(step, until_full + MOST_TIMED_STEPS)
            times.append(time.perf_counter() - began)
            full = times[until_full:]
            if len(full) >= TIMED_STEPS and sum(full) >= TIMED_SECONDS:
                break
    one_step = statistics.median(times[until_full:])
    return Timing(one_step, _seconds_to_evaluate(plan, learner), _seconds_to_sample(plan, learner))


def _steps_until_full(plan: Plan, learner: Learner) -> int:
    """Steps until the memory holds a window, or as much as a stream can fill before it wraps; 0 without a memory."""
    batches, reach = learner.batches, getattr(plan.config, "window", 0)
    if not learner.model.heads or not isinstance(batches, Segments):
        return 0
    return int(-(-min(reach, batches.length) // batches.segment)) - (reach >= batches.length)


def _seconds_to_sample(plan: Plan, learner: Learner) -> float:
    began = time.perf_counter()
    draw_sample(plan, learner, 0)
    return time.perf_counter() - began


def _seconds_to_evaluate(plan: Plan, learner: Learner) -> float:
    text = plan.held_out.text
    began = time.perf_counter()
    measure(learner.model, encode(text[:TIMED_BYTES], plan.tokens), plan.recipe.evaluate)
    return (time.perf_counter() - began) * len(text) / min(len(text), TIMED_BYTES)
