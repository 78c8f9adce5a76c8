package org.edgefl.app.screens;

import java.util.function.Function;
import org.edgefl.app.R;

/** The five screens, in the order of the bar. */
enum Destination {
    FEDERATION(R.string.federation_title, R.drawable.screen_federation, FederationScreen::new),
    DATA(R.string.data_title, R.drawable.screen_data, DataScreen::new),
    TRAIN(R.string.train_title, R.drawable.screen_train, TrainScreen::new),
    MODEL(R.string.model_title, R.drawable.screen_model, ModelScreen::new),
    COST(R.string.cost_title, R.drawable.screen_cost, CostScreen::new);

    /** Request codes of results are this times the screen's number, plus the screen's own. */
    static final int REQUESTS = 16;

    final int title;
    final int icon;
    final Function<MainActivity, Screen> maker;

    Destination(int title, int icon, Function<MainActivity, Screen> maker) {
        this.title = title;
        this.icon = icon;
        this.maker = maker;
    }

    /** Return the request code of a screen's own one. */
    int request(int own) {
        return ordinal() * REQUESTS + own;
    }
}
