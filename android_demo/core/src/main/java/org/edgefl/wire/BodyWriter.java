package org.edgefl.wire;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.Channels;
import java.nio.channels.WritableByteChannel;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import org.edgefl.json.JsonText;

/** Writes bodies. Equal bodies are equal bytes. */
public final class BodyWriter {
    private BodyWriter() {}

    /** Return a body as bytes. */
    public static byte[] toBytes(Body body) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try {
            write(body, Channels.newChannel(out));
        } catch (IOException impossible) {
            throw new IllegalStateException(impossible);
        }
        return out.toByteArray();
    }

    /** Write a body without a second copy of its tensors. */
    public static void write(Body body, WritableByteChannel out) throws IOException {
        Encoder encoder = new Encoder(body.tensors());
        List<Part> parts = encoder.parts();
        parts.sort(Comparator.comparing(Part::dtype).thenComparing(Part::name, Names.UTF8_ORDER));
        String text = text(body, encoder.entries());
        byte[] header = header(text, parts);
        ByteBuffer length = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN);
        length.putLong(0, header.length);
        send(length, out);
        send(ByteBuffer.wrap(header), out);
        for (Part part : parts) {
            send(part.data().duplicate(), out);
        }
    }

    private static void send(ByteBuffer bytes, WritableByteChannel out) throws IOException {
        while (bytes.hasRemaining()) {
            out.write(bytes);
        }
    }

    private static String text(Body body, SortedMap<String, List<Object>> entries) {
        SortedMap<String, Object> text = new TreeMap<>();
        if (!body.about().isEmpty()) {
            text.put("about", body.about());
        }
        if (!entries.isEmpty()) {
            text.put("codecs", entries);
        }
        text.put("kind", body.kind());
        if (body.seed() != null) {
            text.put("seed", Long.toUnsignedString(body.seed()));
        }
        text.put("wire", 1);
        return JsonText.write(text);
    }

    private static byte[] header(String text, List<Part> parts) {
        StringBuilder out = new StringBuilder(BodyReader.BEGINNING);
        JsonText.quote(digest(text, parts) + " " + text, out);
        out.append('}');
        long at = 0;
        for (Part part : parts) {
            long end = at + part.data().remaining();
            out.append(",\"").append(part.name().replace("\\", "\\\\").replace("\"", "\\\""))
                .append("\":{\"dtype\":\"").append(part.dtype()).append("\",\"shape\":[")
                .append(Shape.text(part.shape(), ",")).append("],\"data_offsets\":[").append(at).append(',')
                .append(end).append("]}");
            at = end;
        }
        byte[] written = out.append('}').toString().getBytes(StandardCharsets.UTF_8);
        byte[] padded = new byte[(written.length + 7) / 8 * 8];
        Arrays.fill(padded, (byte) ' ');
        System.arraycopy(written, 0, padded, 0, written.length);
        return padded;
    }

    /** The digest in a body's header: over the text, and over every part in the order of the names. */
    static String digest(String text, List<Part> parts) {
        MessageDigest sha = Digests.sha256();
        sha.update(text.getBytes(StandardCharsets.UTF_8));
        sha.update((byte) 0);
        parts.stream().sorted(Comparator.comparing(Part::name, Names.UTF8_ORDER)).forEach(part -> {
            String head = part.name() + "\0" + part.dtype() + "\0" + Shape.text(part.shape(), ",") + "\0";
            sha.update(head.getBytes(StandardCharsets.UTF_8));
            sha.update(part.data().duplicate());
        });
        return Digests.hex(sha.digest());
    }
}
