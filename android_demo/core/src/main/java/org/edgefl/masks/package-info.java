/** Which part of a model a device has: model graphs, masks, their digests and shapes (docs/wire.md). */
package org.edgefl.masks;
