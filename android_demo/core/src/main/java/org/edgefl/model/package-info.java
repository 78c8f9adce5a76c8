/** The models on a device, for predictions: its own, and the shared one as it was downloaded. Knows no network. */
package org.edgefl.model;
