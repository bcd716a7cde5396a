"""What tests of coded values share: weights, and what training makes of them step by step in float32."""

from __future__ import annotations

import numpy as np


def trained(rng: np.random.Generator, shape: tuple[int, ...], share_idle: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """Numbers that are held and the update to them: some rows learn, the others only decay."""
    held = rng.normal(0, 0.05, shape).astype(np.float32)
    learns = (rng.random(shape[0]) >= share_idle).reshape(-1, *[1] * (len(shape) - 1))
    scale = np.exp2(rng.integers(-6, 0, learns.shape)).astype(np.float32)
    now = held.copy()
    for _ in range(20):
        step = rng.normal(0, 0.004, shape).astype(np.float32) * scale * learns
        now -= np.float32(0.05) * (step + np.float32(1e-3) * now)
    return held.reshape(-1), (now - held).reshape(-1)
