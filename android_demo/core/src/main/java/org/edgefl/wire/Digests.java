package org.edgefl.wire;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.regex.Pattern;

/** SHA-256 digests, which name everything large: {@code sha256:} and 64 hexadecimal digits. */
public final class Digests {
    private static final Pattern FORM = Pattern.compile("sha256:[0-9a-f]{64}");

    private Digests() {}

    /** Return whether a text is a digest; only then may it become part of a path or a file's name. */
    public static boolean isDigest(String text) {
        return FORM.matcher(text).matches();
    }

    /** Return the digest of bytes. */
    public static String of(byte[] bytes) {
        return "sha256:" + hex(sha256().digest(bytes));
    }

    /** Return the digest of a file, read piece by piece. */
    public static String of(Path file) throws IOException {
        MessageDigest sha = sha256();
        byte[] piece = new byte[1 << 16];
        try (InputStream in = Files.newInputStream(file)) {
            for (int count = in.read(piece); count >= 0; count = in.read(piece)) {
                sha.update(piece, 0, count);
            }
        }
        return "sha256:" + hex(sha.digest());
    }

    /** Return a new SHA-256. */
    public static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    /** Return bytes as lower-case hexadecimal digits. */
    public static String hex(byte[] bytes) {
        StringBuilder out = new StringBuilder();
        for (byte next : bytes) {
            out.append(Character.forDigit(next >> 4 & 15, 16)).append(Character.forDigit(next & 15, 16));
        }
        return out.toString();
    }
}
