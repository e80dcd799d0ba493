/** The frame of the console: state of the data plane, navigation, and the view that the URL names. */
import type { JSX } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { AdminClient } from "./client/admin-client.ts";
import { EMPTY_STATE, startFeed, type ConsoleFeed, type ConsoleState } from "./client/console-state.ts";
import { assessHealth, type HealthState } from "./model/health.ts";
import { parsePlace, printPlace, VIEWS, type Place, type View } from "./model/place.ts";
import { HealthBadge } from "./parts/health-badge.tsx";
import { BackendsView } from "./views/backends.tsx";
import { ModelsView } from "./views/models.tsx";
import { OverviewView } from "./views/overview.tsx";
import { RoutesView } from "./views/routes.tsx";
import { TokenForm } from "./views/token-form.tsx";
import { TraceView } from "./views/trace.tsx";

const TITLES: Readonly<Record<View, string>> = {
  overview: "Overview",
  routes: "Routes",
  backends: "Backends",
  models: "Models",
  trace: "Trace",
};

export function App({ client }: { readonly client: AdminClient }): JSX.Element {
  const [state, setState] = useState<ConsoleState>(EMPTY_STATE);
  const feed = useRef<ConsoleFeed>(undefined);
  const ask = useCallback((query: Parameters<ConsoleFeed["ask"]>[0]) => feed.current?.ask(query), []);
  const place = usePlace();
  useEffect(() => {
    const started = startFeed(client, setState);
    feed.current = started;
    return () => started.stop();
  }, [client]);
  useEffect(() => {
    document.title = `${TITLES[place.view]} · gwproxy`;
  }, [place.view]);

  const { data, content, connection } = state;
  const health = useMemo(() => (data === undefined ? undefined : assessHealth(data, content)), [data, content]);
  const shown: HealthState | "connecting" = connection === "lost" ? "disconnected" : (health?.state ?? "connecting");
  return (
    <>
      <a class="skip" href="#content" onClick={focusContent}>
        Skip to the content
      </a>
      <header>
        <h1>gwproxy</h1>
        <HealthBadge state={shown} />
        {data !== undefined && <span class="muted version">version {data.process.version}</span>}
      </header>
      <Navigation view={place.view} />
      <main id="content" tabIndex={-1}>
        <h2>{TITLES[place.view]}</h2>
        {connection === "token" ? (
          <TokenForm
            wasRefused={client.token !== ""}
            onToken={(token) => {
              client.token = token;
              feed.current?.retry();
            }}
          />
        ) : (
          <>
            {connection === "lost" && (
              <LostNotice problem={state.problem} hasData={data !== undefined} onRetry={() => feed.current?.retry()} />
            )}
            <CurrentView client={client} state={state} place={place} ask={ask} />
          </>
        )}
      </main>
    </>
  );
}

/** The fragment names the view, so the link moves the focus by itself instead of by the fragment. */
function focusContent(event: Event): void {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

function Navigation({ view }: { readonly view: View }): JSX.Element {
  return (
    <nav aria-label="Views">
      <ul>
        {VIEWS.map((each) => (
          <li key={each}>
            <a href={printPlace({ view: each })} aria-current={each === view ? "page" : undefined}>
              {TITLES[each]}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function CurrentView(props: {
  readonly client: AdminClient;
  readonly state: ConsoleState;
  readonly place: Place;
  readonly ask: ConsoleFeed["ask"];
}): JSX.Element {
  const { client, state, place, ask } = props;
  const { data, content, routes } = state;
  // The trace is drawn from a file too, without a connection.
  if (place.view === "trace") return <TraceView client={client} />;
  if (data === undefined || content === undefined) return <p class="muted">Loading…</p>;
  if (place.view === "routes") return <RoutesView client={client} content={content} routes={routes} place={place} />;
  if (place.view === "backends") return <BackendsView backends={data.backends} now={data.process.now} ask={ask} />;
  if (place.view === "models") return <ModelsView usage={data.usage} ask={ask} />;
  return <OverviewView client={client} data={data} content={content} samples={state.samples} />;
}

function LostNotice(props: {
  readonly problem: string;
  readonly hasData: boolean;
  readonly onRetry: () => void;
}): JSX.Element {
  const { problem, hasData, onRetry } = props;
  return (
    <div class="notice bad" role="alert">
      <p>
        <strong>The data plane does not answer ({problem}).</strong>{" "}
        {hasData
          ? "What follows is the last state that it told."
          : "Is it running, and does the port-forward still stand?"}
      </p>
      <button type="button" onClick={onRetry}>
        Try again
      </button>
    </div>
  );
}

function usePlace(): Place {
  const [place, setPlace] = useState(() => parsePlace(location.hash));
  useEffect(() => {
    const follow = (): void => setPlace(parsePlace(location.hash));
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return place;
}
