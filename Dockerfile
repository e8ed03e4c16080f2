# geco_ray in a container.
#   docker build -t geco-ray .                                 CPUs
#   docker build -t geco-ray:gpu --build-arg TORCH=cu130 .     NVIDIA GPUs; run with --gpus all
#   docker run --rm --shm-size=2g -v "$PWD:/work" -u "$(id -u)" geco-ray run demo
# It runs as any user id, also one without a name, and writes nothing but /work and /tmp.
FROM python:3.11-slim-bookworm

# Which of torch's builds: cpu, cu126, cu128, cu130, ... (https://download.pytorch.org/whl/)
ARG TORCH=cpu

ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HF_HOME=/tmp/huggingface \
    MPLCONFIGDIR=/tmp/matplotlib \
    GECO_RAY_CACHE=/tmp/geco_ray

WORKDIR /opt/geco_ray
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY geco_ray geco_ray
COPY analysis analysis
COPY grids grids

# torch first and from its own index; the rest as tested, at the version that is then there.
RUN version=$(sed -n 's/^torch==//p' constraints.txt) \
    && pip install "torch==${version}" --index-url "https://download.pytorch.org/whl/${TORCH}" \
    && sed -i '/^torch==/d' constraints.txt \
    && pip install ".[demo,aws]" -c constraints.txt

WORKDIR /work
RUN chmod 1777 /work
USER 10001
ENTRYPOINT ["geco-ray"]
CMD ["doctor"]
