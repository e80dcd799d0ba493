/** Settings that both ends of a discovery stream agree on beyond the xDS protocol. */

/** Key in the node metadata that names the Gateway as `namespace~name`. */
export const GATEWAY_METADATA = "gateway";

/**
 * Maximum size of a message. The first state is sent as one message per type, and tens of thousands of routes must fit
 * in one.
 */
export const MAX_MESSAGE_BYTES: number = 256 * 1024 * 1024;
