package org.edgefl.agent;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.edgefl.http.Answer;
import org.edgefl.http.CoordinatorClient;
import org.edgefl.http.Request;
import org.edgefl.http.Transport;
import org.edgefl.http.Unreachable;
import org.edgefl.training.Interrupts;
import org.edgefl.values.TaskRefused;
import org.edgefl.wire.Digests;
import org.edgefl.wire.Packing;
import org.edgefl.wire.Planes;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Downloads go to the disk as they come. */
class ArtifactCacheTest {
    private static final int SIZE = 3 << 20;
    private static final int PIECE = 1 << 17;

    @TempDir
    private Path folder;

    private static byte[] content() {
        byte[] bytes = new byte[SIZE];
        new Random(3).nextBytes(bytes);
        return bytes;
    }

    /** Answers with a body of a coding; {@code watch} sees how much of it was asked for. */
    private record Server(byte[] body, String coding, Watch watch) implements Transport {
        @Override
        public Answer send(Request request) {
            boolean rest = request.headers().containsKey("Range");
            int from = rest ? Integer.parseInt(request.headers().get("Range").replaceAll("[^0-9]", "")) : 0;
            Map<String, String> headers = rest ? Map.of("Content-Range", "bytes " + from + "-" + body.length)
                : coding == null ? Map.of() : Map.of("Content-Encoding", coding);
            return new Answer() {
                @Override
                public int status() {
                    return rest ? 206 : 200;
                }

                @Override
                public String header(String name) {
                    return headers.get(name);
                }

                @Override
                public InputStream body() {
                    return new ByteArrayInputStream(body, from, body.length - from) {
                        @Override
                        public synchronized int read(byte[] to, int at, int most) {
                            watch.asked(pos);
                            return super.read(to, at, most);
                        }
                    };
                }

                @Override
                public String pin() {
                    return null;
                }

                @Override
                public void close() {}
            };
        }

        @Override
        public void abort() {}
    }

    /** Sees how much of a body was read. */
    private interface Watch {
        void asked(int soFar);
    }

    private static void fetch(ArtifactCache cache, Transport server, String digest) throws IOException {
        fetch(cache, server, digest, () -> { });
    }

    private static void fetch(ArtifactCache cache, Transport server, String digest, Runnable betweenPieces)
            throws IOException {
        cache.fetch(new CoordinatorClient(server), "secret", ArtifactCache.ARTIFACTS, digest, 60, betweenPieces);
    }

    @Test
    void whatHasComeIsOnTheDiskWhateverTheCoding() throws IOException {
        byte[] content = content();
        String digest = Digests.of(content);
        for (String coding : new String[] {null, Packing.GZIP}) {
            try (AgentHome home = new AgentHome(folder.resolve("home" + coding))) {
                ArtifactCache cache = new ArtifactCache(home, 1 << 30);
                Path part = cache.file(digest).resolveSibling(cache.file(digest).getFileName() + ".part");
                long[] furthest = new long[1];
                byte[] sent = coding == null ? content : Packing.pack(content, coding);
                fetch(cache, new Server(sent, coding, soFar -> {
                    long written = part.toFile().length();
                    furthest[0] = Math.max(furthest[0], written);
                    assertTrue(written >= soFar - PIECE, soFar + " bytes came, and " + written + " are on the disk");
                }), digest);
                assertTrue(furthest[0] > SIZE / 2, "it was written as it came");
                assertArrayEquals(content, Files.readAllBytes(cache.file(digest)));
            }
        }
    }

    @Test
    void aBrokenDownloadGoesOnAtItsByte() throws IOException {
        byte[] content = content();
        String digest = Digests.of(content);
        try (AgentHome home = new AgentHome(folder)) {
            ArtifactCache cache = new ArtifactCache(home, 1 << 30);
            assertThrows(IllegalStateException.class, () -> fetch(cache, new Server(content, null, soFar -> {
                if (soFar > SIZE / 2) {
                    throw new IllegalStateException("killed");
                }
            }), digest));
            int[] first = {-1};
            fetch(cache, new Server(content, null, soFar -> first[0] = first[0] < 0 ? soFar : first[0]), digest);
            assertTrue(first[0] > SIZE / 3, "the second half alone");
            assertEquals(digest, Digests.of(cache.file(digest)));
        }
    }

    @Test
    void aConditionThatEndsWhileItComesEndsItAtOnce() throws IOException {
        byte[] content = content();
        String digest = Digests.of(content);
        try (AgentHome home = new AgentHome(folder)) {
            ArtifactCache cache = new ArtifactCache(home, 1 << 30);
            int[] pieces = new int[1];
            int[] read = new int[1];
            assertThrows(Interrupts.Stopped.class, () -> fetch(cache,
                new Server(content, null, soFar -> read[0] = soFar), digest, () -> {
                    if (++pieces[0] == 3) {
                        throw new Interrupts.Stopped();
                    }
                }));
            assertTrue(read[0] < SIZE / 2);
            fetch(cache, new Server(content, null, soFar -> { }), digest);
            assertEquals(digest, Digests.of(cache.file(digest)));
        }
    }

    @Test
    void planesAreTheOneCodingInMemoryAndThereforeBounded() throws IOException {
        byte[] content = content();
        byte[] large = new byte[Planes.MOST_BYTES + 1];
        try (AgentHome home = new AgentHome(folder)) {
            ArtifactCache cache = new ArtifactCache(home, 1 << 30);
            fetch(cache, new Server(Packing.pack(content, Packing.PLANES), Packing.PLANES, soFar -> { }),
                Digests.of(content));
            assertTrue(Files.exists(cache.file(Digests.of(content))));
            Server bomb = new Server(Packing.pack(large, Packing.PLANES), Packing.PLANES, soFar -> { });
            assertThrows(Unreachable.class, () -> fetch(cache, bomb, Digests.of(large)));
            assertFalse(Files.exists(cache.file(Digests.of(large))));
        }
    }

    @Test
    void aDownloadBeyondTheOwnersRoomIsRefused() throws IOException {
        byte[] content = content();
        try (AgentHome home = new AgentHome(folder)) {
            ArtifactCache cache = new ArtifactCache(home, SIZE - 1);
            Server server = new Server(content, null, soFar -> { });
            assertThrows(TaskRefused.class, () -> fetch(cache, server, Digests.of(content)));
        }
    }

    @Test
    void whatWasRefusedTakesNoRoom() throws IOException {
        byte[] content = content();
        try (AgentHome home = new AgentHome(folder)) {
            ArtifactCache cache = new ArtifactCache(home, SIZE - 1);
            for (String coding : new String[] {null, Packing.GZIP}) {
                Server server = new Server(coding == null ? content : Packing.pack(content, coding), coding, soFar -> { });
                assertThrows(TaskRefused.class, () -> fetch(cache, server, Digests.of(content)));
                assertEquals(0, home.cache().toFile().list().length);
            }
        }
    }

    @Test
    void theDownloadsOfATaskMustFitTheOwnersRoomTogether() throws IOException {
        byte[] content = content();
        byte[] other = new byte[SIZE / 2];
        try (AgentHome home = new AgentHome(folder)) {
            ArtifactCache cache = new ArtifactCache(home, SIZE);
            cache.keep(List.of(Digests.of(content), Digests.of(other)));
            fetch(cache, new Server(content, null, soFar -> { }), Digests.of(content));
            Server second = new Server(other, null, soFar -> { });
            assertThrows(TaskRefused.class, () -> fetch(cache, second, Digests.of(other)));
            cache.keep(List.of(Digests.of(other)));
            fetch(cache, second, Digests.of(other));
            cache.trim();
            assertEquals(List.of(cache.file(Digests.of(other)).getFileName().toString()),
                List.of(home.cache().toFile().list()));
        }
    }

    @Test
    void halfADownloadOfAnEarlierTaskMakesRoomAndHalfOneOfThisTaskStays() throws IOException {
        byte[] content = content();
        String digest = Digests.of(content);
        try (AgentHome home = new AgentHome(folder)) {
            ArtifactCache cache = new ArtifactCache(home, SIZE);
            Path part = home.cache().resolve(digest.substring("sha256:".length()) + ".part");
            Files.write(part, new byte[SIZE + 1]);
            cache.keep(List.of(digest));
            assertTrue(Files.exists(part));
            cache.keep(List.of());
            assertFalse(Files.exists(part));
        }
    }
}
