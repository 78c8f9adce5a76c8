package org.edgefl.app.screens;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import android.view.View;
import android.widget.TextView;
import java.util.List;
import org.edgefl.agent.Progress.Phase;
import org.edgefl.app.R;
import org.edgefl.model.DeviceModels;
import org.junit.Test;
import org.junit.runner.RunWith;
import org.robolectric.RobolectricTestRunner;
import org.robolectric.annotation.Config;

/** Both models answer the same question. */
@RunWith(RobolectricTestRunner.class)
@Config(application = FakeApp.class, qualifiers = "w411dp-h891dp-xhdpi")
public final class ModelFlowTest {
    private final Hand hand = new Hand();
    private final FakeModel personal = new FakeModel(7, 96_214, 0.98f);
    private final FakeModel shared = new FakeModel(2, 391_841, 0.81f);

    private void open(boolean withModels) {
        hand.phone.federation = Federations.joined(Federations.digits());
        hand.phone.models = withModels ? new DeviceModels(1, personal, shared) : DeviceModels.NONE;
        hand.open(null);
        hand.go(Destination.MODEL);
    }

    private String text(int card, int id) {
        View view = hand.find(card);
        TextView found = view.findViewById(id);
        return found.isShown() ? found.getText().toString() : "";
    }

    @Test
    public void aDrawingIsAnsweredByBothModels() {
        open(true);
        assertEquals("96,214 parameters\n385 kB", text(R.id.answer_personal, R.id.answer_size));
        assertEquals("2.13 ms", text(R.id.answer_shared, R.id.answer_latency));
        assertEquals("none held out yet", text(R.id.answer_shared, R.id.answer_accuracy));
        assertEquals("No question yet", text(R.id.answer_shared, R.id.answer_class));
        hand.drawSeven();
        assertEquals("Class 7", text(R.id.answer_personal, R.id.answer_class));
        assertEquals("Class 2", text(R.id.answer_shared, R.id.answer_class));
        View first = hand.find(R.id.answer_personal).findViewById(R.id.answer_first);
        assertTrue(first.getContentDescription().toString().matches("Class 7: \\d\\d%"));
        hand.tap(R.id.clear);
        assertEquals("No question yet", text(R.id.answer_personal, R.id.answer_class));
    }

    @Test
    public void modelsThatAreTooLargeAreAProblemAndNoCrash() {
        hand.phone.outOfMemory = true;
        open(true);
        assertEquals("This phone does not have enough memory for that.", hand.text(R.id.problem_text));
    }

    @Test
    public void onlyTheNewestQuestionIsAnswered() {
        open(true);
        View paper = hand.find(R.id.drawing);
        hand.stroke(paper, 0.2f, 0.2f, 0.8f, 0.2f);
        int before = personal.asked;
        // Three lines while the background is busy: only the last drawing is worth an answer.
        hand.phone.holdBack = true;
        hand.stroke(paper, 0.2f, 0.4f, 0.8f, 0.4f);
        hand.stroke(paper, 0.2f, 0.6f, 0.8f, 0.6f);
        hand.stroke(paper, 0.2f, 0.8f, 0.8f, 0.8f);
        hand.phone.holdBack = false;
        hand.settle();
        assertEquals(before + 1, personal.asked);
        assertEquals("Class 7", text(R.id.answer_personal, R.id.answer_class));
    }

    @Test
    public void ownSamplesAreAQuestionToo() {
        hand.phone.samples.add(Federations.digits(), 4, "image", new byte[784]);
        open(true);
        hand.tap(R.id.question_own);
        assertEquals("Your sample’s label is class 4.", hand.text(R.id.question_sample));
        assertEquals("Class 7", text(R.id.answer_personal, R.id.answer_class));
        hand.tap(R.id.question_own);
        assertEquals("the first again", "Your sample’s label is class 4.", hand.text(R.id.question_sample));
        hand.surviveProcessDeath();
        assertEquals("Your sample’s label is class 4.", hand.text(R.id.question_sample));
    }

    @Test
    public void modelsAreLoadedWhenATaskHasMadeThemAndClosedWithTheScreen() {
        open(false);
        assertFalse(text(R.id.answer_personal, R.id.answer_missing).isEmpty());
        hand.drawSeven();
        hand.phone.models = new DeviceModels(1, personal, shared);
        hand.phone.history = List.of(Federations.task(1, "accepted", "", null));
        hand.phone.be(Phase.ASKING, 0, 0, 0, Double.NaN, "");
        hand.settle();
        assertEquals("Class 7", text(R.id.answer_personal, R.id.answer_class));
        hand.controller.pause().stop().destroy();
        hand.settle();
        assertTrue(personal.closed && shared.closed);
    }
}
