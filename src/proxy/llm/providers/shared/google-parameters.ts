/**
 * Parameters that clients of other vendors send and that the servers of Google refuse, as they refuse every parameter
 * that they do not know: the clients of the Messages API ask for `?beta=true`.
 */
export const REFUSED_BY_GOOGLE: RegExp = /^beta(?:=|$)/;
