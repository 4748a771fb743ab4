# SPDX-License-Identifier: MIT
"""A flow graph of GNU Radio 3.10 that sends samples to pnradar: to_pnradar.py FILE.cf32 RATE_HZ UTC_S ENDPOINT
The other end: pnradar -s source.rate_hz=RATE_HZ -s source.zmq_tags=yes zmq-sub:ENDPOINT
Replace the file and the throttle by a receiver. The receiver of UHD makes both tags itself."""
import sys

import numpy
import pmt
from gnuradio import blocks, gr, zeromq


def tag(key, value):
    """A tag at the first item."""
    return gr.python_to_tag((0, pmt.intern(key), value, pmt.intern("to_pnradar")))


def build(path, rate_hz, utc_s, endpoint):
    time = pmt.make_tuple(pmt.from_uint64(int(utc_s)), pmt.from_double(utc_s % 1))
    tags = [tag("rx_time", time), tag("rx_rate", pmt.from_double(rate_hz))]
    graph = gr.top_block()
    samples = blocks.vector_source_c(numpy.fromfile(path, "<c8"), tags=tags)
    throttle = blocks.throttle(gr.sizeof_gr_complex, rate_hz)
    sink = zeromq.pub_sink(gr.sizeof_gr_complex, 1, endpoint, pass_tags=True)
    graph.connect(samples, throttle, sink)
    return graph


if __name__ == "__main__":
    flow_graph = build(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), sys.argv[4])
    input("press Enter when pnradar runs")
    flow_graph.run()
