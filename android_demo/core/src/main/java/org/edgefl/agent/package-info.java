/** The life of a device: its home folder, its owner's limits, and the loop of polling, training and sending. */
package org.edgefl.agent;
