/** What both ends of the wire agree on beyond the protocol itself. */

/** Key of the node metadata that names the Gateway as `namespace~name`. */
export const GATEWAY_METADATA = "gateway";

/** The first state travels as one message per type; tens of thousands of routes must fit into one. */
export const MAX_MESSAGE_BYTES: number = 256 * 1024 * 1024;
