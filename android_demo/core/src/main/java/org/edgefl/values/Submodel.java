package org.edgefl.values;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.edgefl.json.InvalidJson;
import org.edgefl.json.JsonObject;
import org.edgefl.json.JsonReader;
import org.edgefl.wire.DType;
import org.edgefl.wire.Names;
import org.edgefl.wire.Shape;

/**
 * Every tensor of a task's submodel, in the model's order, and what the update must hold (docs/graphs.md).
 *
 * @param payloads what the update must hold beside tensors of the submodel
 */
public record Submodel(List<SubmodelTensor> tensors, List<Payload> payloads) {
    /**
     * One tensor.
     *
     * @param trained whether the rule moves it, or adopts its new value if it is a statistic
     * @param sent its codec in the update, or null
     */
    public record SubmodelTensor(
            String name, long[] shape, DType dtype, String role, String layer, boolean trained, String sent) {
        /** Whether it is a running statistic, and not a parameter. */
        public boolean isStatistic() {
            return role.equals("statistic");
        }
    }

    /**
     * A payload of the update that is not a tensor of the submodel in its own shape and type.
     *
     * @param dtype the type of its values, or null if its codec has none
     */
    public record Payload(String name, long[] shape, String codec, String dtype) {}

    /** Read the document from its bytes. */
    public static Submodel parse(byte[] document) {
        JsonObject root = JsonReader.object(document);
        if (!root.text("schema").equals("edgefl.submodel/1")) {
            throw new InvalidJson("'" + root.text("schema") + "' is not a submodel that this client knows");
        }
        List<SubmodelTensor> tensors = new ArrayList<>();
        Set<String> names = new HashSet<>();
        for (JsonObject fields : root.objects("tensors")) {
            SubmodelTensor tensor = tensor(fields);
            if (!names.add(tensor.name()) || !Names.isTensorName(tensor.name())) {
                throw new InvalidJson("a submodel names '" + tensor.name() + "' twice, or it is not a name");
            }
            tensors.add(tensor);
        }
        List<Payload> payloads = new ArrayList<>();
        for (JsonObject fields : root.has("payloads") ? root.objects("payloads") : List.<JsonObject>of()) {
            payloads.add(new Payload(
                fields.text("name"), fields.wholes("shape"), fields.text("codec"), fields.textOrNull("dtype")));
        }
        return new Submodel(tensors, payloads);
    }

    /** The number of parameters: entries of all tensors but running statistics. */
    public long parameters() {
        return tensors.stream().filter(tensor -> !tensor.isStatistic())
            .mapToLong(tensor -> Shape.size(tensor.shape())).sum();
    }

    private static SubmodelTensor tensor(JsonObject fields) {
        long[] shape = fields.wholes("shape");
        Shape.size(shape);
        DType dtype = switch (fields.text("dtype")) {
            case "float32" -> DType.F32;
            case "int64" -> DType.I64;
            case "float16" -> DType.F16;
            case "float64" -> DType.F64;
            case "int32" -> DType.I32;
            default -> throw new InvalidJson("a tensor of type '" + fields.text("dtype") + "'");
        };
        return new SubmodelTensor(fields.text("name"), shape, dtype, fields.text("role"), fields.text("layer"),
            fields.flag("trained", false), fields.textOrNull("sent"));
    }
}
