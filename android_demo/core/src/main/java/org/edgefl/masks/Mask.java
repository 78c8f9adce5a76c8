package org.edgefl.masks;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import org.edgefl.wire.Body;
import org.edgefl.wire.Digests;
import org.edgefl.wire.Encoded;
import org.edgefl.wire.InvalidBody;
import org.edgefl.wire.Names;
import org.edgefl.wire.PackedBits;
import org.edgefl.wire.Shape;

/**
 * Which channels, layers and weights of a model a device has and trains.
 *
 * @param trained names of the trained layers
 * @param kept packed bits of the channels of every group that is cut
 * @param held packed bits of every tensor that is not held completely, at the submodel's shape
 */
public record Mask(Set<String> trained, SortedMap<String, byte[]> kept, SortedMap<String, byte[]> held) {
    /** Read a mask from a body of kind {@code mask}. */
    public static Mask of(Body body) {
        if (!body.kind().equals("mask")) {
            throw new InvalidBody("a body of kind '" + body.kind() + "' is not a mask");
        }
        SortedMap<String, byte[]> kept = new TreeMap<>(Names.UTF8_ORDER);
        SortedMap<String, byte[]> held = new TreeMap<>(Names.UTF8_ORDER);
        body.tensors().forEach((name, encoded) -> {
            if (!(encoded instanceof Encoded.Bits bits)) {
                throw new InvalidBody("'" + name + "' of a mask must be bits");
            }
            if (name.startsWith("kept/")) {
                kept.put(name.substring(5), bits.packed());
            } else if (name.startsWith("held/")) {
                held.put(name.substring(5), bits.packed());
            } else {
                throw new InvalidBody("a mask has nothing called '" + name + "'");
            }
        });
        Set<String> trained = new HashSet<>();
        for (String layer : body.about().getOrDefault("trained", "").split("\n")) {
            if (!layer.isEmpty()) {
                trained.add(layer);
            }
        }
        return new Mask(trained, kept, held);
    }

    /** Return the digest that names this mask of a model. */
    public String digest(String model) {
        MessageDigest sha = Digests.sha256();
        add(sha, "edgefl.mask/1");
        add(sha, model);
        add(sha, Integer.toString(trained.size()));
        sorted(trained).forEach(layer -> add(sha, layer));
        kept.forEach((group, bits) -> {
            add(sha, "group " + group);
            add(sha, bits);
        });
        held.forEach((tensor, bits) -> {
            add(sha, "tensor " + tensor);
            add(sha, bits);
        });
        return "sha256:" + Digests.hex(sha.digest());
    }

    private static List<String> sorted(Collection<String> names) {
        List<String> found = new ArrayList<>(names);
        found.sort(Names.UTF8_ORDER);
        return found;
    }

    private static void add(MessageDigest sha, String text) {
        add(sha, text.getBytes(StandardCharsets.UTF_8));
    }

    private static void add(MessageDigest sha, byte[] field) {
        for (int shift = 0; shift < 64; shift += 8) {
            sha.update((byte) ((long) field.length >> shift));
        }
        sha.update(field);
    }

    /** Return the shapes of the submodel's tensors, in the model's order. */
    public Map<String, long[]> shapes(ModelGraph model) {
        Map<String, long[]> shapes = new LinkedHashMap<>();
        model.shapes().forEach((name, shape) -> shapes.put(name, shape.clone()));
        kept.forEach((name, bits) -> {
            ModelGraph.Group group = model.groups().get(name);
            if (group == null || bits.length != PackedBits.bytes(group.width())) {
                throw new InvalidBody("the mask cuts '" + name + "', which is not such a group of the model");
            }
            long removed = group.width() - PackedBits.count(bits);
            for (ModelGraph.Span span : group.spans()) {
                shapes.get(span.tensor())[span.axis()] -= removed * span.repeat() * span.stacks();
            }
        });
        held.forEach((name, bits) -> {
            long[] shape = shapes.get(name);
            if (shape == null || bits.length != PackedBits.bytes(Shape.size(shape))) {
                throw new InvalidBody("the mask holds bits of '" + name + "', which do not fit the model");
            }
        });
        return shapes;
    }

    /** Return the tensors of the trained layers, in the model's order. */
    public List<String> trainedTensors(ModelGraph model) {
        Set<String> found = new HashSet<>();
        for (String layer : trained) {
            if (!model.layers().containsKey(layer)) {
                throw new InvalidBody("the mask trains '" + layer + "', which is not a layer of the model");
            }
            found.addAll(model.layers().get(layer));
        }
        List<String> inOrder = new ArrayList<>(model.shapes().keySet());
        inOrder.retainAll(found);
        return inOrder;
    }
}
