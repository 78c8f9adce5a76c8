package org.edgefl.golden;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.edgefl.data.Batch;
import org.edgefl.data.Batches;
import org.edgefl.data.Normalisation;
import org.edgefl.data.NumpyArray;
import org.edgefl.data.SampleOrder;
import org.edgefl.json.JsonObject;
import org.edgefl.rules.Schedule;
import org.edgefl.rules.Settings;
import org.junit.jupiter.api.Test;

/** batches.json, schedules.json and normalisation.json: what a step reads, and its learning rate. */
class BatchesTest {
    @Test
    void everyStepHasItsSamplesAndItsSeed() {
        for (JsonObject example : GoldenFiles.json("batches.json").objects("cases")) {
            String name = example.text("name");
            int samples = example.count("samples", 1);
            boolean[] held = SampleOrder.heldOut(samples, example.number("validation_share"), 0);
            int[] train = IntStream.range(0, samples).filter(i -> !held[i]).toArray();
            assertArrayEquals(example.wholes("train"), longs(train), name);
            assertArrayEquals(example.wholes("validation"),
                longs(IntStream.range(0, samples).filter(i -> held[i]).toArray()), name);
            if (example.flag("equal", false)) {
                continue; // Batches of a compiled program, which this client never runs.
            }
            Integer most = example.has("most_steps") ? example.count("most_steps", 0) : null;
            Batches batches = new Batches(train.length, example.count("epochs", 0), example.count("batch_size", 1),
                most, Long.parseUnsignedLong(example.text("seed")));
            List<JsonObject> steps = example.objects("steps");
            assertEquals(steps.size(), batches.steps(), name);
            for (int step = 0; step < steps.size(); step++) {
                check(steps.get(step), batches.at(step), train, name);
                assertEquals(steps.get(step).count("epoch", 0), batches.at(step).epoch(), name);
            }
            check(example.object("extra"), batches.extra(), train, name);
        }
    }

    @Test
    void withoutTrainingEverySampleComesOnceInTheOrderOfTheFirstEpoch() {
        Batches batches = Batches.every(9, 4, null, 7);
        assertEquals(3, batches.steps());
        assertEquals(3, batches.perEpoch());
        Batches epoch = new Batches(9, 1, 4, null, 7);
        assertArrayEquals(epoch.at(0).samples(), batches.at(0).samples());
        assertArrayEquals(epoch.at(1).samples(), batches.at(1).samples());
        assertEquals(1, batches.at(2).samples().length);
        assertEquals(2, Batches.every(2, 4, null, 7).at(0).samples().length);
        assertEquals(2, Batches.every(8, 4, null, 7).steps());
        assertEquals(1, Batches.every(8, 4, 1, 7).steps());
    }

    private static void check(JsonObject expected, Batch batch, int[] train, String name) {
        int[] numbers = Arrays.stream(batch.samples()).map(i -> train[i]).toArray();
        assertArrayEquals(expected.wholes("samples"), longs(numbers), name);
        assertEquals(expected.text("seed"), Long.toUnsignedString(batch.seed()), name);
    }

    private static long[] longs(int[] numbers) {
        return Arrays.stream(numbers).asLongStream().toArray();
    }

    @Test
    void everyStepHasItsLearningRate() {
        for (JsonObject example : GoldenFiles.json("schedules.json").objects("cases")) {
            Schedule schedule = Schedule.of(new Settings(example.object("settings")));
            double[] rates = example.numbers("rates");
            float[] rounded = GoldenArrays.tensor(example.object("float32")).toFloats();
            for (int step = 0; step < rates.length; step++) {
                double rate = schedule.rate(
                    example.count("round", 0), example.count("rounds", 0), step, example.count("steps", 0));
                assertTrue(Math.abs(rate - rates[step]) <= 1e-15 * Math.abs(rates[step]), rate + " " + rates[step]);
                assertEquals(rounded[step], (float) rate);
            }
        }
    }

    @Test
    void rawValuesBecomeX() {
        for (JsonObject example : GoldenFiles.json("normalisation.json").objects("cases")) {
            NumpyArray raw = GoldenArrays.numpy(example.object("raw"));
            JsonObject rule = example.objectOrNull("normalisation");
            int count = (int) Arrays.stream(raw.shape()).reduce(1, (a, b) -> a * b);
            int length = count / (int) raw.shape()[0];
            if (!example.object("x").text("dtype").equals("float32")) {
                long[] x = new long[count];
                GoldenArrays.tensor(example.object("x")).longs().get(x);
                assertArrayEquals(x, IntStream.range(0, count).mapToLong(raw::asLong).toArray());
                continue;
            }
            float[] values = new float[count];
            IntStream.range(0, count).forEach(i -> values[i] = raw.asFloat(i));
            for (int from = 0; from < count && rule != null; from += length) {
                new Normalisation(rule.numbers("mean"), rule.numbers("std"), rule.number("scale"))
                    .apply(values, from, length, (int) raw.shape()[1]);
            }
            assertArrayEquals(GoldenArrays.tensor(example.object("x")).toFloats(), values, example.text("name"));
        }
    }
}
