/** Bodies: named tensors as bytes, as docs/wire.md describes them. Knows neither the network nor training. */
package org.edgefl.wire;
