/** One figure of the overview with its name. */
import type { ComponentChildren, JSX } from "preact";

export function Tile(props: {
  readonly name: string;
  readonly value: string;
  readonly note?: string;
  readonly children?: ComponentChildren;
}): JSX.Element {
  const { name, value, note, children } = props;
  return (
    <div class="tile">
      <dt>{name}</dt>
      <dd>
        <span class="figure">{value}</span>
        {note !== undefined && <span class="muted note">{note}</span>}
        {children}
      </dd>
    </div>
  );
}
