package org.edgefl.app.screens;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import android.content.Context;
import android.view.View;
import android.widget.ListView;
import android.widget.TextView;
import java.util.List;
import org.edgefl.agent.TaskRecord;
import org.edgefl.app.R;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.annotation.Config;

/** Costs of tasks, with their sources, in the owner's language. */
@RunWith(RobolectricTestRunner.class)
@Config(application = FakeApp.class, qualifiers = "en-rUS-w411dp-h891dp-xhdpi")
public final class CostTest {
    private final Hand hand = new Hand();

    private static CostWords words(String energy) {
        TaskRecord task = Federations.task(1, "accepted", "", Federations.telemetry(12.34, energy));
        return new CostWords(RuntimeEnvironment.getApplication(), TaskCost.of(task));
    }

    @Test
    public void everySourceOfEnergyIsNamed() {
        assertEquals("not told by this phone", words("null").energy());
        assertEquals("plugged in: not measured", words("{\"joules\": null, \"plugged\": true}").energy());
        assertEquals("22.2 J, battery current, 1 Hz", words("{\"joules\": 22.2, \"source\":"
            + " \"android battery counter\", \"sample_hertz\": 0.99, \"plugged\": false}").energy());
        assertEquals("5 J, estimated from CPU seconds",
            words("{\"joules\": 5, \"source\": \"CPU seconds x 1.2 W a core\", \"plugged\": false}").energy());
        assertEquals("5 J, estimated from CPU seconds (plugged in: not measured)",
            words("{\"joules\": 5, \"source\": \"CPU seconds x 1.2 W a core\", \"plugged\": true}").energy());
        assertEquals("1,234 J, the phone’s power monitors",
            words("{\"joules\": 1234.4, \"source\": \"android power monitor\", \"plugged\": true}").energy());
        assertEquals("3 J, a meter of the future",
            words("{\"joules\": 3, \"source\": \"a meter of the future\"}").energy());
    }

    @Test
    public void whatThePhoneDoesNotTellIsSaidToBeMissing() {
        TaskRecord task = Federations.task(1, "accepted", "", "{\"latency\": null}");
        CostWords words = new CostWords(RuntimeEnvironment.getApplication(), TaskCost.of(task));
        List<String> all = List.of(
            words.seconds(), words.memory(), words.energy(), words.heat(), words.up(), words.down());
        for (String found : all) {
            assertEquals("not told by this phone", found);
        }
    }

    @Test
    public void numbersAndUnitsFollowTheLanguage() {
        RuntimeEnvironment.setQualifiers("+de-rDE");
        Context context = RuntimeEnvironment.getApplication();
        assertEquals("12,3 Sek.", Units.seconds(context, 12.34));
        assertEquals("90,5\u00a0%", Units.percent(context, 0.905, 1));
    }

    @Test
    public void tasksAreListedNewestFirstWithAChartInWords() {
        hand.phone.federation = Federations.joined(Federations.digits());
        hand.phone.history = Federations.history();
        hand.open(null);
        hand.go(Destination.COST);
        ListView list = (ListView) hand.screen();
        View first = list.getAdapter().getView(1, null, list);
        assertEquals("Round 11", text(first, R.id.task_title));
        assertEquals("This phone gave the task back: the battery is at 41 °C", text(first, R.id.task_outcome));
        View second = list.getAdapter().getView(2, null, list);
        assertEquals("The result came too late.", text(second, R.id.task_outcome));
        assertTrue(hand.find(R.id.chart).getContentDescription().toString().startsWith("Last 10 tasks: from 24 sec"));
        hand.tap(R.id.chart_joules);
        String words = hand.text(R.id.chart_words);
        assertTrue(words, words.startsWith("Last 9 tasks: from 33.6 J to 92.4 J"));
        assertTrue(words, words.endsWith("Outlined bars are estimates."));
        list.setSelectionFromTop(4, -20);
        hand.settle();
        int position = list.getFirstVisiblePosition();
        int top = list.getChildAt(0).getTop();
        assertTrue(position > 0);
        hand.surviveProcessDeath();
        ListView again = (ListView) hand.screen();
        assertEquals(position, again.getFirstVisiblePosition());
        assertEquals(top, again.getChildAt(0).getTop());
        again.setSelection(0);
        hand.settle();
        assertEquals(words, hand.text(R.id.chart_words));
    }

    private static String text(View row, int id) {
        return ((TextView) row.findViewById(id)).getText().toString();
    }

    @Test
    public void axesEndAtRoundNumbers() {
        assertEquals(1, CostChart.round(0.7), 1e-9);
        assertEquals(50, CostChart.round(21), 1e-9);
        assertEquals(100, CostChart.round(100), 1e-9);
        assertEquals(0.02, CostChart.round(0.011), 1e-9);
    }
}
