# SPDX-License-Identifier: MIT
"""Real flow graphs of GNU Radio 3.10 for interop_gnuradio.sh.
usage: gnuradio_graphs.py pub TOOLS FOLDER FIRST COUNT: tools/gnuradio/to_pnradar.py with FOLDER/echo.cf32, over a
           relay that drops COUNT of its messages from number FIRST on; the relay's port in FOLDER/port, what was
           dropped in FOLDER/lost as source.lost wants it
       gnuradio_graphs.py udp FOLDER PORT: FOLDER/echo.cf32 through the UDP Sink with its 64-bit sequence number
       gnuradio_graphs.py sub ENDPOINT CELLS COUNT FOLDER: COUNT vectors of complex values in FOLDER/vectors.cf32, their
           tags in FOLDER/tags, a line each"""
import os
import struct
import sys
import threading
import time

import numpy as np
import pmt
import zmq
from gnuradio import blocks, gr, network, zeromq


def publish_port(folder, number):
    with open(f"{folder}/port.part", "w") as out:
        out.write(str(number))
    os.rename(f"{folder}/port.part", f"{folder}/port")


def relay(source, sink, first, count, folder):
    """Passes messages on, but for those that are dropped. Ends with the process."""
    number = 0
    with open(f"{folder}/lost", "w") as lost:
        while True:
            message = source.recv()
            offset, n_tags = struct.unpack_from("<QQ", message, 3)
            if number == 0 and (offset != 0 or n_tags != 2):
                os._exit(4)  # the first message was sent before the relay had subscribed: try again
            if first <= number < first + count:
                items = (len(message) - 19) // 8  # no tags after the first message
                lost.write(f"{',' if number > first else ''}{offset}+{items}")
                lost.flush()
            else:
                sink.send(message)
            number += 1


def pub(tools, folder, first, count):
    sys.path.append(tools)
    import to_pnradar

    context = zmq.Context.instance()
    sink, source = context.socket(zmq.XPUB), context.socket(zmq.SUB)
    source.subscribe(b"")
    publish_port(folder, sink.bind_to_random_port("tcp://127.0.0.1"))
    port = source.bind_to_random_port("tcp://127.0.0.1")  # a free one, for GNU Radio
    source.unbind(f"tcp://127.0.0.1:{port}")
    time.sleep(0.1)
    graph = to_pnradar.build(f"{folder}/echo.cf32", 96000, 1795228812.25, f"tcp://127.0.0.1:{port}")
    source.connect(f"tcp://127.0.0.1:{port}")
    sink.recv()  # pnradar listens
    threading.Thread(target=relay, args=(source, sink, first, count, folder), daemon=True).start()
    time.sleep(0.5)
    graph.run()
    time.sleep(3600)  # the last messages are on their way; the test ends this process


def udp(folder, port):
    graph = gr.top_block()
    samples = blocks.file_source(gr.sizeof_gr_complex, f"{folder}/echo.cf32", False)
    throttle = blocks.throttle(gr.sizeof_gr_complex, 400000)
    sink = network.udp_sink(gr.sizeof_gr_complex, 1, "127.0.0.1", port, 1, 8 + 8 * 100, True)
    graph.connect(samples, throttle, sink)
    graph.run()


def sub(endpoint, n_cells, count, folder):
    graph = gr.top_block()
    vectors = zeromq.sub_source(gr.sizeof_gr_complex, n_cells, endpoint, pass_tags=True)
    sink = blocks.vector_sink_c(n_cells)
    graph.connect(vectors, sink)
    graph.start()
    while sink.nitems_read(0) < count:
        time.sleep(0.05)
    graph.stop()
    graph.wait()
    np.array(sink.data(), "<c8").tofile(f"{folder}/vectors.cf32")
    with open(f"{folder}/tags", "w") as out:
        for tag in sorted(sink.tags(), key=lambda t: (t.offset, str(t.key))):
            print(tag.offset, tag.key, pmt.to_python(tag.value), tag.srcid, sep="\t", file=out)


if sys.argv[1] == "pub":
    pub(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
elif sys.argv[1] == "udp":
    udp(sys.argv[2], int(sys.argv[3]))
else:
    sub(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
