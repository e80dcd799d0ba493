/** Draws a traced request as a waterfall of its steps, and the details of the chosen step below it. */
import type { JSX, TargetedKeyboardEvent } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { formatMicroseconds } from "../model/format.ts";
import type { Severity, TraceEvent } from "../model/trace.ts";
import { layoutWaterfall, type Waterfall, type WaterfallRow } from "../model/waterfall.ts";
import { StepDetail } from "./step-detail.tsx";

const SIGNS: Readonly<Record<Severity, readonly [sign: string, word: string]>> = {
  success: ["✓", "success"],
  info: ["·", "information"],
  warn: ["!", "warning"],
  error: ["×", "error"],
};

export function WaterfallView({ events }: { readonly events: readonly TraceEvent[] }): JSX.Element {
  const waterfall = useMemo(() => layoutWaterfall(events), [events]);
  const [chosen, setChosen] = useState<TraceEvent>();
  const list = useRef<HTMLOListElement>(null);
  const { rows, totalUs } = waterfall;
  const at = Math.max(
    0,
    rows.findIndex(({ event }) => event === chosen),
  );
  const moveBy = (event: TargetedKeyboardEvent<HTMLOListElement>): void => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    const row = rows[at + step];
    if (step === 0 || row === undefined) return;
    event.preventDefault();
    setChosen(row.event);
    list.current?.querySelectorAll("button")[at + step]?.focus();
  };
  const current = rows[at];
  return (
    <section aria-label="Traced request">
      <p class="muted">
        {rows.length} steps in {formatMicroseconds(totalUs)}
      </p>
      <div class="waterfall">
        <Scale waterfall={waterfall} />
        <ol ref={list} onKeyDown={moveBy}>
          {rows.map((row, index) => (
            <li key={index}>
              <Step row={row} isChosen={index === at} onChoose={() => setChosen(row.event)} />
            </li>
          ))}
        </ol>
      </div>
      {current !== undefined && <StepDetail row={current} rows={rows} />}
    </section>
  );
}

/** The lines behind the bars, and their times. */
function Scale({ waterfall: { ticksUs, totalUs } }: { readonly waterfall: Waterfall }): JSX.Element {
  return (
    <div class="scale" aria-hidden="true">
      <svg width="100%" height="100%">
        {ticksUs.map((tick) => {
          const x = `${(tick / totalUs) * 100}%`;
          return (
            <g key={tick}>
              <line x1={x} x2={x} y1="20" y2="100%" />
              <text x={x} y="12" text-anchor="middle">
                {formatMicroseconds(tick)}
              </text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}

function Step(props: {
  readonly row: WaterfallRow;
  readonly isChosen: boolean;
  readonly onChoose: () => void;
}): JSX.Element {
  const { row, isChosen, onChoose } = props;
  const [sign, word] = SIGNS[row.severity];
  const time = row.isInstant
    ? `at ${formatMicroseconds(row.startUs)}`
    : `${formatMicroseconds(row.durationUs)} from ${formatMicroseconds(row.startUs)}`;
  return (
    <button type="button" class={`step ${row.severity}`} aria-pressed={isChosen} onClick={onChoose}>
      <span class="step-name" style={{ paddingInlineStart: `${row.depth * 12}px` }}>
        <span class="sign" aria-hidden="true">
          {sign}
        </span>
        <span class="hidden">{word}: </span>
        <span class="step-title">{row.title}</span>
        <span class="muted step-note"> {row.detail}</span>
        <span class="hidden">, {time}</span>
      </span>
      <svg class="lane" width="100%" height="20" aria-hidden="true">
        {row.isInstant ? (
          <circle class="instant" cx={`${row.left * 100}%`} cy="10" r="3.5" />
        ) : (
          <rect
            class="span"
            x={`${row.left * 100}%`}
            y="5"
            width={`${Math.max(row.width * 100, 0.4)}%`}
            height="10"
            rx="2"
          />
        )}
      </svg>
      <span class="step-time muted" aria-hidden="true">
        {row.isInstant ? "" : formatMicroseconds(row.durationUs)}
      </span>
    </button>
  );
}
