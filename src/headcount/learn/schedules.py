"""The learning rate as a pure function of the step: nothing to save, nothing to lose on resume."""

from __future__ import annotations

import math

from headcount.tables import ConstantTable, CosineTable, LinearTable, ScheduleTable


def rate(schedule: ScheduleTable, highest: float, step: int, steps: int) -> float:
    """The rate of step `step` (counted from 0) of `steps`."""
    warm = schedule.warmup_steps if schedule.warmup_steps is not None else round((schedule.warmup or 0.0) * steps)
    if step < warm:
        return highest * (step + 1) / warm
    if isinstance(schedule, ConstantTable):
        return highest
    if isinstance(schedule, CosineTable | LinearTable):
        begin = 0 if isinstance(schedule, CosineTable) and schedule.begins == "at-step-0" else warm
        along = (step - begin) / max(1, steps - 1 - begin)
        left = 0.5 * (1 + math.cos(math.pi * along)) if isinstance(schedule, CosineTable) else 1 - along
        return highest * (schedule.floor + (1 - schedule.floor) * left)
    return highest * (schedule.down_to if step >= schedule.down_at * steps else 1.0)
