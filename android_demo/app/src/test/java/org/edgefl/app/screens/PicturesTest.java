package org.edgefl.app.screens;

import static org.junit.Assert.assertTrue;

import android.graphics.Bitmap;
import java.util.HashSet;
import java.util.Set;
import org.edgefl.agent.Progress.Phase;
import org.edgefl.app.R;
import org.edgefl.app.phone.ModelPair;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.RuntimeEnvironment;
import org.robolectric.annotation.Config;

/** Every screen, drawn at phone size into target/pictures, to be looked at. */
@RunWith(RobolectricTestRunner.class)
@Config(application = FakeApp.class, qualifiers = "w411dp-h891dp-xhdpi")
public final class PicturesTest {
    private final Hand hand = new Hand();

    private void everyScreen(String look) {
        hand.phone.offered = Federations.invitation();
        hand.open(Federations.LINK);
        picture("invitation_" + look);
        hand.phone.join(Federations.invitation());
        picture("joining_" + look);
        hand.phone.joined();
        hand.phone.history = Federations.history();
        hand.phone.models = new ModelPair(new FakeModel(7, 61_706), new FakeModel(7, 391_841));
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
        for (int label : new int[] {7, 7, 1, 4, 7, 1}) {
            hand.tap(label(label));
            hand.drawSeven();
            hand.tap(R.id.add);
        }
        hand.drawSeven();
        hand.screen().scrollTo(0, 0);
    }

    private android.view.View label(int label) {
        LabelPicker picker = hand.find(R.id.label_picker);
        return ((android.view.ViewGroup) picker.getChildAt(0)).getChildAt(label);
    }

    private void picture(String name) {
        hand.settle();
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

    @Test
    public void wholeLength() {
        RuntimeEnvironment.setQualifiers("+h2600dp");
        everyScreen("long");
    }
}
