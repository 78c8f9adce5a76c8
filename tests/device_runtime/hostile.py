"""What a hostile coordinator sends: graphs that do not end or take all memory, and replies that never end."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import onnx
from onnx import TensorProto, helper

__all__ = ["endless_loop", "large_product", "long_chain", "raw_server", "sent_forever"]


def _with_loss(graph: bytes, change: Callable[[str, str], list[onnx.NodeProto]]) -> bytes:
    """Return a training graph whose loss goes through further nodes: from the first name to the second."""
    model = onnx.load_from_string(graph)
    for node in model.graph.node:
        for at, name in enumerate(node.output):
            if name == "loss":
                node.output[at] = "honest_loss"
    model.graph.node.extend(change("honest_loss", "loss"))
    return bytes(model.SerializeToString())


def _constant(name: str, kind: int, shape: list[int], values: list[float]) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], value=helper.make_tensor(f"{name}_value", kind, shape, values))


def endless_loop(graph: bytes) -> bytes:
    """Return a training graph that adds to its loss for ever."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["go_on"]), helper.make_node("Add", ["sum", "sum"], ["next"])],
        "body",
        [
            helper.make_tensor_value_info("at", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("sum", TensorProto.FLOAT, []),
        ],
        [
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, []),
        ],
    )
    return _with_loss(
        graph,
        lambda start, end: [
            _constant("always", TensorProto.BOOL, [], [1]),
            helper.make_node("Loop", ["", "always", start], [end], body=body),
        ],
    )


def long_chain(graph: bytes, size: int, length: int) -> bytes:
    """Return a training graph with many products of large matrices, one after the other."""

    def nodes(start: str, end: str) -> list[onnx.NodeProto]:
        chain = [
            _constant("shape", TensorProto.INT64, [2], [size, size]),
            helper.make_node("Expand", [start, "shape"], ["m0"]),
        ]
        chain += [helper.make_node("MatMul", [f"m{at}", f"m{at}"], [f"m{at + 1}"]) for at in range(length)]
        return [*chain, helper.make_node("ReduceMean", [f"m{length}"], [end], keepdims=0)]

    return _with_loss(graph, nodes)


def large_product(graph: bytes, size: int) -> bytes:
    """Return a training graph with one product of two square matrices of this size."""
    return long_chain(graph, size, 1)


@contextlib.contextmanager
def raw_server(answer: Callable[[socket.socket], None]) -> Iterator[tuple[str, list[int]]]:
    """Serve one connection after the other with a function that gets the socket after a request has come; give the
    address, and a list with the bytes that each connection took."""
    taken: list[int] = []
    listener = socket.create_server(("127.0.0.1", 0))
    done = threading.Event()

    def serve() -> None:
        while not done.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                connection.settimeout(5)
                request = b""
                while b"\r\n\r\n" not in request:
                    piece = connection.recv(65536)
                    if not piece:
                        break
                    request += piece
                taken.append(0)
                if request:
                    answer(_Counting(connection, taken))  # type: ignore[arg-type]

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", taken
    finally:
        done.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


class _Counting:
    def __init__(self, connection: socket.socket, taken: list[int]) -> None:
        self._connection, self._taken = connection, taken

    def sendall(self, data: bytes) -> None:
        self._connection.sendall(data)
        self._taken[-1] += len(data)


def sent_forever(head: bytes, piece: bytes, most: int = 400 * 2**20) -> Callable[[socket.socket], None]:
    """Return an answer that begins so, and then repeats a piece until the device has had enough of it."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(head)
        for _ in range(most // max(1, len(piece))):
            connection.sendall(piece)

    return answer
