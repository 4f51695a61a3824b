"""Minimum-trust LAMB, the optimiser that the SHA-RNN was trained with (no package has it).

For every parameter tensor w with gradient g:

    m ← β₁·m + (1 - β₁)·g            v ← β₂·v + (1 - β₂)·g²             no bias correction
    u = m / (√v + ε) + decay·w
    trust = min(‖w‖, 10) / ‖u‖       1 if either norm is 0              never below min_trust
    w ← w - rate·trust·u

The floor is what matters: a large matrix has ‖w‖ ≤ 10 and ‖u‖ in the hundreds, so that its trust is at the floor and
the update is Adam's at rate·min_trust; layer-norm gains get normalised steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, overload

import torch
from torch import Tensor
from torch.optim import Optimizer

LARGEST_WEIGHT_NORM = 10.0


class MinTrustLamb(Optimizer):
    """LAMB with a floor under the trust ratio."""

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, Any]],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.0,
        min_trust: float = 0.25,
    ) -> None:
        if not 0 <= min_trust < 1:
            raise ValueError(f"min_trust must be in [0, 1), not {min_trust}")
        defaults = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "min_trust": min_trust}
        super().__init__(params, defaults)

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """One update of every parameter that has a gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, group)
        return loss

    def _update(self, w: Tensor, group: dict[str, Any]) -> None:
        state = self.state[w]
        if not state:
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(w), torch.zeros_like(w)
        beta1, beta2 = group["betas"]
        assert w.grad is not None
        m = state["exp_avg"].mul_(beta1).add_(w.grad, alpha=1 - beta1)
        v = state["exp_avg_sq"].mul_(beta2).addcmul_(w.grad, w.grad, value=1 - beta2)
        u = m / (v.sqrt().add_(group["eps"]))
        if group["weight_decay"]:
            u.add_(w, alpha=group["weight_decay"])
        trust = self._trust(w, u).clamp(min=group["min_trust"])
        w.sub_(u.mul_(trust), alpha=group["lr"])

    @staticmethod
    def _trust(w: Tensor, u: Tensor) -> Tensor:
        """How long the weights are beside their update; a tensor, so that no device has to wait for the host."""
        w_norm, u_norm = w.norm().clamp(max=LARGEST_WEIGHT_NORM), u.norm()
        return torch.where((w_norm > 0) & (u_norm > 0), w_norm / u_norm, 1.0)
