"""What the daemon says of launches that ended (Record), while programs run."""

import contextlib
import threading

from .client import Varlink

EVERY_S = 0.5  # the daemon says it so often


class Recording:
    """The launches in rewritten form that ended since it began, as the daemon described them."""

    def __init__(self, socket_path):
        self.launches, self.lost, self.replies = [], 0, 0
        self.news = threading.Condition()
        self.stream = Varlink(socket_path)
        self.stream.send("Record", {}, more=True)
        self.take()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def take(self):
        said = self.stream.receive()["parameters"]
        with self.news:
            self.launches += said["launches"]
            self.lost += said["lost"]
            self.replies += 1
            self.news.notify_all()

    def read(self):
        with contextlib.suppress(OSError, EOFError):
            while True:
                self.take()

    def end(self):
        """Waits until what has ended by now is there, then ends. Raises RuntimeError if launches were lost."""
        with self.news:
            enough = self.replies + 2  # one may be under way
            self.news.wait_for(lambda: self.replies >= enough, timeout=20 * EVERY_S)
        self.stream.socket.shutdown(2)
        self.thread.join()
        self.stream.close()
        if self.replies < enough or self.lost:
            raise RuntimeError(f"the daemon's record lacks launches: {self.lost} lost")
        return self.launches
