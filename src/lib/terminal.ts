/** Where commands print to. Tests pass one of their own. */

export interface Terminal {
  /** Whether text may carry colours: a terminal reads it, and nobody has asked for none. */
  readonly isColoured: boolean;
  out(text: string): void;
  err(text: string): void;
}
