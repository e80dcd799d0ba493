/**
 * Handles the "error" event of a socket or stream, which would otherwise end the process. Use it only where the failure
 * is visible in another way, because "close" follows, or where nothing is expected of the stream any more. Every other
 * error must be reported.
 */
export function ignore(): void {}
