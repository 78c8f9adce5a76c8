package org.edgefl.app.screens;

import android.content.Context;
import android.os.Bundle;
import android.os.Parcelable;
import android.util.AttributeSet;
import android.view.View;
import android.widget.LinearLayout;
import android.widget.TextView;
import org.edgefl.app.R;

/** A card with a problem and its fix, hidden while there is none. It is read aloud when it appears. */
public final class ProblemCard extends LinearLayout {
    private static final String VIEW = "view";
    private static final String PROBLEM = "problem";
    private static final String FIX = "fix";

    private Problem shown;

    /** A card in a layout. */
    public ProblemCard(Context context, AttributeSet attributes) {
        super(context, attributes);
        inflate(context, R.layout.part_problem, this);
    }

    void show(Problem problem) {
        shown = problem;
        setVisibility(VISIBLE);
        ((TextView) findViewById(R.id.problem_text)).setText(problem.problem());
        TextView fix = findViewById(R.id.problem_fix);
        fix.setText(problem.fix());
        fix.setVisibility(problem.fix().isEmpty() ? View.GONE : View.VISIBLE);
    }

    void hide() {
        shown = null;
        setVisibility(GONE);
    }

    @Override
    protected Parcelable onSaveInstanceState() {
        Bundle state = new Bundle();
        state.putParcelable(VIEW, super.onSaveInstanceState());
        if (shown != null) {
            state.putString(PROBLEM, shown.problem());
            state.putString(FIX, shown.fix());
        }
        return state;
    }

    @Override
    @SuppressWarnings("deprecation") // The typed variant needs API 33.
    protected void onRestoreInstanceState(Parcelable saved) {
        Bundle state = (Bundle) saved;
        super.onRestoreInstanceState(state.getParcelable(VIEW));
        if (state.containsKey(PROBLEM)) {
            show(new Problem(state.getString(PROBLEM), state.getString(FIX)));
        }
    }
}
