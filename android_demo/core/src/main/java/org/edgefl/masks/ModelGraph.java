package org.edgefl.masks;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.edgefl.json.InvalidJson;
import org.edgefl.json.JsonObject;
import org.edgefl.json.JsonReader;
import org.edgefl.wire.Digests;
import org.edgefl.wire.Shape;

/**
 * What a model consists of, as far as a device needs it to derive shapes (docs/wire.md, "Model graphs").
 *
 * @param digest the digest of the document
 * @param shapes the shape of every tensor, in the model's order
 * @param layers the tensors of every layer, in the order of the forward pass
 * @param groups channels that are kept or removed together, by name
 */
public record ModelGraph(
        String digest, Map<String, long[]> shapes, Map<String, List<String>> layers, Map<String, Group> groups) {

    /** A channel group: its width, and where its channels lie. */
    public record Group(int width, List<Span> spans) {}

    /** Where the channels of a group lie on one axis of a tensor. */
    public record Span(String tensor, int axis, long repeat, long stacks) {}

    /** Read the document from its bytes. */
    public static ModelGraph parse(byte[] document) {
        JsonObject root = JsonReader.object(document);
        if (!root.text("schema").equals("edgefl.model_graph/1")) {
            throw new InvalidJson("'" + root.text("schema") + "' is not a model graph that this client knows");
        }
        Map<String, long[]> shapes = new LinkedHashMap<>();
        for (JsonObject tensor : root.objects("tensors")) {
            long[] shape = tensor.wholes("shape");
            Shape.size(shape);
            shapes.put(tensor.text("name"), shape);
        }
        Map<String, List<String>> layers = new LinkedHashMap<>();
        for (JsonObject layer : root.objects("layers")) {
            layers.put(layer.text("name"), layer.texts("tensors"));
        }
        Map<String, Group> groups = new HashMap<>();
        for (JsonObject group : root.objects("groups")) {
            groups.put(group.text("name"), group(group, shapes));
        }
        return new ModelGraph(Digests.of(document), shapes, layers, groups);
    }

    private static Group group(JsonObject fields, Map<String, long[]> shapes) {
        List<Span> spans = new ArrayList<>();
        for (JsonObject span : fields.objects("spans")) {
            long[] shape = shapes.get(span.text("tensor"));
            int axis = span.count("axis", 0);
            if (shape == null || axis >= shape.length) {
                throw new InvalidJson("a channel group names a tensor or an axis that is not there");
            }
            long repeat = span.has("repeat") ? span.count("repeat", 1) : 1;
            long stacks = span.has("stacks") ? span.count("stacks", 1) : 1;
            spans.add(new Span(span.text("tensor"), axis, repeat, stacks));
        }
        return new Group(fields.count("width", 1), spans);
    }
}
