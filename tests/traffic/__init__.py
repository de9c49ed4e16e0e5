"""Kafka traffic with known truth: messages, connections, captures and the calls they hold.

Nothing here imports kwsniff. The encoders, the segmentation and the file writers are a second, separate
reading of the protocol guide, the RFCs and the capture formats, which is what makes them a witness.

    scene = Scene()
    talk = scene.connection()
    talk.open(at=0)
    talk.call(produce(7, 1, {"orders": {0: batch([b"one"])}}), at=1_000_000, answer_at=3_000_000)
    talk.close(at=9_000_000)
    capture = files.pcap(files.frames(scene.packets()))
    calls = truth.truth(scene.calls, scene.packets())
"""
