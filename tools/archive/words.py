# SPDX-License-Identifier: MIT
"""Reasons to end the program, and messages."""
import sys


EXIT_LOST, EXIT_USAGE, EXIT_NO_INPUT, EXIT_UNAVAILABLE, EXIT_IO, EXIT_CONFIG = 3, 64, 66, 69, 74, 78
EXIT_INTERNAL = 70


class Refusal(Exception):
    """A reason to end the program, in words, with its exit status."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


def say(text):
    print(f"pnradar-archive: {text}", file=sys.stderr, flush=True)
