#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints sample, range, its sigma and SNR of the strongest echo of each result, until the run ends.
usage: echoes.py [ENDPOINT [STREAM]]"""
import json
import sys

import zmq

endpoint = sys.argv[1] if len(sys.argv) > 1 else "tcp://127.0.0.1:5555"
stream = sys.argv[2] if len(sys.argv) > 2 else "pnradar"
subscriber = zmq.Context.instance().socket(zmq.SUB)
subscriber.subscribe(f"range/{stream}")
subscriber.subscribe(f"end/{stream}")
subscriber.connect(endpoint)
while True:
    topic, text = subscriber.recv_multipart()[:2]
    message = json.loads(text)
    if topic.startswith(b"end/"):
        break
    for echo in message["echoes"][:1]:  # the strongest is the first
        print(message["sample"], f"{echo['range_m']:.6g} {echo['range_sigma_m']:.3g} {echo['snr_db']:.3g}")
