package org.edgefl.engine;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/**
 * Refuses graphs that the exporter never writes, before the engine sees them.
 *
 * <p>A graph may name external data, and onnxruntime would then read files of this device. So the file, a protocol
 * buffer, is walked once: no external data, no functions, no operators of other domains, bounded size and depth.
 */
public final class GraphCheck {
    private static final int MOST_NODES = 200_000;
    private static final int MOST_DEPTH = 4;
    private static final int MOST_FIELDS = 1_000_000;
    private static final Set<String> FORBIDDEN = Set.of("Loop", "If", "SequenceMap");

    private int nodes;

    private GraphCheck() {}

    /** Check a file of a model. */
    public static void check(byte[] model) {
        try {
            new GraphCheck().model(new Message(model, 0, model.length));
        } catch (IndexOutOfBoundsException damaged) {
            throw new InvalidGraph("it is not a whole protocol buffer", damaged);
        }
    }

    private void model(Message model) {
        boolean hasGraph = false;
        for (Field field : model.fields()) {
            switch (field.number) {
                case 7 -> {
                    graph(field.message(), 0);
                    hasGraph = true;
                }
                case 8 -> domain(field.message(), 1);
                case 20, 25 -> throw new InvalidGraph("it has functions or training information of its own");
                default -> { }
            }
        }
        if (!hasGraph) {
            throw new InvalidGraph("it has no graph");
        }
    }

    private static void domain(Message message, int number) {
        for (Field field : message.fields()) {
            String name = field.number == number ? field.text() : "";
            if (!name.isEmpty() && !name.equals("ai.onnx")) {
                throw new InvalidGraph("it uses operators of '" + name + "'");
            }
        }
    }

    private void graph(Message graph, int depth) {
        if (depth > MOST_DEPTH) {
            throw new InvalidGraph("its subgraphs are nested more than " + MOST_DEPTH + " deep");
        }
        for (Field field : graph.fields()) {
            switch (field.number) {
                case 1 -> node(field.message(), depth);
                case 5 -> tensor(field.message());
                case 15 -> throw new InvalidGraph("it has sparse constants");
                default -> { }
            }
        }
    }

    private void node(Message node, int depth) {
        if (++nodes > MOST_NODES) {
            throw new InvalidGraph("it has more than " + MOST_NODES + " nodes");
        }
        domain(node, 7);
        for (Field field : node.fields()) {
            if (field.number == 4 && FORBIDDEN.contains(field.text())) {
                throw new InvalidGraph("it uses the operator '" + field.text() + "'");
            }
            if (field.number == 5) {
                attribute(field.message(), depth);
            }
        }
    }

    private void attribute(Message attribute, int depth) {
        for (Field field : attribute.fields()) {
            switch (field.number) {
                case 5, 10 -> tensor(field.message());
                case 6, 11 -> graph(field.message(), depth + 1);
                case 22, 23 -> throw new InvalidGraph("it has sparse constants");
                default -> { }
            }
        }
    }

    private static void tensor(Message tensor) {
        for (Field field : tensor.fields()) {
            if (field.number == 13 || (field.number == 14 && field.value != 0)) {
                throw new InvalidGraph("it names data in other files");
            }
        }
    }

    /** One field: its number, and either a number or a stretch of bytes. */
    private record Field(int number, long value, byte[] all, int from, int to) {
        Message message() {
            if (all == null) {
                throw new InvalidGraph("a number stands where a message belongs");
            }
            return new Message(all, from, to);
        }

        String text() {
            return all == null ? "" : new String(all, from, to - from, StandardCharsets.UTF_8);
        }
    }

    /** A stretch of a protocol buffer, read field by field. */
    private static final class Message {
        private final byte[] all;
        private final int from;
        private final int to;
        private int at;

        Message(byte[] all, int from, int to) {
            this.all = all;
            this.from = from;
            this.to = to;
        }

        List<Field> fields() {
            List<Field> found = new ArrayList<>();
            at = from;
            while (at < to) {
                if (found.size() >= MOST_FIELDS) {
                    throw new InvalidGraph("a message of it has more than " + MOST_FIELDS + " fields");
                }
                long tag = varint();
                int number = (int) (tag >>> 3);
                switch ((int) (tag & 7)) {
                    case 0 -> found.add(new Field(number, varint(), null, 0, 0));
                    case 1 -> skip(8);
                    case 2 -> {
                        long length = varint();
                        int start = at;
                        skip(length);
                        found.add(new Field(number, 0, all, start, at));
                    }
                    case 5 -> skip(4);
                    default -> throw new InvalidGraph("it is not a protocol buffer");
                }
            }
            return found;
        }

        private void skip(long count) {
            if (count < 0 || count > to - at) {
                throw new InvalidGraph("a field ends beyond its message");
            }
            at += (int) count;
        }

        private long varint() {
            long value = 0;
            for (int shift = 0; shift < 64; shift += 7) {
                if (at >= to) {
                    throw new InvalidGraph("a number ends beyond its message");
                }
                byte next = all[at++];
                value |= (long) (next & 127) << shift;
                if (next >= 0) {
                    return value;
                }
            }
            throw new InvalidGraph("a number has more than 64 bits");
        }
    }
}
