/** Lists the routes with a filter, and explains the chosen one. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { AdminClient } from "../client/admin-client.ts";
import type { ConfigurationContent, RouteData } from "../data.ts";
import { filterRoutes, type SearchableRoute } from "../model/filter.ts";
import { formatCount } from "../model/format.ts";
import { printPlace, type Place } from "../model/place.ts";
import { OptionList } from "../parts/option-list.tsx";
import { RouteDetail } from "./route-detail.tsx";

export function RoutesView(props: {
  readonly client: AdminClient;
  readonly content: ConfigurationContent;
  readonly routes: readonly SearchableRoute[];
  readonly place: Place;
}): JSX.Element {
  const { client, content, routes, place } = props;
  const [filter, setFilter] = useState("");
  const found = useMemo(() => filterRoutes(routes, filter, place.listener), [routes, filter, place.listener]);
  const chosen = content.routes.find(({ key }) => key === place.route);
  if (content.routes.length === 0)
    return (
      <p class="empty">
        No route is attached to a listener. Apply an HTTPRoute whose <code>parentRefs</code> name a Gateway; its status
        says why when it is not accepted.
      </p>
    );
  return (
    <div class={place.route === "" ? "columns" : "columns has-choice"}>
      <section class="list" aria-label="Routes">
        <div class="row">
          <label for="route-filter">Filter</label>
          <input
            id="route-filter"
            type="search"
            placeholder="name, host, path or backend"
            value={filter}
            onInput={({ currentTarget }) => setFilter(currentTarget.value)}
          />
        </div>
        <p class="muted count" role="status">
          {found.length === content.routes.length
            ? `${formatCount(found.length)} routes`
            : `${formatCount(found.length)} of ${formatCount(content.routes.length)} routes`}
          {place.listener !== "" && (
            <>
              {" "}
              of listener {place.listener}. <a href={printPlace({ view: "routes" })}>Show all</a>
            </>
          )}
        </p>
        {found.length === 0 ? (
          <p class="empty">No route contains these words. Fewer words find more.</p>
        ) : (
          <OptionList
            label="Routes"
            items={found}
            chosen={place.route}
            keyOf={({ key }) => key}
            draw={drawRoute}
            onChoose={(route) => {
              location.hash = printPlace({ view: "routes", route, listener: place.listener });
            }}
          />
        )}
      </section>
      <section class="detail" aria-label="Route">
        {chosen === undefined ? (
          <p class="empty">
            {place.route === ""
              ? "Choose a route to see why it behaves as it does."
              : "This route is no longer loaded."}
          </p>
        ) : (
          <>
            <p class="back">
              <a href={printPlace({ view: "routes", listener: place.listener })}>← All routes</a>
            </p>
            <RouteDetail key={chosen.key} client={client} route={chosen} />
          </>
        )}
      </section>
    </div>
  );
}

function drawRoute({ kind, name, hostnames, rules }: RouteData): JSX.Element {
  const [match = ""] = rules[0]?.matches ?? [];
  const hosts = hostnames.length === 0 ? "any host" : hostnames.join(", ");
  const hasProblem = rules.some(({ problems }) => problems.length > 0);
  return (
    <>
      <span class="option-name">
        {name} <span class="muted">{kind}</span>
        {hasProblem && <span class="badge bad">problem</span>}
      </span>
      <span class="option-note muted">
        {hosts} {match} {rules.length > 1 ? `and ${rules.length - 1} more` : ""}
      </span>
    </>
  );
}
