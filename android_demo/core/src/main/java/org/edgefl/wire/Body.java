package org.edgefl.wire;

import java.util.Collections;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * Named tensors with a kind, texts and a seed: what moves between coordinator and device.
 *
 * @param kind {@code weights}, {@code update} or {@code mask}
 * @param about texts by name
 * @param seed the 64 bits of an unsigned number, or null
 * @param tensors tensors by name, in the order of the names' UTF-8 bytes
 */
public record Body(String kind, SortedMap<String, String> about, Long seed, SortedMap<String, Encoded> tensors) {
    /** Own, sorted copies of both maps. */
    public Body {
        about = sorted(about);
        tensors = sorted(tensors);
    }

    /** Return a body of dense tensors. */
    public static Body weights(Map<String, Tensor> tensors) {
        SortedMap<String, Encoded> dense = new TreeMap<>(Names.UTF8_ORDER);
        tensors.forEach((name, tensor) -> dense.put(name, new Encoded.Dense(tensor)));
        return new Body("weights", Collections.emptySortedMap(), null, dense);
    }

    /** Return all tensors, each of which must be dense. */
    public SortedMap<String, Tensor> dense() {
        SortedMap<String, Tensor> found = new TreeMap<>(Names.UTF8_ORDER);
        tensors.forEach((name, encoded) -> {
            if (!(encoded instanceof Encoded.Dense dense)) {
                throw new InvalidBody("'" + name + "' is " + encoded.codec() + ", and must be dense here");
            }
            found.put(name, dense.tensor());
        });
        return found;
    }

    private static <V> SortedMap<String, V> sorted(Map<String, V> map) {
        SortedMap<String, V> found = new TreeMap<>(Names.UTF8_ORDER);
        found.putAll(map);
        return Collections.unmodifiableSortedMap(found);
    }
}
