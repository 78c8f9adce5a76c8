/** How a device reaches its coordinator: pairing URIs, pinned certificates, requests, retries. Knows no training. */
package org.edgefl.http;
