package org.edgefl.app;

import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;
import static org.robolectric.Shadows.shadowOf;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.edgefl.agent.TaskRecord;
import org.edgefl.app.phone.Coordinator;
import org.edgefl.app.phone.Members;
import org.edgefl.app.phone.TrainingService;
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
        if (coordinator != null) {
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
        int steps = Integer.parseInt(BodyReader.read(left.taskFile("checkpoint.safetensors")).about().get("steps"));
        assertTrue(steps > 0);
        left.inherit();
        comeBackAndTrain(left, steps);
        List<JsonObject> told = seenByTheCoordinator();
        System.out.println(told.get(0).toJson());
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

    private void comeBackAndTrain(LeftBehind left, int steps) throws Exception {
        Phones.battery(false, 4000, 30);
        Phones.current(-900_000);
        Phones.memory(4_000_000_000L, 2_000_000_000L);
        List<Integer> seen = new ArrayList<>();
        Members.phone().addListener(() -> seen.add(Members.phone().activity().step()));
        ServiceController<TrainingService> service = Members.bringServiceBack();
        finger.comeBack(Pairing.parse(coordinator.pairingUri(), false).toAppUri(), left.read("activity"));
        await(() -> finger.text(R.id.status_steps).matches("Step \\d+ of \\d+"));
        finger.readablePicture("flow_10_goes_on");
        int first = seen.stream().filter(step -> step > 0).findFirst().get();
        assertTrue("it began with step " + first + ", and the checkpoint is of " + steps, first > steps);
        finger.go(R.string.data_title);
        assertArrayEquals("the unfinished drawing", left.read("drawing"), finger.drawing());
        finger.go(R.string.train_title);
        await(() -> shadowOf(service.get()).isStoppedBySelf());
        finger.settle();
        finger.readablePicture("flow_11_trained");
    }

    private List<JsonObject> seenByTheCoordinator() throws IOException, InterruptedException {
        List<TaskRecord> tasks = Members.phone().history();
        System.out.println(tasks);
        System.out.println(coordinator.ask("rounds", "--json").toJson());
        System.out.println(coordinator.ask("devices", "--json").toJson());
        return coordinator.ask("telemetry", "--format", "json").objects("rows");
    }
}
