package org.edgefl.app.screens;

import android.os.Bundle;
import android.widget.LinearLayout;
import java.util.List;
import org.edgefl.agent.JoinedFederation;
import org.edgefl.agent.Progress.Phase;
import org.edgefl.agent.TaskRecord;
import org.edgefl.app.R;
import org.edgefl.app.samples.PictureSamples;
import org.edgefl.app.samples.SampleStore.Sample;
import org.edgefl.data.InvalidData;
import org.edgefl.data.LocalData;
import org.edgefl.model.DeviceModels;
import org.edgefl.model.Predictor.Prediction;
import org.edgefl.values.SampleSpec;

/** Asks the personal and the shared model the same question, and shows their answers side by side. */
final class ModelScreen extends Screen {
    private static final String OWN = "own";

    /** What two models say. */
    private record Answers(Prediction personal, Prediction shared) {}

    /** What two models are like, and which task they are from. */
    private record Facts(String task, ModelFacts personal, ModelFacts shared) {}

    private final Background.Latest loading = background.new Latest();
    private final Background.Latest asking = background.new Latest();
    private final ProblemCard problem = find(R.id.problem);
    private final DrawingPad pad = find(R.id.pad);
    private final AnswerCard personal = find(R.id.answer_personal);
    private final AnswerCard shared = find(R.id.answer_shared);
    /** Touched by the background thread alone: models are not for several threads. */
    private DeviceModels models;
    private String modelsOf;
    private SampleSpec spec;
    private Phase phase;
    /** Which of the owner's samples is asked about, counted from the newest; -1 for the drawing. */
    private int own = -1;

    ModelScreen(MainActivity activity) {
        super(activity, R.layout.screen_model);
        personal.begin(R.string.answer_personal, R.string.personal_missing);
        shared.begin(R.string.answer_shared, R.string.shared_missing);
        if (!LargeText.isOn(activity.getResources())) {
            LargeText.arrange(find(R.id.answers), LinearLayout.HORIZONTAL);
            ((LinearLayout.LayoutParams) personal.getLayoutParams())
                .setMarginEnd(activity.getResources().getDimensionPixelSize(R.dimen.gap_small));
        }
        showFacts(new Facts("", null, null));
        onClick(R.id.model_join, () -> activity.open(Destination.FEDERATION));
        onClick(R.id.question_own, this::nextOwn);
        pad.onChanged(this::drawn);
    }

    @Override
    void opened() {
        phase = null;
        refresh();
    }

    @Override
    void refresh() {
        JoinedFederation joined = phone.federation();
        spec = joined == null ? null : joined.sample();
        boolean pictures = spec != null && PictureSamples.arePictures(spec);
        show(R.id.model_unjoined, spec == null);
        show(R.id.question_card, spec != null);
        show(R.id.answers, spec != null);
        show(R.id.model_how, spec != null);
        show(R.id.pad, pictures);
        text(R.id.question_how).setText(pictures ? R.string.question_draw : R.string.question_rows);
        if (pictures) {
            pad.setSpec(spec);
        }
        // Models change when a task ends; a step of training is no reason to load them.
        if (phone.activity().phase() != phase) {
            phase = phone.activity().phase();
            load();
        }
    }

    private void load() {
        SampleSpec form = spec;
        if (form == null) {
            return;
        }
        loading.run(() -> facts(form), found -> {
            if (found != null) {
                showFacts(found);
                ask();
            }
        }, problem::show);
    }

    /** Load the models of the newest task, unless they are loaded; null if nothing has changed. */
    private Facts facts(SampleSpec form) {
        List<TaskRecord> history = phone.history();
        String newest = history.isEmpty() ? "" : history.get(0).taskId() + history.get(0).endedMillis();
        if (newest.equals(modelsOf)) {
            return null;
        }
        closeModels();
        models = phone.models();
        modelsOf = newest;
        LocalData held = held(form);
        return new Facts(newest, ModelFacts.of(models.personal(), held), ModelFacts.of(models.shared(), held));
    }

    private LocalData held(SampleSpec form) {
        try {
            return phone.samples().data(form);
        } catch (InvalidData none) {
            return null;
        }
    }

    private void closeModels() {
        if (models != null) {
            models.close();
            models = null;
        }
    }

    private void showFacts(Facts facts) {
        personal.show(facts.personal());
        shared.show(facts.shared());
        showAnswers(new Answers(null, null));
    }

    private void showAnswers(Answers answers) {
        personal.show(answers.personal());
        shared.show(answers.shared());
    }

    private void drawn() {
        if (!pad.isEmpty()) {
            own = -1;
        }
        ask();
    }

    private void nextOwn() {
        own++;
        pad.clear();
        ask();
    }

    /** Ask both models about the drawing, or about one of the owner's samples. */
    private void ask() {
        if (spec == null || (own < 0 && pad.isEmpty())) {
            asking.cancel();
            show(R.id.question_sample, false);
            showAnswers(new Answers(null, null));
            return;
        }
        if (own < 0) {
            show(R.id.question_sample, false);
            ask(pad.raw());
            return;
        }
        int wanted = own;
        asking.run(() -> phone.samples().page(-1, wanted, 1), this::askAbout, problem::show);
    }

    private void askAbout(List<Sample> found) {
        if (found.isEmpty() && own > 0) {
            own = 0;
            ask();
            return;
        }
        show(R.id.question_sample, true);
        if (found.isEmpty()) {
            own = -1;
            text(R.id.question_sample).setText(R.string.question_none);
            return;
        }
        text(R.id.question_sample).setText(activity.getString(R.string.question_label, found.get(0).label()));
        ask(found.get(0).raw());
    }

    private void ask(byte[] raw) {
        asking.run(() -> models == null ? new Answers(null, null)
            : new Answers(models.personal() == null ? null : models.personal().predict(raw),
                models.shared() == null ? null : models.shared().predict(raw)), this::showAnswers, problem::show);
    }

    @Override
    void save(Bundle state) {
        super.save(state);
        state.putInt(OWN, own);
    }

    @Override
    void restore(Bundle state) {
        super.restore(state);
        own = state.getInt(OWN, -1);
    }

    @Override
    void close() {
        super.close();
        phone.background(this::closeModels);
    }
}
