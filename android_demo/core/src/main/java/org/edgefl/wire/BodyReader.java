package org.edgefl.wire;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import org.edgefl.json.JsonObject;
import org.edgefl.json.JsonReader;

/** Reads bodies from strangers: everything is checked before anything is used. */
public final class BodyReader {
    static final String BEGINNING = "{\"__metadata__\":{\"edgefl\":";

    private static final long MOST_HEADER = 1 << 20;
    private static final int MOST_PARTS = 8192;
    private static final int MOST_TEXTS = 64;
    private static final int MOST_CHARACTERS = 262144;
    private static final Set<String> KEYS = Set.of("wire", "kind", "about", "seed", "codecs");
    private static final Set<String> KINDS = Set.of("weights", "update", "mask");

    private BodyReader() {}

    /** Read a body from a file, into memory that the engine can use as it is. */
    public static Body read(Path file) throws IOException {
        try (FileChannel in = FileChannel.open(file, StandardOpenOption.READ)) {
            long size = in.size();
            if (size > 1L << 30) {
                throw new InvalidBody("it has " + size + " bytes, and at most 1 GiB is allowed");
            }
            ByteBuffer all = ByteBuffer.allocateDirect((int) size);
            while (all.hasRemaining() && in.read(all) >= 0) {
                continue;
            }
            return read(ByteRange.written(all));
        }
    }

    /** Read a body from bytes. Tensors of a direct buffer are views of it. */
    public static Body read(ByteBuffer bytes) {
        ByteBuffer all = bytes.slice().order(ByteOrder.LITTLE_ENDIAN);
        if (all.remaining() < 8 || all.getLong(0) < 0 || all.getLong(0) > MOST_HEADER
            || all.getLong(0) > all.remaining() - 8) {
            throw new InvalidBody("its header is longer than itself, or than 1 MiB");
        }
        byte[] header = new byte[(int) all.getLong(0)];
        int start = 8 + header.length;
        ByteRange.of(all, 8, start).get(header);
        if (!new String(header, StandardCharsets.ISO_8859_1).startsWith(BEGINNING)) {
            throw new InvalidBody("its header does not begin with " + BEGINNING);
        }
        JsonObject fields = JsonReader.object(header);
        JsonObject metadata = fields.object("__metadata__");
        if (metadata.names().size() != 1) {
            throw new InvalidBody("it has other metadata than 'edgefl'");
        }
        Map<String, Part> parts = parts(fields, ByteRange.of(all, start, all.limit()));
        return body(metadata.text("edgefl"), parts);
    }

    private static Map<String, Part> parts(JsonObject fields, ByteBuffer data) {
        if (fields.names().size() - 1 > MOST_PARTS) {
            throw new InvalidBody("it has more than " + MOST_PARTS + " parts");
        }
        List<long[]> ranges = new ArrayList<>();
        Map<String, Part> parts = new LinkedHashMap<>();
        for (String name : fields.names()) {
            if (name.equals("__metadata__")) {
                continue;
            }
            JsonObject field = fields.object(name);
            long[] shape = field.wholes("shape");
            long[] range = field.wholes("data_offsets");
            DType dtype = DType.named(field.text("dtype"));
            if (range.length != 2 || range[0] < 0 || range[1] < range[0] || range[1] > data.remaining()
                || range[1] - range[0] != (long) Shape.size(shape) * dtype.bytes) {
                throw new InvalidBody("the offsets of '" + name + "' do not fit its shape or the data");
            }
            ByteBuffer part = ByteRange.of(data, (int) range[0], (int) range[1]);
            parts.put(name, new Part(name, dtype, shape, part));
            ranges.add(range);
        }
        checkNoGaps(ranges, data.remaining());
        return parts;
    }

    private static void checkNoGaps(List<long[]> ranges, long size) {
        ranges.sort(Comparator.<long[]>comparingLong(range -> range[0]).thenComparingLong(range -> range[1]));
        long at = 0;
        for (long[] range : ranges) {
            if (range[0] != at) {
                throw new InvalidBody("its parts overlap or leave gaps");
            }
            at = range[1];
        }
        if (at != size) {
            throw new InvalidBody("it has data that belong to no part");
        }
    }

    private static Body body(String entry, Map<String, Part> parts) {
        if (entry.length() < 65 || entry.charAt(64) != ' ') {
            throw new InvalidBody("its metadata do not begin with a digest");
        }
        String text = entry.substring(65);
        if (!BodyWriter.digest(text, new ArrayList<>(parts.values())).equals(entry.substring(0, 64))) {
            throw new InvalidBody("its content does not have the digest in its header");
        }
        JsonObject fields = JsonReader.object(text);
        if (!KEYS.containsAll(fields.names()) || !text.chars().allMatch(next -> next < 128)) {
            throw new InvalidBody("its text has a key that is not known, or letters beyond ASCII");
        }
        if (fields.whole("wire") != 1) {
            throw new InvalidBody("it has wire version " + fields.whole("wire") + ", and this client reads version 1");
        }
        if (!KINDS.contains(fields.text("kind"))) {
            throw new InvalidBody("the kind '" + fields.text("kind") + "' is not known");
        }
        SortedMap<String, Encoded> tensors = new Decoder(parts, fields.objectOrNull("codecs")).tensors();
        return new Body(fields.text("kind"), about(fields.objectOrNull("about")), seed(fields), tensors);
    }

    private static Long seed(JsonObject fields) {
        if (!fields.has("seed")) {
            return null;
        }
        return Seeds.parse(fields.text("seed"));
    }

    private static SortedMap<String, String> about(JsonObject fields) {
        SortedMap<String, String> about = new TreeMap<>(Names.UTF8_ORDER);
        for (String name : fields == null ? Set.<String>of() : fields.names()) {
            String text = fields.text(name);
            if (about.size() >= MOST_TEXTS || text.length() > MOST_CHARACTERS) {
                throw new InvalidBody("it has more than " + MOST_TEXTS + " texts, or one that is too long");
            }
            about.put(name, text);
        }
        return about;
    }
}
