package org.edgefl.telemetry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import org.junit.jupiter.api.Test;

/** Times of steps, and what is told of them. */
class StepTimesTest {
    private static StepTimes of(double... seconds) {
        StepTimes times = new StepTimes();
        for (double one : seconds) {
            times.add(one);
        }
        return times;
    }

    @Test
    void driftIsTheLastQuarterOverTheFirstWithoutTheWarmUp() {
        assertEquals(1.5, of(9, 1, 1, 1, 1, 1, 1, 1, 2).drift());
        assertEquals(2.0, of(9, 1, 1, 7, 7, 7, 7, 2, 2).drift());
        assertNull(of(9, 1, 1, 1, 1, 1, 1, 2).drift());
        assertNull(of(9, 0, 0, 1, 1, 1, 1, 1, 1).drift());
    }

    @Test
    void theFirstStepStandsApartUnlessItIsTheOnlyOne() {
        assertEquals(1.0, of(9, 1, 2, 3).latency(0, 20).get("min_step_seconds"));
        assertEquals(9.0, of(9, 1, 2, 3).latency(0, 20).get("first_step_seconds"));
        assertEquals(2.0, of(9, 1, 2, 3).latency(0, 20).get("p50_step_seconds"));
        assertEquals(9.0, of(9).latency(0, 0).get("round_seconds"));
    }
}
