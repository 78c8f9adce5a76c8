package org.edgefl.golden;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import org.edgefl.json.JsonObject;
import org.edgefl.masks.Mask;
import org.edgefl.masks.ModelGraph;
import org.edgefl.wire.BodyReader;
import org.edgefl.wire.Shape;
import org.junit.jupiter.api.Test;

/** masks.json: a model graph, and masks of it with their digests, shapes and trained tensors. */
class MasksTest {
    @Test
    void masksHaveTheirDigestsAndShapes() {
        JsonObject golden = GoldenFiles.json("masks.json");
        ModelGraph model = ModelGraph.parse(golden.text("model").getBytes(StandardCharsets.UTF_8));
        assertEquals(golden.text("model_digest"), model.digest());
        for (JsonObject example : golden.objects("cases")) {
            byte[] body = Base64.getDecoder().decode(example.text("body"));
            Mask mask = Mask.of(BodyReader.read(ByteBuffer.wrap(body)));
            String name = example.text("name");
            assertEquals(new HashSet<>(example.texts("trained")), mask.trained(), name);
            assertEquals(example.text("digest"), mask.digest(model.digest()), name);
            assertEquals(example.texts("trained_tensors"), mask.trainedTensors(model), name);
            List<Object> shapes = new ArrayList<>();
            for (Map.Entry<String, long[]> entry : mask.shapes(model).entrySet()) {
                shapes.add(List.of(entry.getKey(), Shape.list(entry.getValue())));
            }
            assertEquals(example.list("shapes"), shapes, name);
            JsonObject held = example.object("held");
            assertEquals(held.names(), mask.held().keySet(), name);
            held.names().forEach(tensor ->
                assertArrayEquals(GoldenArrays.bits(held.text(tensor)), mask.held().get(tensor), name));
        }
    }
}
