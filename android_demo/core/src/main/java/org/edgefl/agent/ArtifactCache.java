package org.edgefl.agent;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.edgefl.http.Answer;
import org.edgefl.http.CoordinatorClient;
import org.edgefl.http.ProblemAnswer;
import org.edgefl.http.Unreachable;
import org.edgefl.training.Downloads;
import org.edgefl.values.Refusal;
import org.edgefl.values.TaskRefused;
import org.edgefl.wire.Digests;
import org.edgefl.wire.GzipReader;
import org.edgefl.wire.Packing;
import org.edgefl.wire.Planes;

/**
 * Downloads by digest: streamed to the disk, resumed at any byte, checked, and kept for the next round.
 *
 * <p>Pieces of 64 KiB are in memory, but for the coding {@code edgefl-planes}: its bytes are in the order of their
 * planes, so the whole body is, of which there are at most {@link Planes#MOST_BYTES}.
 */
final class ArtifactCache implements Downloads {
    /** The route of what a plan names. */
    static final String ARTIFACTS = "/v1/artifacts/";
    /** The route of what a measurement names, which a joiner may use too. */
    static final String MEASUREMENT = "/v1/measurement/";

    private static final int MOST_DAMAGED = 4;
    private static final long KEEP_FREE = 64L << 20;

    private final AgentHome home;
    private final long mostBytes;
    private final Map<String, Integer> damaged = new HashMap<>();
    private final Set<Path> needed = new HashSet<>();

    ArtifactCache(AgentHome home, long mostBytes) {
        this.home = home;
        this.mostBytes = mostBytes;
    }

    @Override
    public Path file(String digest) {
        if (!Digests.isDigest(digest)) {
            throw new IllegalArgumentException("not a digest");
        }
        return home.cache().resolve(digest.substring("sha256:".length()));
    }

    private static Path part(Path target) {
        return target.resolveSibling(target.getFileName() + ".part");
    }

    /**
     * Make sure that an artifact is here; after a broken connection or damage, the caller tries again.
     *
     * @param betweenPieces called while it comes; may end it by an exception, and what has come stays
     */
    void fetch(CoordinatorClient client, String secret, String route, String digest, double seconds,
            Runnable betweenPieces) throws IOException {
        Path target = file(digest);
        if (Files.exists(target)) {
            target.toFile().setLastModified(System.currentTimeMillis());
            return;
        }
        Path part = part(target);
        download(client, secret, route + digest, part, seconds, betweenPieces);
        if (Digests.of(part).equals(digest)) {
            // On the disk before it has its name: after a power cut, nobody would check it again.
            try (FileChannel written = FileChannel.open(part, StandardOpenOption.WRITE)) {
                written.force(true);
            }
            Files.move(part, target, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
            damaged.remove(digest);
            return;
        }
        Files.delete(part);
        if (damaged.merge(digest, 1, Integer::sum) >= MOST_DAMAGED) {
            damaged.remove(digest);
            throw new TaskRefused(Refusal.Reason.BROKEN, "a download has another content than its digest says");
        }
        throw new Unreachable("a download has another content than its digest says", 0, null);
    }

    private void download(CoordinatorClient client, String secret, String path, Path part, double seconds,
            Runnable betweenPieces) throws IOException {
        long have = Files.exists(part) ? Files.size(part) : 0;
        Map<String, String> headers = have > 0 ? Map.of("Range", "bytes=" + have + "-")
            : Map.of("Accept-Encoding", Packing.PLANES);
        try (Answer answer = client.artifact(secret, path, headers, seconds)) {
            boolean rest = answer.status() == 206 && startsAt(answer.header("Content-Range"), have);
            if (answer.status() == 206 && !rest) {
                Files.deleteIfExists(part);
                throw new Unreachable("a download went on at another byte than asked for", 0, null);
            }
            store(answer, part, rest ? have : 0, betweenPieces);
        } catch (ProblemAnswer problem) {
            if (problem.status() == 416 && have > 0) {
                return; // The part is complete or damaged: its digest tells.
            }
            if (problem.status() == 404) {
                throw new TaskRefused(Refusal.Reason.BROKEN, "the coordinator no longer has " + path);
            }
            throw problem;
        }
    }

    private static boolean startsAt(String range, long have) {
        return range != null && range.startsWith("bytes " + have + "-");
    }

    private void store(Answer answer, Path part, long have, Runnable betweenPieces) throws IOException {
        String coding = answer.header("Content-Encoding");
        long most = Math.min(mostBytes - bytesOfOthers(part), home.freeBytes() + have - KEEP_FREE);
        try {
            if (Packing.PLANES.equals(coding)) {
                Files.write(part, Packing.unpack(answer.body(), coding, Planes.MOST_BYTES));
            } else if (Packing.GZIP.equals(coding)) {
                try (InputStream in = new GzipReader(answer.body(), Long.MAX_VALUE)) {
                    copy(in, part, 0, most, betweenPieces);
                }
            } else if (coding == null || coding.equals("identity")) {
                copy(answer.body(), part, have, most, betweenPieces);
            } else {
                throw new IOException("the coding '" + coding + "' was not asked for");
            }
        } catch (TaskRefused tooLarge) {
            // Nobody will ask for the rest: kept, such parts would fill the disk, whatever the owner allows.
            Files.deleteIfExists(part);
            throw tooLarge;
        } catch (IOException broken) {
            throw new Unreachable("a download broke off: " + broken.getMessage(), 0, broken);
        }
    }

    private static void copy(InputStream in, Path part, long have, long most, Runnable betweenPieces)
            throws IOException {
        StandardOpenOption mode = have > 0 ? StandardOpenOption.APPEND : StandardOpenOption.TRUNCATE_EXISTING;
        byte[] piece = new byte[1 << 16];
        long count = have;
        try (OutputStream out =
                Files.newOutputStream(part, StandardOpenOption.CREATE, StandardOpenOption.WRITE, mode)) {
            for (int found = in.read(piece); found >= 0; found = in.read(piece)) {
                count += found;
                if (count > most) {
                    throw new TaskRefused(Refusal.Reason.STORAGE, "a download is larger than the owner allows");
                }
                out.write(piece, 0, found);
                betweenPieces.run();
            }
        }
    }

    /** The bytes of what is needed beside one download: a task's downloads together must fit into the owner's limit. */
    private long bytesOfOthers(Path part) {
        return needed.stream().filter(file -> !file.equals(part)).mapToLong(file -> file.toFile().length()).sum();
    }

    /** Say what is needed from now on, and remove what is not until the owner's limit is kept. */
    void keep(Collection<String> digests) throws IOException {
        needed.clear();
        for (String digest : digests) {
            needed.add(file(digest));
            needed.add(part(file(digest)));
        }
        trim();
    }

    /** Remove what was not used for the longest time until the owner's limit is kept; what is needed stays. */
    void trim() throws IOException {
        File[] files = home.cache().toFile().listFiles();
        if (files == null) {
            return;
        }
        Arrays.sort(files, Comparator.comparingLong(File::lastModified));
        long total = Arrays.stream(files).mapToLong(File::length).sum();
        for (File file : files) {
            if (total > mostBytes && !needed.contains(file.toPath())) {
                total -= file.length();
                Files.delete(file.toPath());
            }
        }
    }
}
