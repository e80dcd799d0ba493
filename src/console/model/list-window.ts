/** Computes which rows of a long list are drawn: those in sight and a few around them. */

export interface ListWindow {
  readonly first: number;
  /** Exclusive. */
  readonly end: number;
}

/** How many rows are drawn above and below those in sight, so that fast scrolling shows no gaps. */
const OVERSCAN = 6;

export function windowOf(
  count: number,
  { scrollTop, height, rowHeight }: { readonly scrollTop: number; readonly height: number; readonly rowHeight: number },
): ListWindow {
  const first = Math.max(0, Math.floor(scrollTop / rowHeight) - OVERSCAN);
  const end = Math.min(count, Math.ceil((scrollTop + height) / rowHeight) + OVERSCAN);
  return { first: Math.min(first, count), end: Math.max(end, Math.min(first, count)) };
}

/** Returns the scroll position that brings a row into sight; the same one when it is in sight already. */
export function scrollToRow(
  row: number,
  { scrollTop, height, rowHeight }: { readonly scrollTop: number; readonly height: number; readonly rowHeight: number },
): number {
  const top = row * rowHeight;
  if (top < scrollTop) return top;
  return top + rowHeight > scrollTop + height ? top + rowHeight - height : scrollTop;
}
