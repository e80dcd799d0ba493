/** Shows how backends are: the health, latency and ejections of each endpoint, the worst first. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ConsoleFeed } from "../client/console-state.ts";
import type { BackendList, EndpointData } from "../data.ts";
import { formatAge, formatCount, formatMicroseconds, formatPercent } from "../model/format.ts";
import { Table, type Column } from "../parts/table.tsx";

type Row = EndpointData & { readonly now: string };

const COLUMNS: readonly Column<Row>[] = [
  { name: "Backend", cell: ({ backend }) => backend },
  { name: "Endpoint", cell: ({ endpoint }) => (endpoint === "" ? "provider" : endpoint) },
  { name: "State", cell: (row) => <EndpointState row={row} /> },
  { name: "Health", isNumber: true, cell: ({ health }) => <HealthBar health={health} /> },
  {
    name: "Latency",
    isNumber: true,
    cell: ({ latencySeconds, totalRequests }) =>
      totalRequests === 0 ? "–" : formatMicroseconds(latencySeconds * 1_000_000),
  },
  { name: "In flight", isNumber: true, cell: ({ pendingRequests }) => formatCount(pendingRequests) },
  { name: "Requests", isNumber: true, cell: ({ totalRequests }) => formatCount(totalRequests) },
  { name: "Ejected", isNumber: true, cell: ({ timesEjected }) => `${formatCount(timesEjected)}×` },
];

function EndpointState({ row: { ejectedUntil, failuresInARow, now } }: { readonly row: Row }): JSX.Element {
  if (ejectedUntil !== null)
    return <span class="badge bad">out for {formatAge(Date.parse(ejectedUntil) - Date.parse(now))}</span>;
  if (failuresInARow > 0) return <span class="badge warn">{formatCount(failuresInARow)} failures in a row</span>;
  return <span class="badge good">in rotation</span>;
}

function HealthBar({ health }: { readonly health: number }): JSX.Element {
  const tone = health >= 0.9 ? "good" : health >= 0.5 ? "warn" : "bad";
  return (
    <span class="health">
      <svg class={`bar ${tone}`} viewBox="0 0 40 6" aria-hidden="true">
        <rect class="track" width="40" height="6" rx="3" />
        <rect class="fill" width={40 * Math.max(0, Math.min(1, health))} height="6" rx="3" />
      </svg>
      {formatPercent(health)}
    </span>
  );
}

export function BackendsView(props: {
  readonly backends: BackendList;
  readonly now: string;
  readonly ask: ConsoleFeed["ask"];
}): JSX.Element {
  const { backends, now, ask } = props;
  const [filter, setFilter] = useState("");
  // The overview shows all endpoints again.
  useEffect(() => () => ask({ backends: "" }), [ask]);
  return (
    <>
      <div class="row">
        <label for="backend-filter">Filter</label>
        <input
          id="backend-filter"
          type="search"
          placeholder="backend or endpoint"
          value={filter}
          onInput={({ currentTarget }) => {
            setFilter(currentTarget.value);
            ask({ backends: currentTarget.value });
          }}
        />
        <span class="muted" role="status">
          {backends.endpoints.length < backends.total
            ? `${formatCount(backends.endpoints.length)} of ${formatCount(backends.total)} endpoints`
            : `${formatCount(backends.total)} endpoints`}
        </span>
      </div>
      {backends.found === 0 ? (
        <p class="empty">
          {backends.total > 0
            ? "No endpoint has this in its name."
            : "No endpoint is known. Endpoints appear when a loaded route leads to a Service or a GwBackend."}
        </p>
      ) : (
        <Table
          caption="Endpoints"
          columns={COLUMNS}
          rows={backends.endpoints.map((endpoint): Row => ({ ...endpoint, now }))}
          keyOf={({ backend, endpoint }) => `${backend} ${endpoint}`}
        />
      )}
    </>
  );
}
