/** Answers whether the data plane is well, and what it listens on. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { AdminClient } from "../client/admin-client.ts";
import type { BindData, ConfigurationContent, ConsoleData, ListenerData } from "../data.ts";
import { formatAge, formatBytes, formatCount, formatPercent, formatRate } from "../model/format.ts";
import { assessHealth } from "../model/health.ts";
import { printPlace } from "../model/place.ts";
import { ratesOf, type TrafficSample } from "../model/rates.ts";
import { Sparkline } from "../parts/sparkline.tsx";
import { Table, type Column } from "../parts/table.tsx";
import { Tile } from "../parts/tile.tsx";
import { ConnectionSettings } from "./connection-settings.tsx";

export function OverviewView(props: {
  readonly client: AdminClient;
  readonly data: ConsoleData;
  readonly content: ConfigurationContent;
  readonly samples: readonly TrafficSample[];
}): JSX.Element {
  const { client, data, content, samples } = props;
  return (
    <>
      <Findings data={data} content={content} />
      <Tiles data={data} content={content} samples={samples} />
      <Listeners client={client} binds={content.binds} />
      <ProcessFacts data={data} />
    </>
  );
}

function Findings({
  data,
  content,
}: {
  readonly data: ConsoleData;
  readonly content: ConfigurationContent;
}): JSX.Element {
  const { findings } = assessHealth(data, content);
  if (findings.length === 0)
    return <p class="notice good">Everything that is loaded is served, and every endpoint is in rotation.</p>;
  return (
    <section class="notice warn" aria-labelledby="findings">
      <h3 id="findings">What needs attention</h3>
      <ul>
        {findings.map(({ text, next }) => (
          <li key={text}>
            {text} <span class="muted">{next}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Tiles(props: {
  readonly data: ConsoleData;
  readonly content: ConfigurationContent;
  readonly samples: readonly TrafficSample[];
}): JSX.Element {
  const { data, content, samples } = props;
  const { traffic, backends } = data;
  const rates = ratesOf(samples);
  const last = rates.at(-1);
  const listeners = content.binds.reduce((sum, bind) => sum + bind.listeners.length, 0);
  return (
    <dl class="tiles">
      <Tile
        name="Requests per second"
        value={last === undefined ? "–" : formatRate(last.requestsPerSecond)}
        note={`${formatCount(traffic.requests)} since the start`}
      >
        <Sparkline
          values={rates.map(({ requestsPerSecond }) => requestsPerSecond)}
          label="Requests per second of the last minutes"
        />
      </Tile>
      <Tile
        name="Failed (5xx)"
        value={last === undefined ? "–" : formatPercent(last.failedShare)}
        note={`${formatCount(traffic.failed)} since the start`}
      />
      <Tile name="Listeners" value={formatCount(listeners)} note={portsText(content.binds.length)} />
      <Tile name="Routes" value={formatCount(content.routes.length)} />
      <Tile
        name="Endpoints"
        value={formatCount(backends.total)}
        note={backends.ejected === 0 ? "all in rotation" : `${formatCount(backends.ejected)} out of rotation`}
      />
    </dl>
  );
}

function portsText(count: number): string {
  return count === 1 ? "on one port" : `on ${formatCount(count)} ports`;
}

interface ListenerRow {
  readonly bind: BindData;
  readonly listener: ListenerData;
}

const LISTENER_COLUMNS: readonly Column<ListenerRow>[] = [
  { name: "Gateway", cell: ({ bind }) => bind.gateway },
  {
    name: "Listener",
    cell: ({ listener: { name, listenerSet } }) =>
      listenerSet === null ? name : `${name} (ListenerSet ${listenerSet})`,
  },
  { name: "Host", cell: ({ listener: { hostname } }) => (hostname === "" ? "any" : hostname) },
  { name: "Protocol", cell: ({ listener: { protocol } }) => protocol },
  { name: "Port", isNumber: true, cell: ({ bind }) => <Port bind={bind} /> },
  {
    name: "Routes",
    isNumber: true,
    cell: ({ listener: { key, routes } }) => (
      <a href={printPlace({ view: "routes", listener: key })}>
        {formatCount(routes)}
        <span class="hidden"> routes of {key}</span>
      </a>
    ),
  },
];

function Port({ bind: { port, openPort, isInternal } }: { readonly bind: BindData }): JSX.Element {
  if (isInternal) return <>internal</>;
  if (openPort === null)
    return (
      <>
        {port} <span class="badge bad">closed</span>
      </>
    );
  return <>{openPort === port ? port : `${port} (opened as ${openPort})`}</>;
}

/** A Gateway can have thousands of listeners through ListenerSets; a filter finds the others. */
const SHOWN_LISTENERS = 50;

function Listeners({
  client,
  binds,
}: {
  readonly client: AdminClient;
  readonly binds: readonly BindData[];
}): JSX.Element {
  const [filter, setFilter] = useState("");
  const all = binds.flatMap((bind) => bind.listeners.map((listener): ListenerRow => ({ bind, listener })));
  const wanted = filter.toLowerCase();
  const rows = all.filter(({ bind, listener }) =>
    `${bind.gateway} ${bind.port} ${listener.key} ${listener.hostname}`.toLowerCase().includes(wanted),
  );
  const gateways = [...new Set(rows.slice(0, SHOWN_LISTENERS).map(({ bind }) => bind.gateway))];
  return (
    <section aria-labelledby="listeners">
      <h3 id="listeners">Listeners</h3>
      {all.length === 0 && (
        <p class="empty">
          No listener is loaded. Apply a Gateway of a class that gwproxy serves; <code>gwproxy validate -f</code> says
          what is wrong with manifests.
        </p>
      )}
      {all.length > SHOWN_LISTENERS && (
        <div class="row">
          <label for="listener-filter">Filter</label>
          <input
            id="listener-filter"
            type="search"
            value={filter}
            onInput={({ currentTarget }) => setFilter(currentTarget.value)}
          />
          <span class="muted">
            {formatCount(Math.min(rows.length, SHOWN_LISTENERS))} of {formatCount(rows.length)} shown
          </span>
        </div>
      )}
      {all.length > 0 && (
        <Table
          caption="Listeners"
          columns={LISTENER_COLUMNS}
          rows={rows.slice(0, SHOWN_LISTENERS)}
          keyOf={({ listener }) => listener.key}
        />
      )}
      {gateways.map((gateway) => (
        <ConnectionSettings key={gateway} client={client} gateway={gateway} dependsOn={binds} />
      ))}
    </section>
  );
}

function ProcessFacts({ data }: { readonly data: ConsoleData }): JSX.Element {
  const { process, configuration } = data;
  const now = Date.parse(process.now);
  const source = process.source === "files" ? "files, followed" : "controller";
  const facts: readonly (readonly [string, string])[] = [
    ["Configuration", `${configuration.revision} from ${source}${process.following ? "" : ", not connected"}`],
    [
      "Last change",
      configuration.appliedAt === null ? "none yet" : `${formatAge(now - Date.parse(configuration.appliedAt))} ago`,
    ],
    ["Running for", formatAge(now - Date.parse(process.startedAt))],
    ["Memory", formatBytes(process.residentBytes)],
    [
      "Threads",
      process.threads.map(({ name, heapUsedBytes }) => `${name} (heap ${formatBytes(heapUsedBytes)})`).join(", "),
    ],
    ["Threads replaced", formatCount(process.threadRestarts)],
    ["Node.js", process.node],
  ];
  return (
    <section aria-labelledby="process">
      <h3 id="process">Process</h3>
      <dl class="facts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
