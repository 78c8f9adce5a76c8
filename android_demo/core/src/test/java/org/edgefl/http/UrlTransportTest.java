package org.edgefl.http;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.edgefl.wire.Packing;
import org.junit.jupiter.api.Test;

/** What passes a socket is what is counted. */
class UrlTransportTest {
    private static final String ANSWER = "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\nX-Some: thing\r\n\r\n{}";

    /** Counts traffic. */
    private static final class Counter implements Meter {
        private long down;
        private long up;

        @Override
        public void received(long bytes) {
            down += bytes;
        }

        @Override
        public void sent(long bytes) {
            up += bytes;
        }
    }

    /** Answer one request, and return all of its bytes. */
    private static CompletableFuture<String> serveOnce(ServerSocket server, String ending) {
        return CompletableFuture.supplyAsync(() -> {
            try (Socket socket = server.accept()) {
                socket.setSoTimeout(10_000);
                ByteArrayOutputStream read = new ByteArrayOutputStream();
                InputStream in = socket.getInputStream();
                while (!read.toString(StandardCharsets.ISO_8859_1).endsWith(ending)) {
                    read.write(in.read());
                }
                socket.getOutputStream().write(ANSWER.getBytes(StandardCharsets.ISO_8859_1));
                return read.toString(StandardCharsets.ISO_8859_1);
            } catch (IOException error) {
                throw new IllegalStateException(error);
            }
        });
    }

    private static void exchange(Request request, String ending)
            throws IOException, InterruptedException, ExecutionException, TimeoutException {
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.1"))) {
            CompletableFuture<String> served = serveOnce(server, ending);
            Counter counter = new Counter();
            UrlTransport transport = new UrlTransport("http://127.0.0.1:" + server.getLocalPort(),
                TrustedCertificates.pinned(List.of()), "a test", counter);
            try (Answer answer = transport.send(request)) {
                assertEquals(404, answer.status());
                assertNull(answer.pin());
                assertEquals("{}", new String(Packing.readAll(answer.body(), 100), StandardCharsets.US_ASCII));
            }
            assertEquals(served.get(10, TimeUnit.SECONDS).length(), counter.up);
            assertEquals(ANSWER.length(), counter.down);
        }
    }

    @Test
    void aRequestWithoutContentIsCountedWithItsHeaders() throws Exception {
        exchange(Request.get("/v1/sample?a=b", "a secret"), "\r\n\r\n");
    }

    @Test
    void aRequestWithContentIsCountedWithItsHeaders() throws Exception {
        Content content = new Content("text/plain", "gzip", "the end".getBytes(StandardCharsets.US_ASCII), null);
        exchange(Request.of("PUT", "/v1/x", "a secret", Map.of("Range", "bytes=1-"), content, 1), "the end");
    }
}
