package org.edgefl.apk;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.DigestInputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;

/** The SHA-256 of every tool and platform file, by file name: lines as {@code sha256sum} writes them. */
final class Pins {
    private final Path file;
    private final Map<String, String> digests = new HashMap<>();

    private Pins(Path file) {
        this.file = file;
    }

    /** Read pins; empty lines and lines that begin with {@code #} are skipped. */
    static Pins read(Path file) throws IOException {
        Pins pins = new Pins(file);
        for (String line : Files.readAllLines(file)) {
            if (line.isBlank() || line.startsWith("#")) {
                continue;
            }
            String[] parts = line.split("  ", 2);
            if (parts.length != 2 || !parts[0].matches("[0-9a-f]{64}")) {
                throw new BuildProblem(file + ": not a pin (64 hexadecimal digits, two spaces, a file name): " + line);
            }
            pins.digests.put(parts[1].strip(), parts[0]);
        }
        return pins;
    }

    /** Whether there is a pin for this file name. */
    boolean knows(Path path) {
        return digests.containsKey(path.getFileName().toString());
    }

    /** Return the path if the file is the pinned one; a file without a pin is an error too. */
    Path check(Path path) throws IOException {
        String name = path.getFileName().toString();
        String pinned = digests.get(name);
        if (pinned == null) {
            throw new BuildProblem(file + " has no pin for " + name + ". If its version was changed on purpose, add"
                    + " the line that sha256sum prints for the file.");
        }
        String found = sha256(path);
        if (!found.equals(pinned)) {
            throw new BuildProblem("WRONG FILE: " + path + " has SHA-256 " + found + ", not the pinned " + pinned
                    + ". It is not used. Delete it, so that Maven downloads it again; if it is the same then, do not"
                    + " trust where it is from.");
        }
        return path;
    }

    /** Return the SHA-256 of a file in hexadecimal digits. */
    static String sha256(Path path) throws IOException {
        try (DigestInputStream in = new DigestInputStream(Files.newInputStream(path), newDigest())) {
            byte[] buffer = new byte[1 << 16];
            while (in.read(buffer) >= 0) {
                continue;
            }
            return HexFormat.of().formatHex(in.getMessageDigest().digest());
        }
    }

    private static MessageDigest newDigest() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError("every Java has SHA-256", e);
        }
    }
}
