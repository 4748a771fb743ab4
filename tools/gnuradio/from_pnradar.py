# SPDX-License-Identifier: MIT
"""A flow graph of GNU Radio 3.10 that receives profiles of pnradar: from_pnradar.py ENDPOINT CELLS FILE.f32 [COUNT]
The other end: pnradar -s publisher.profile=power -s publisher.gnuradio=ENDPOINT ...
CELLS is the length of a vector, as pnradar logs it; prints the tags. after COUNT vectors the graph ends."""
import sys
import time

from gnuradio import blocks, gr, zeromq

endpoint, n_cells, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
graph = gr.top_block()
profiles = zeromq.sub_source(gr.sizeof_float, n_cells, endpoint, pass_tags=True)
file = blocks.file_sink(gr.sizeof_float * n_cells, path)
tags = blocks.tag_debug(gr.sizeof_float * n_cells, "profile")
graph.connect(profiles, file)
graph.connect(profiles, tags)
graph.start()
while len(sys.argv) < 5 or min(file.nitems_read(0), tags.nitems_read(0)) < int(sys.argv[4]):
    time.sleep(0.1)
graph.stop()
graph.wait()
