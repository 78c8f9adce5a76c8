package org.edgefl.wire;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.zip.CRC32;
import java.util.zip.Deflater;

/** Bodies as they are sent: compressed by {@code gzip}, or by {@code edgefl-planes, gzip}, if that saves enough. */
public final class Packing {
    /** The coding for anything. */
    public static final String GZIP = "gzip";
    /** The coding for floats. */
    public static final String PLANES = "edgefl-planes, gzip";

    private Packing() {}

    /** Pack bytes by a coding. */
    public static byte[] pack(byte[] body, String coding) {
        return switch (coding) {
            case GZIP -> gzip(body, new int[] {0, body.length});
            case PLANES -> gzip(Planes.split(body), Planes.bounds(body));
            default -> throw new IllegalArgumentException(coding);
        };
    }

    /** Unpack bytes by a coding, up to {@code most} of them. */
    public static byte[] unpack(InputStream packed, String coding, long most) throws IOException {
        long limit = coding.equals(PLANES) ? Math.min(most, Planes.MOST_BYTES) : most;
        try (InputStream in = new GzipReader(packed, limit)) {
            byte[] all = readAll(in, limit);
            return coding.equals(PLANES) ? Planes.join(all) : all;
        }
    }

    /** Unpack bytes in memory. */
    public static byte[] unpack(byte[] packed, String coding) throws IOException {
        return unpack(new ByteArrayInputStream(packed), coding, 1L << 30);
    }

    /** Read a stream to its end, and refuse more than {@code most} bytes. */
    public static byte[] readAll(InputStream in, long most) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        byte[] piece = new byte[8192];
        for (int count = in.read(piece); count >= 0; count = in.read(piece)) {
            out.write(piece, 0, count);
            if (out.size() > most) {
                throw new IOException("more than " + most + " bytes");
            }
        }
        return out.toByteArray();
    }

    /** One member of gzip, with a new block at every bound, so that each plane gets its own code. */
    private static byte[] gzip(byte[] body, int[] bounds) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        out.write(new byte[] {0x1f, (byte) 0x8b, 8, 0, 0, 0, 0, 0, 0, (byte) 0xff}, 0, 10);
        Deflater deflater = new Deflater(Deflater.DEFAULT_COMPRESSION, true);
        byte[] piece = new byte[8192];
        for (int i = 0; i + 1 < bounds.length; i++) {
            deflater.setInput(body, bounds[i], bounds[i + 1] - bounds[i]);
            boolean last = i + 2 == bounds.length;
            if (last) {
                deflater.finish();
            }
            int flush = last ? Deflater.NO_FLUSH : Deflater.SYNC_FLUSH;
            for (int count = piece.length; last ? !deflater.finished() : count == piece.length;) {
                count = deflater.deflate(piece, 0, piece.length, flush);
                out.write(piece, 0, count);
            }
        }
        deflater.end();
        CRC32 checksum = new CRC32();
        checksum.update(body);
        for (long number : new long[] {checksum.getValue(), body.length}) {
            for (int shift = 0; shift < 32; shift += 8) {
                out.write((int) (number >> shift) & 255);
            }
        }
        return out.toByteArray();
    }
}
