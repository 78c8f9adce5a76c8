package org.edgefl.golden;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.edgefl.json.JsonObject;
import org.edgefl.profile.CostFit;
import org.edgefl.profile.Measured;
import org.junit.jupiter.api.Test;

/** cost_fit.json: measured steps in, the cost of a profile out. */
class CostFitTest {
    @Test
    void measurementsAreFittedAsDocumented() {
        JsonObject golden = GoldenFiles.json("cost_fit.json");
        double tolerance = golden.number("tolerance");
        for (JsonObject example : golden.objects("cases")) {
            JsonObject expected = example.object("cost");
            Map<String, Object> cost = CostFit.cost(measured(example, "times", "seconds"),
                measured(example, "peaks", "peak_bytes"), 0, expected.text("measured_on"));
            assertEquals(expected.names(), cost.keySet());
            for (String name : expected.names()) {
                if (expected.get(name) instanceof Number) {
                    double value = expected.number(name);
                    double found = ((Number) cost.get(name)).doubleValue();
                    double most = Math.max(tolerance * Math.abs(value), name.equals("memory_base_bytes") ? 1 : 0);
                    assertTrue(Math.abs(found - value) <= most, example.text("name") + ": " + name + " is " + found);
                }
            }
        }
    }

    private static List<Measured> measured(JsonObject example, String list, String value) {
        List<Measured> found = new ArrayList<>();
        for (JsonObject one : example.objects(list)) {
            found.add(new Measured(one.text("group"), one.number("forward_multiply_adds"),
                one.number("backward_multiply_adds"), one.number("activation_bytes"), one.number("parameter_bytes"),
                one.number("trained_parameters"), one.number(value)));
        }
        return found;
    }
}
