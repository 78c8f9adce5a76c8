/**
 * The life of a device: its home folder, its owner's limits, and the loop of polling, training and sending.
 *
 * <p>{@link org.edgefl.agent.Agent} writes a home folder, whose lock it has. Screens read it without the lock:
 * {@link org.edgefl.agent.JoinedFederation}, {@link org.edgefl.agent.TaskHistory} and
 * {@link org.edgefl.model.DeviceModels}.
 */
package org.edgefl.agent;
