/** A small line chart without axes; the figure beside it says the newest value. */
import type { JSX } from "preact";
import { linePoints } from "../model/rates.ts";

const WIDTH = 160;
const HEIGHT = 32;

export function Sparkline({
  values,
  label,
}: {
  readonly values: readonly number[];
  readonly label: string;
}): JSX.Element {
  return (
    <svg
      class="sparkline"
      viewBox={`0 -2 ${WIDTH} ${HEIGHT + 4}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      {values.length > 1 && <polyline points={linePoints(values, WIDTH, HEIGHT)} />}
    </svg>
  );
}
