/** The output of a command. Tests pass an implementation of their own. */

export interface Terminal {
  /** True when the output is a terminal and colours are not switched off. */
  readonly isColoured: boolean;
  out(text: string): void;
  err(text: string): void;
}
