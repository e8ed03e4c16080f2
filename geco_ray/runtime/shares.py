"""GPUs and their shares: which requests can be met, before Ray would wait for ever for those that can't."""

from __future__ import annotations

import os
from pathlib import Path

from geco_ray.errors import ResourceError, UserError
from geco_ray.plan.config import RunSettings


def may_grow(settings: RunSettings) -> bool:
    """Whether Ray is a cluster, to which an autoscaler may add what is asked for; a local one has what it has."""
    return settings.executor == "ray" and bool(settings.address or os.environ.get("RAY_ADDRESS", "") not in _LOCAL)


_LOCAL = ("", "local")
_FINEST = 1e-4  # Ray counts shares in ten-thousandths


def workers_that_fit(share: float, gpus: float) -> int:
    """How many workers with ``share`` of a GPU run at once on ``gpus`` GPUs; a worker's share lies on one of them.

    Two GPUs have room for two workers of 0.6, not for the three that 1.2 GPUs a pair suggest.
    """
    return int(1 / share + _FINEST) * int(gpus)


def check_device(settings: RunSettings) -> None:
    """Refuse what this machine can never give, before Ray waits for it; a cluster may still grow, so it may not.

    Raises:
        UserError: no such device, or a share that is none. ResourceError: more GPUs are asked for than there are.
    """
    from geco_ray.device import parse_device, resolve_device

    parse_device(settings.device)
    if settings.executor == "ray":
        _check_for_ray(settings)
        if may_grow(settings):
            return
        _check_count(settings)
    if settings.device != "cpu":
        resolve_device(settings.device)
    if settings.executor == "ray":
        _check_present(settings)


def _shares(settings: RunSettings) -> dict[str, float | None]:
    return {"--gpus-per-trial": settings.gpus_per_trial, "--gpus-per-actor": settings.gpus_per_actor}


def _check_for_ray(settings: RunSettings) -> None:
    if ":" in settings.device:
        raise UserError(
            "Ray shares out the GPUs itself", where="--device", found=settings.device, expected="auto, cpu or cuda",
            remedy="Choose GPUs with CUDA_VISIBLE_DEVICES, or use --executor inline",
        )  # fmt: skip
    for option, share in _shares(settings).items():
        if share is not None and not (share == 0 or _FINEST <= share <= 1):
            raise UserError(
                "a worker computes on one GPU", where=option, found=share, expected="a share of at most 1, or 0",
                remedy="More workers take more GPUs",
            )  # fmt: skip
        if share == 0 and settings.device == "cuda":
            raise UserError(
                "a worker without a share would compute on a GPU that Ray gives to others", where=option, found=share,
                expected="more than 0 with --device cuda", remedy="Use --device auto to leave these workers on CPUs",
            )  # fmt: skip


def _check_count(settings: RunSettings) -> None:
    if settings.gpus and settings.gpus > (present := _present_gpus()):
        raise ResourceError(
            f"--gpus asks for {settings.gpus} and this machine has {present}. Ask for at most that many, or 0 for CPUs."
        )


def _check_present(settings: RunSettings) -> None:
    """The workers' shares against the GPUs of this run."""
    if settings.device == "cuda" and not _local_gpus(settings):
        raise ResourceError("--device cuda needs a GPU and --gpus 0 leaves none. Leave one of them out.")
    for option, share in _shares(settings).items():
        if share and share > (available := _local_gpus(settings)):
            raise ResourceError(f"{option} asks for {share:g} GPU and this machine has {available}. Give 0 for CPUs.")


def _local_gpus(settings: RunSettings) -> int:
    return local_gpus(settings.gpus, settings.device)


def local_gpus(requested: int | None, device: str) -> int:
    """How many GPUs a Ray of our own counts: those that torch can use, not all that the driver shows.

    Ray itself would count those that torch is not built for too, and as many workers as there are GPUs would then
    compute on a single core each, in silence.
    """
    if requested is not None:
        return requested
    return 0 if device == "cpu" else _present_gpus()


def note_on_unusable_gpus(settings: RunSettings, driver: Path = Path("/proc/driver/nvidia/gpus")) -> str | None:
    """One sentence where NVIDIA's driver shows GPUs of this machine and torch can use none of them; else None."""
    hidden = "CUDA_VISIBLE_DEVICES" in os.environ  # on purpose, perhaps
    if settings.device != "auto" or settings.gpus == 0 or may_grow(settings) or hidden or not driver.is_dir():
        return None
    count = len(list(driver.iterdir()))
    if not count or _present_gpus():
        return None
    import torch

    build = f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "built without CUDA"
    return (
        f"note: this machine has {count} GPUs that torch {torch.__version__} ({build}) can't use, so everything is "
        "computed on CPUs. Install a torch for the CUDA of the driver (nvidia-smi shows it), or a newer driver."
    )


def _present_gpus() -> int:
    from geco_ray.device import usable_gpus

    return usable_gpus()
