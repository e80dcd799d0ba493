/** The whole content of one step of a traced request, and what changed since the snapshot before it. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { compareStates, snapshotOf, type StateChange } from "../model/compare-states.ts";
import { decodeBody } from "../model/decode-body.ts";
import { formatMicroseconds } from "../model/format.ts";
import type { WaterfallRow } from "../model/waterfall.ts";
import { Table, type Column } from "../parts/table.tsx";

export function StepDetail({
  row,
  rows,
}: {
  readonly row: WaterfallRow;
  readonly rows: readonly WaterfallRow[];
}): JSX.Element {
  const { message, scope } = row.event;
  const changes = useMemo(() => changesOf(row, rows), [row, rows]);
  const body = message.type === "bodySnapshot" ? decodeBody(message["body"]) : undefined;
  return (
    <article class="step-detail" aria-live="polite">
      <h3>
        {row.title} <span class="muted">{row.detail}</span>
      </h3>
      <p class="muted">
        {row.isInstant
          ? `at ${formatMicroseconds(row.startUs)}`
          : `from ${formatMicroseconds(row.startUs)}, ${formatMicroseconds(row.durationUs)} long`}
        {scope.length > 0 && `, in ${scope.join(" › ")}`}
      </p>
      {changes !== undefined && <Changes changes={changes} />}
      {body === undefined ? (
        <pre tabIndex={0} aria-label="Content of the step">
          {JSON.stringify(message, undefined, 2)}
        </pre>
      ) : (
        <pre tabIndex={0} aria-label="Body">
          {body}
        </pre>
      )}
    </article>
  );
}

/** Returns what changed since the snapshot before; undefined where there is none to compare with. */
function changesOf(row: WaterfallRow, rows: readonly WaterfallRow[]): StateChange[] | undefined {
  const after = snapshotOf(row.event.message);
  if (after === undefined) return undefined;
  const before = rows.slice(0, rows.indexOf(row)).findLast(({ event }) => snapshotOf(event.message) !== undefined);
  return before === undefined ? undefined : compareStates(snapshotOf(before.event.message), after);
}

const COLUMNS: readonly Column<StateChange>[] = [
  { name: "Variable", cell: ({ path }) => <code>{path}</code> },
  {
    name: "Before",
    cell: ({ before }) => (before === undefined ? <span class="muted">none</span> : <del>{before}</del>),
  },
  { name: "After", cell: ({ after }) => (after === undefined ? <span class="muted">none</span> : <ins>{after}</ins>) },
];

function Changes({ changes }: { readonly changes: readonly StateChange[] }): JSX.Element {
  if (changes.length === 0) return <p class="muted">Nothing changed since the snapshot before.</p>;
  return (
    <section class="changes">
      <h4>Changed since the snapshot before</h4>
      <Table caption="Changes" columns={COLUMNS} rows={changes} keyOf={({ path }) => path} />
    </section>
  );
}
