/**
 * Hears the "error" of a socket or stream, without which it would end the process. Only for one whose failure shows in another
 * way that somebody does look at: "close" follows, or nothing is expected of it any more. Anything else is to be told.
 */
export function ignore(): void {}
