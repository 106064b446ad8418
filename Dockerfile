# The app in a container, for a CPU, or with --build-arg VARIANT=gpu for an NVIDIA GPU (Linux x86_64; the CUDA libraries come with torch).
# docs/operating.md says how to run it.
FROM python:3.12-slim

ARG VARIANT=cpu

ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1

# User 1000, as on a Space: nothing that a document does to the app makes it root. The data folder is made here so that a volume inherits its owner.
RUN useradd --uid 1000 --create-home explorer && install -d -o explorer -g explorer /data
WORKDIR /srv/explorer

# Before the program, so that a changed line of it installs nothing again. PyPI's torch brings gigabytes of CUDA: the CPU variant takes PyTorch's own build.
COPY requirements.txt ./
RUN case "$VARIANT" in \
      gpu) pip install -r requirements.txt ;; \
      cpu) pip install "$(grep '^torch==' requirements.txt)" --index-url https://download.pytorch.org/whl/cpu \
           && sed 's/^faiss-gpu/faiss-cpu/' requirements.txt > /tmp/cpu.txt && pip install -r /tmp/cpu.txt && rm /tmp/cpu.txt ;; \
      *) echo "VARIANT=$VARIANT must be cpu or gpu" >&2; exit 2 ;; \
    esac

COPY LICENSE app.py ./
COPY app app
COPY core core
COPY assets assets
COPY sample_docs sample_docs

USER explorer
ENV QRAG_HOME=/data \
    GRADIO_SERVER_NAME=0.0.0.0 \
    GRADIO_SERVER_PORT=7860
VOLUME /data
EXPOSE 7860

HEALTHCHECK --interval=30s --timeout=5s --start-period=120s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['GRADIO_SERVER_PORT'], timeout=4)"]

# The exec form: the app itself gets the signal to stop, and closes its log in order.
ENTRYPOINT ["python", "app.py"]
