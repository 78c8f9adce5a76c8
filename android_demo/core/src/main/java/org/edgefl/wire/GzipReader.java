package org.edgefl.wire;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.PushbackInputStream;
import java.util.zip.CRC32;
import java.util.zip.DataFormatException;
import java.util.zip.Inflater;

/**
 * Unpacks exactly one member of gzip, up to a number of bytes, and refuses whatever follows.
 *
 * <p>{@code GZIPInputStream} ignores what follows, and has no limit: a few kilobytes could fill a disk.
 */
public final class GzipReader extends InputStream {
    private final PushbackInputStream in;
    private final Inflater inflater = new Inflater(true);
    private final CRC32 checksum = new CRC32();
    private final byte[] piece = new byte[8192];
    private final long most;
    private int filled;
    private long count;
    private boolean ended;

    /** A reader of at most {@code most} unpacked bytes. */
    public GzipReader(InputStream packed, long most) throws IOException {
        this.in = new PushbackInputStream(packed, piece.length);
        this.most = most;
        readHeader();
    }

    private void readHeader() throws IOException {
        int[] head = new int[10];
        for (int i = 0; i < head.length; i++) {
            head[i] = next();
        }
        if (head[0] != 0x1f || head[1] != 0x8b || head[2] != 8 || (head[3] & 0xe0) != 0) {
            throw new IOException("not gzip");
        }
        if ((head[3] & 4) != 0) {
            for (int length = next() | next() << 8; length > 0; length--) {
                next();
            }
        }
        for (int flag : new int[] {8, 16}) {
            while ((head[3] & flag) != 0 && next() != 0) {
                continue;
            }
        }
        if ((head[3] & 2) != 0) {
            next();
            next();
        }
    }

    private int next() throws IOException {
        int found = in.read();
        if (found < 0) {
            throw new EOFException("gzip ends too early");
        }
        return found;
    }

    @Override
    public int read() throws IOException {
        byte[] one = new byte[1];
        return read(one, 0, 1) < 0 ? -1 : one[0] & 255;
    }

    @Override
    public int read(byte[] to, int from, int length) throws IOException {
        if (ended || length == 0) {
            return ended ? -1 : 0;
        }
        try {
            int found = inflater.inflate(to, from, length);
            while (found == 0 && !inflater.finished()) {
                if (inflater.needsDictionary()) {
                    throw new IOException("gzip needs a dictionary");
                }
                filled = in.read(piece);
                if (filled < 0) {
                    throw new EOFException("gzip ends too early");
                }
                inflater.setInput(piece, 0, filled);
                found = inflater.inflate(to, from, length);
            }
            count += found;
            if (count > most) {
                throw new IOException("more than " + most + " bytes, unpacked");
            }
            checksum.update(to, from, found);
            if (found > 0) {
                return found;
            }
            readTrailer();
            return -1;
        } catch (DataFormatException error) {
            throw new IOException("not gzip", error);
        }
    }

    private void readTrailer() throws IOException {
        int left = inflater.getRemaining();
        in.unread(piece, filled - left, left);
        long sum = 0;
        long length = 0;
        for (int shift = 0; shift < 32; shift += 8) {
            sum |= (long) next() << shift;
        }
        for (int shift = 0; shift < 32; shift += 8) {
            length |= (long) next() << shift;
        }
        if (sum != checksum.getValue() || length != (count & 0xffffffffL) || in.read() >= 0) {
            throw new IOException("gzip with a wrong checksum or length, or with more behind it");
        }
        ended = true;
    }

    @Override
    public void close() throws IOException {
        inflater.end();
        in.close();
    }
}
