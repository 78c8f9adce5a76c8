/**
 * The models on a device, for predictions: its own, and the shared one as it was downloaded. Knows no network.
 *
 * <p>{@link org.edgefl.model.ModelFolder} keeps them, {@link org.edgefl.model.DeviceModels} reads them without a lock.
 */
package org.edgefl.model;
