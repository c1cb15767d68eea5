"""Run a party's command in this process, and note what every message carried beside the party's message log.

    python recording.py python -m vfgnn run ...

A message log's digests have keys of their own, so that equal payloads cannot be found in it. Tests that look for a
mask, a seed or noise that was used twice look here: at SHA-256 of the payloads themselves, and at their first words.
"""

import hashlib
import json
import os
import sys
from pathlib import Path

import torch

from vfgnn.cli.main import main
from vfgnn.message_log import MessageLog

RECORDED = (sys.executable, str(Path(__file__)))
"""What a party's command is put behind."""


WORDS = 16  # of each message


def first_words(payload):
    """Of a message of words; of any other none."""
    return tuple(payload.flatten()[:WORDS].tolist()) if payload.dtype == torch.int64 else ()


def recorded(add):
    """`MessageLog.add`, with a line for the payload before it."""

    def record_and_add(self, run, message, payload, *arguments, **keywords):
        words = payload.detach().cpu().contiguous()
        line = {"start": run, "sender": message.sender, "receiver": message.receiver, "kind": message.kind}
        line |= {"bytes": message.bytes, "content": hashlib.sha256(words.numpy().tobytes()).hexdigest()}
        line |= {"words": first_words(words)}
        file = os.open(self._path.with_name("payloads.jsonl"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(file, json.dumps(line).encode() + b"\n")  # in one piece: a kill leaves no half of it
        os.close(file)
        add(self, run, message, payload, *arguments, **keywords)

    return record_and_add


def payloads(folder):
    """What a party sent and received: sender, receiver, kind and content of each message, in its order."""
    return [json.loads(line) for line in (folder / "payloads.jsonl").read_text().splitlines()]


if __name__ == "__main__":
    MessageLog.add = recorded(MessageLog.add)
    sys.argv = ["vfgnn", *sys.argv[4:]]
    main()
