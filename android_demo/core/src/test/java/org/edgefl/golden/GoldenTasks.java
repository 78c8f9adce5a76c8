package org.edgefl.golden;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.edgefl.data.LocalData;
import org.edgefl.data.NumpyArray;
import org.edgefl.json.JsonObject;
import org.edgefl.json.JsonReader;
import org.edgefl.json.JsonText;
import org.edgefl.values.SampleSpec;
import org.edgefl.wire.Shape;
import org.edgefl.wire.Tensor;

/** tasks.json and forward_tasks.json as a coordinator and a device have them: plans, artifacts, samples. */
public final class GoldenTasks {
    private static final JsonObject GOLDEN = GoldenFiles.json("tasks.json");
    private static final JsonObject FORWARD = GoldenFiles.json("forward_tasks.json");

    private GoldenTasks() {}

    /** The content of a digest, or null. */
    public static byte[] artifact(String digest) {
        for (JsonObject file : List.of(GOLDEN, FORWARD)) {
            if (file.object("artifacts").has(digest)) {
                return Base64.getDecoder().decode(file.object("artifacts").text(digest));
            }
        }
        return null;
    }

    /** The plan of a case, with some fields of its own. */
    public static Map<String, Object> plan(int number, Map<String, Object> changes) {
        return plan(GOLDEN, number, changes);
    }

    /** The plan of a case that trains nothing, with some fields of its own. */
    public static Map<String, Object> forwardPlan(int number, Map<String, Object> changes) {
        return plan(FORWARD, number, changes);
    }

    private static Map<String, Object> plan(JsonObject file, int number, Map<String, Object> changes) {
        Map<String, Object> plan = new LinkedHashMap<>(file.objects("cases").get(number).object("plan").toJson());
        plan.putAll(changes);
        return plan;
    }

    /** What a coordinator says a sample is. */
    public static Map<String, Object> sample() {
        JsonObject data = GOLDEN.object("data");
        long[] shape = raw().shape();
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("schema", "edgefl.sample/1");
        fields.put("shape", Shape.list(Arrays.copyOfRange(shape, 1, shape.length)));
        fields.put("dtype", "float32");
        fields.put("raw_dtype", raw().dtype());
        fields.put("normalisation", data.object("normalisation").toJson());
        fields.put("classes", data.count("classes", 1));
        return fields;
    }

    /** The same as a value. */
    public static SampleSpec spec() {
        return SampleSpec.of(JsonReader.object(JsonText.write(sample())));
    }

    private static NumpyArray raw() {
        return GoldenArrays.numpy(GOLDEN.object("data").object("raw"));
    }

    /** The raw bytes of one sample. */
    public static byte[] rawSample(int number) {
        byte[] all = Base64.getDecoder().decode(GOLDEN.object("data").object("raw").text("data"));
        int length = all.length / (int) raw().shape()[0];
        return Arrays.copyOfRange(all, number * length, (number + 1) * length);
    }

    /** The device's samples; {@code shift} is added to every label, so that they are others. */
    public static LocalData data(int shift) {
        return data(shift, GOLDEN.number("validation_share"));
    }

    /** Return the samples with labels moved on, of which another share is held out. */
    public static LocalData data(int shift, double validationShare) {
        long[] labels = GOLDEN.object("data").wholes("labels");
        for (int i = 0; i < labels.length; i++) {
            labels[i] = (labels[i] + shift) % spec().classes();
        }
        ByteBuffer bytes = Tensor.ofLongs(labels, labels.length).bytes();
        return new LocalData(raw(), new NumpyArray("int64", new long[] {labels.length}, bytes), spec(),
            validationShare, 0);
    }
}
