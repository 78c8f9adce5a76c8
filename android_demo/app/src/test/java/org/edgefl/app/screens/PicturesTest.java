package org.edgefl.app.screens;

import static org.junit.Assert.assertTrue;

import android.graphics.Bitmap;
import java.util.HashSet;
import java.util.Set;
import org.edgefl.agent.Progress.Phase;
import org.edgefl.app.R;
import org.edgefl.model.DeviceModels;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.annotation.Config;

/**
 * Every screen, drawn at phone size into target/pictures, to be looked at; what a program can see, {@link Readable}
 * checks.
 */
@RunWith(RobolectricTestRunner.class)
@Config(application = FakeApp.class, qualifiers = "w411dp-h891dp-xhdpi")
public final class PicturesTest {
    private final Hand hand = new Hand();

    private void everyScreen(String look) {
        hand.phone.offered = Federations.invitation();
        hand.open(Federations.LINK);
        picture("invitation_" + look);
        hand.tap(R.id.join);
        hand.phone.measures();
        picture("joining_" + look);
        hand.phone.joined();
        hand.phone.history = Federations.history();
        hand.phone.models = new DeviceModels(1, new FakeModel(7, 96_214, 0.98f), new FakeModel(7, 391_841, 0.81f));
        picture("federation_" + look);
        hand.go(Destination.DATA);
        addSamples();
        picture("data_" + look);
        hand.go(Destination.TRAIN);
        hand.phone.be(Phase.TRAINING, 3, 12, 40, 25.4, "");
        picture("train_" + look);
        hand.go(Destination.MODEL);
        hand.drawSeven();
        hand.screen().scrollTo(0, 0);
        picture("model_" + look);
        hand.go(Destination.COST);
        picture("cost_" + look);
    }

    private void addSamples() {
        hand.drawSeven();
        DrawingPad pad = hand.find(R.id.pad);
        for (int label : new int[] {7, 7, 1, 4, 7, 1, 0, 9}) {
            hand.phone.samples.addPicture(Federations.digits(), label, "drawn", pad.pixels(), pad.side(), pad.side());
        }
        hand.chooseClass(7);
        hand.screen().scrollTo(0, 0);
        hand.go(Destination.DATA);
    }

    private void picture(String name) {
        hand.settle();
        Readable.check(hand, name);
        Bitmap picture = hand.picture(name);
        Set<Integer> colours = new HashSet<>();
        for (int y = 0; y < picture.getHeight(); y += 5) {
            for (int x = 0; x < picture.getWidth(); x += 5) {
                colours.add(picture.getPixel(x, y));
            }
        }
        assertTrue(name + " shows nothing", colours.size() > 20);
        picture.recycle();
    }

    @Test
    public void light() {
        everyScreen("light");
    }

    @Test
    public void beforeAnything() {
        hand.open(null);
        picture("welcome");
        hand.go(Destination.DATA);
        picture("data_unjoined");
        hand.go(Destination.COST);
        picture("cost_empty");
        hand.phone.federation = Federations.joined(Federations.rows());
        hand.go(Destination.TRAIN);
        picture("train_without_samples");
        hand.go(Destination.DATA);
        picture("data_rows");
        hand.go(Destination.MODEL);
        picture("model_rows");
        hand.rotate();
        hand.go(Destination.TRAIN);
        picture("train_landscape");
        hand.phone.federation = null;
        hand.phone.engineProblem = "This APK was built without the training engine.";
        hand.go(Destination.FEDERATION);
        picture("engine_missing");
        hand.tap(R.id.open_page);
        picture("engine_missing_no_link");
    }

    @Test
    public void dark() {
        RuntimeEnvironment.setQualifiers("+night");
        everyScreen("dark");
    }

    @Test
    public void largeText() {
        RuntimeEnvironment.setFontScale(2);
        everyScreen("large");
    }

    @Test
    public void rightToLeft() {
        RuntimeEnvironment.setQualifiers("+ar-ldrtl");
        everyScreen("rtl");
    }
}
