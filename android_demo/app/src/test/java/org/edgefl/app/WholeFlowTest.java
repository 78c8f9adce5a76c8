package org.edgefl.app;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import android.Manifest;
import android.widget.ListView;
import android.widget.TextView;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.edgefl.agent.TaskRecord;
import org.edgefl.app.phone.Coordinator;
import org.edgefl.app.phone.Members;
import org.edgefl.app.phone.TrainingService;
import org.edgefl.app.screens.Costs;
import org.edgefl.app.screens.Finger;
import org.edgefl.app.telemetry.Phones;
import org.edgefl.http.Pairing;
import org.edgefl.json.JsonObject;
import org.edgefl.wire.BodyReader;
import org.junit.After;
import org.junit.Rule;
import org.junit.Test;
import org.junit.rules.TemporaryFolder;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.android.controller.ServiceController;
import org.robolectric.annotation.Config;
import org.robolectric.annotation.experimental.LazyApplication;
import org.robolectric.annotation.experimental.LazyApplication.LazyLoad;

/**
 * Everything together, as an owner does it: the real app with its screens, services, engine and files, driven by touch
 * events and links only, in a federation of a real coordinator over TLS.
 *
 * <p>In the middle of the first round the process dies, and really so: it is a JVM of its own ({@link FirstProcess})
 * that gets SIGKILL while it trains, after its first checkpoint. This JVM is the second process. It gets what Android
 * keeps ({@link LeftBehind}), the app's files at another path, before its application object exists. The app is then
 * brought back as Android does it: the sticky service without an intent, the activity with its saved state.
 */
@RunWith(RobolectricTestRunner.class)
@Config(qualifiers = "w411dp-h891dp-xhdpi")
@LazyApplication(LazyLoad.ON)
public final class WholeFlowTest {
    private static final double PATIENCE_SECONDS = 180;
    private static final int EPOCHS = 4000;

    @Rule
    public final TemporaryFolder folder = new TemporaryFolder();

    private final Finger finger = new Finger();
    private Coordinator coordinator;

    @After
    public void close() {
        // Without a Python there is no coordinator, and no app was started.
        if (coordinator != null) {
            Members.closePhone();
            coordinator.close();
        }
    }

    private static void await(BooleanSupplier something) throws InterruptedException {
        Waiting.until(PATIENCE_SECONDS, something);
    }

    @Test
    public void ownerTrainsTwoRoundsAndPredictsAlthoughTheProcessWasKilled() throws Exception {
        coordinator = new Coordinator(folder.getRoot().toPath(), 2, EPOCHS);
        LeftBehind left = new LeftBehind(folder.newFolder("first").toPath());
        killInTheMiddleOfTraining(left);
        left.inherit();
        Phones.ordinary();
        shadowOf(Members.app()).grantPermissions(Manifest.permission.POST_NOTIFICATIONS);
        comeBackAndTrain(left);
        compareModels();
        List<JsonObject> told = coordinator.ask("telemetry", "--format", "json").objects("rows");
        assertBothRoundsCounted(told);
        seeCosts(told);
    }

    private void killInTheMiddleOfTraining(LeftBehind left) throws Exception {
        try (AppProcess first = new AppProcess(left.folder(), FirstProcess.class, coordinator.pairingUri())) {
            first.await(PATIENCE_SECONDS, () -> left.has("activity"));
            Path checkpoint = left.taskFile("checkpoint.safetensors");
            first.await(PATIENCE_SECONDS, () -> Files.exists(checkpoint));
            first.kill();
        }
        assertFalse("training was over before the kill", Files.exists(left.taskFile("result.safetensors")));
    }

    private void comeBackAndTrain(LeftBehind left) throws Exception {
        int kept = Integer.parseInt(BodyReader.read(left.taskFile("checkpoint.safetensors")).about().get("steps"));
        List<Integer> steps = new ArrayList<>();
        Members.phone().addListener(() -> steps.add(Members.phone().activity().step()));
        ServiceController<TrainingService> service = Members.bringServiceBack();
        finger.comeBack(Pairing.parse(coordinator.pairingUri(), false).toAppUri(), left.read("activity"));
        await(() -> finger.text(R.id.status_steps).matches("Step \\d+ of \\d+"));
        finger.readablePicture("flow_11_goes_on");
        int first = steps.stream().filter(step -> step > 0).findFirst().get();
        assertTrue("the checkpoint is of step " + kept + ", and it began with " + first, kept > 0 && first > kept);
        finger.go(R.string.data_title);
        assertArrayEquals("the drawing that was not finished", left.read("drawing"), finger.drawing());
        assertEquals("Add as class 7", finger.text(R.id.add));
        await(() -> finger.text(R.id.count_heading).equals("24 samples"));
        finger.go(R.string.train_title);
        await(() -> shadowOf(service.get()).isStoppedBySelf());
        service.destroy();
        assertEquals("Not training", finger.text(R.id.status));
        finger.readablePicture("flow_12_trained");
    }

    /** The operator sees two rounds with one update each, and one device that did all its tasks. */
    private void assertBothRoundsCounted(List<JsonObject> told) throws Exception {
        List<JsonObject> rounds = coordinator.ask("rounds", "--json").objects("rounds");
        assertEquals(2, rounds.size());
        for (JsonObject round : rounds) {
            assertEquals("done", round.text("state"));
            assertEquals(1, round.object("report").whole("updates"));
        }
        JsonObject device = coordinator.ask("devices", "--json").objects("devices").get(0);
        assertEquals(Members.phone().federation().deviceId(), device.text("id"));
        assertEquals(2, device.whole("done"));
        assertEquals(0, device.whole("failed"));
        assertEquals(2, told.size());
        List<TaskRecord> own = Members.phone().history();
        assertEquals(2, own.size());
        for (int round = 0; round < 2; round++) {
            JsonObject row = told.get(round);
            TaskRecord record = own.get(1 - round);
            assertEquals("done", row.text("state"));
            assertEquals(round, row.whole("counted_in"));
            assertEquals("accepted", record.outcome());
            assertEquals(record.taskId(), row.text("task"));
            assertEquals("no step is lost or twice", EPOCHS * 2, row.whole("steps"));
        }
    }

    private void compareModels() throws Exception {
        finger.go(R.string.model_title);
        await(() -> answer(R.id.answer_personal, R.id.answer_size).length() > 0);
        finger.readablePicture("flow_13_models");
        for (float[] line : new Digits().draw(4)) {
            finger.draw(line);
        }
        for (int model : new int[] {R.id.answer_personal, R.id.answer_shared}) {
            await(() -> answer(model, R.id.answer_class).matches("Class \\d"));
            assertEquals("6,138 parameters\n25 kB", answer(model, R.id.answer_size));
            assertTrue(answer(model, R.id.answer_latency).endsWith(" ms"));
            assertTrue(answer(model, R.id.answer_accuracy).matches("\\d+(\\.\\d)?% of 3"));
        }
        assertEquals("Class 4", answer(R.id.answer_personal, R.id.answer_class));
        finger.readablePicture("flow_14_drawn");
        finger.scrollTo(R.id.answers);
        finger.readablePicture("flow_15_answers");
    }

    private String answer(int model, int id) {
        TextView text = finger.find(model).findViewById(id);
        return text.isShown() ? text.getText().toString() : "";
    }

    /** The owner sees the numbers that the coordinator has. */
    private void seeCosts(List<JsonObject> told) throws Exception {
        finger.go(R.string.cost_title);
        await(() -> finger.rows(R.id.task).size() > 0);
        finger.readablePicture("flow_16_cost");
        ListView list = (ListView) finger.screen();
        for (int position = 0; position < 2; position++) {
            list.setSelection(1 + position);
            finger.settle();
            List<String> said = Finger.texts(list.getChildAt(1 + position - list.getFirstVisiblePosition()));
            JsonObject row = told.get(1 - position);
            assertTrue(said.toString(), said.containsAll(Costs.words(row)));
            assertEquals("Round " + (2 - position), said.get(0));
        }
        finger.readablePicture("flow_17_cost_of_both");
        finger.close();
    }
}
