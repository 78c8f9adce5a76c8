package org.edgefl.app.screens;

import android.content.Context;
import android.util.AttributeSet;
import android.view.View;
import android.widget.LinearLayout;
import android.widget.TextView;
import java.util.stream.IntStream;
import org.edgefl.app.R;
import org.edgefl.model.Predictor.Prediction;

/** One model's answer: class, the three most probable ones, size, latency, accuracy. */
public final class AnswerCard extends LinearLayout {
    private static final int[] ROWS = {R.id.answer_first, R.id.answer_second, R.id.answer_third};

    /** A card in a layout. */
    public AnswerCard(Context context, AttributeSet attributes) {
        super(context, attributes);
        inflate(context, R.layout.part_answer, this);
    }

    private TextView text(int id) {
        return findViewById(id);
    }

    void begin(int title, int missing) {
        text(R.id.answer_title).setText(title);
        text(R.id.answer_missing).setText(missing);
    }

    /** Show what a model is like; null if it is not there. */
    void show(ModelFacts facts) {
        text(R.id.answer_missing).setVisibility(facts == null ? VISIBLE : GONE);
        findViewById(R.id.answer_body).setVisibility(facts == null ? GONE : VISIBLE);
        if (facts == null) {
            return;
        }
        Context context = getContext();
        int quantity = (int) Math.min(facts.parameters(), Integer.MAX_VALUE);
        text(R.id.answer_size).setText(context.getResources().getQuantityString(R.plurals.model_size, quantity,
            Units.number(context, facts.parameters()), Units.bytes(context, facts.bytes())));
        text(R.id.answer_latency).setText(Units.milliseconds(context, facts.medianSeconds()));
        text(R.id.answer_accuracy).setText(facts.accuracy() == null ? context.getString(R.string.no_accuracy)
            : context.getString(R.string.accuracy_of, Units.percent(context, facts.accuracy(), 1),
                Units.number(context, facts.heldOut())));
    }

    /** Show an answer; null before there is a question. */
    void show(Prediction answer) {
        TextView best = text(R.id.answer_class);
        best.setText(answer == null ? getContext().getString(R.string.no_answer)
            : getContext().getString(R.string.class_number, answer.best()));
        int[] order = answer == null ? new int[0] : order(answer.probabilities());
        for (int i = 0; i < ROWS.length; i++) {
            View row = findViewById(ROWS[i]);
            row.setVisibility(i < order.length ? VISIBLE : GONE);
            if (i < order.length) {
                float share = answer.probabilities()[order[i]];
                String percent = Units.percent(getContext(), share, 0);
                Bar bar = new Bar(row);
                bar.set(getContext().getString(R.string.class_number, order[i]), percent, share);
                bar.describe(getContext().getString(R.string.class_probability, order[i], percent));
            }
        }
    }

    /** Return the classes, the most probable first. */
    private static int[] order(float[] probabilities) {
        return IntStream.range(0, probabilities.length).boxed()
            .sorted((one, other) -> Float.compare(probabilities[other], probabilities[one]))
            .mapToInt(Integer::intValue).toArray();
    }
}
