package org.edgefl.http;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * What a request sends.
 *
 * @param type its media type
 * @param coding its content coding, or null
 * @param bytes the content, or null if it is in a file
 * @param file a file that is sent piece by piece, or null
 */
public record Content(String type, String coding, byte[] bytes, Path file) {
    /** Return a JSON document as content. */
    public static Content json(byte[] utf8) {
        return new Content("application/json", null, utf8, null);
    }

    /** The number of bytes. */
    public long length() throws IOException {
        return bytes == null ? Files.size(file) : bytes.length;
    }

    /** Write all of it, and tell a meter about every piece. */
    void writeTo(OutputStream out, Meter meter) throws IOException {
        byte[] piece = new byte[1 << 16];
        try (InputStream in = bytes == null ? Files.newInputStream(file) : new ByteArrayInputStream(bytes)) {
            for (int count = in.read(piece); count >= 0; count = in.read(piece)) {
                meter.sent(count);
                out.write(piece, 0, count);
            }
        }
    }
}
