package org.edgefl.rules;

import java.nio.FloatBuffer;
import java.util.Map;
import org.edgefl.values.Submodel;
import org.edgefl.values.Submodel.SubmodelTensor;
import org.edgefl.wire.DType;
import org.edgefl.wire.Tensor;

/**
 * The linear layer that writes a model's output: weight times features, plus bias.
 *
 * @param weight the tensor of shape [outputs, features]
 * @param bias the tensor of shape [outputs], or null if the layer adds none
 */
record LinearHead(SubmodelTensor weight, SubmodelTensor bias) {
    /** Return the head of a submodel, or refuse one whose output is not that of one linear layer. */
    static LinearHead of(Submodel submodel) {
        SubmodelTensor weight = null;
        SubmodelTensor bias = null;
        for (SubmodelTensor tensor : submodel.tensors()) {
            if (!tensor.role().equals("head")) {
                continue;
            }
            if (tensor.dtype() == DType.F32 && tensor.shape().length == 2 && weight == null) {
                weight = tensor;
            } else if (tensor.dtype() == DType.F32 && tensor.shape().length == 1 && bias == null) {
                bias = tensor;
            } else {
                throw new Unsupported("the head has '" + tensor.name() + "', and is not one linear layer");
            }
        }
        if (weight == null || (bias != null
            && (bias.shape()[0] != weight.shape()[0] || !bias.layer().equals(weight.layer())))) {
            throw new Unsupported("the head of the model is not one linear layer");
        }
        return new LinearHead(weight, bias);
    }

    int outputs() {
        return (int) weight.shape()[0];
    }

    int features() {
        return (int) weight.shape()[1];
    }

    /** How many numbers a sample has for the head: its features, and the 1 of the bias. */
    int size() {
        return features() + (bias == null ? 0 : 1);
    }

    /** Return what the head makes of samples, in double precision: a row of outputs for each. */
    double[][] scores(double[][] rows, Map<String, Tensor> tensors) {
        FloatBuffer matrix = tensors.get(weight.name()).floats();
        FloatBuffer shift = bias == null ? null : tensors.get(bias.name()).floats();
        double[][] scores = new double[rows.length][outputs()];
        for (int i = 0; i < rows.length; i++) {
            for (int output = 0; output < outputs(); output++) {
                double score = shift == null ? 0 : shift.get(output);
                for (int j = 0; j < features(); j++) {
                    score += rows[i][j] * matrix.get(output * features() + j);
                }
                scores[i][output] = score;
            }
        }
        return scores;
    }
}
