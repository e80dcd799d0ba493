/** One route: for each rule what it matches, where it leads, and the policies that `/explain` lists. */
import type { JSX } from "preact";
import type { AdminClient } from "../client/admin-client.ts";
import { useJson, type Fetched } from "../client/use-json.ts";
import type { RouteData, RuleData } from "../data.ts";
import { settingsOfCalls, type ExplainedRoute, type ExplainedRule, type TitledSettings } from "../model/explanation.ts";
import { PolicyList } from "./policy-list.tsx";

export function RouteDetail({
  client,
  route,
}: {
  readonly client: AdminClient;
  readonly route: RouteData;
}): JSX.Element {
  const explanation = useExplanation(client, route);
  return (
    <article>
      <h3>
        {route.kind} {route.name}
      </h3>
      <dl class="facts">
        <div>
          <dt>Hosts</dt>
          <dd>{route.hostnames.length === 0 ? "any that its listeners have" : route.hostnames.join(", ")}</dd>
        </div>
        <div>
          <dt>Listeners</dt>
          <dd>{route.listeners.join(", ")}</dd>
        </div>
      </dl>
      {explanation !== undefined && "error" in explanation && (
        <p class="notice bad">The policies could not be fetched: {explanation.error}</p>
      )}
      {route.rules.map((rule) => (
        <Rule key={rule.rule} kind={route.kind} rule={rule} explanation={explanation} />
      ))}
    </article>
  );
}

function useExplanation(client: AdminClient, route: RouteData): Fetched<readonly ExplainedRoute[]> {
  const path = `/explain?${new URLSearchParams({ route: route.name }).toString()}`;
  const name = `${route.kind} ${route.name}`;
  return useJson({ client, path, dependsOn: route }, (answer) =>
    // Routes of other kinds may have the same name.
    (answer as readonly ExplainedRoute[]).filter((each) => each.route === name),
  );
}

function Rule({
  kind,
  rule,
  explanation,
}: {
  readonly kind: string;
  readonly rule: RuleData;
  readonly explanation: Fetched<readonly ExplainedRoute[]>;
}): JSX.Element {
  const { matches, backends, problems } = rule;
  const routes = explanation !== undefined && "answer" in explanation ? explanation.answer : [];
  const explained = routes.flatMap(({ listener, rules }) =>
    rules.filter((each) => each.rule === rule.rule).map((each) => ({ listener, ...each })),
  );
  return (
    <section class="rule">
      <h4>Rule {rule.rule}</h4>
      {problems.map((problem) => (
        <p key={problem} class="notice bad">
          Answers with an error: {problem}
        </p>
      ))}
      <ul class="matches">
        {matches.map((match) => (
          <li key={match}>
            <code>{match}</code>
          </li>
        ))}
      </ul>
      <p class="targets">
        <span aria-hidden="true">→ </span>
        <span class="hidden">leads to </span>
        {backends.length === 0 ? "no backend: answers by itself" : backends.join(", ")}
      </p>
      {groupEqual(explained).map(({ listeners, refuses, policies, backend, behind, provider, ...calls }) => (
        <div key={`${listeners.join()} ${backend} ${behind} ${provider}`}>
          {explained.length > 1 && <h5>On listener {listeners.join(", ")}</h5>}
          {backend !== undefined && <h5>{backendText(backend, behind, provider)}</h5>}
          {refuses !== undefined && <p class="notice bad">Every request is refused: {refuses}</p>}
          {(policies.length > 0 || !FORWARDS_BYTES.test(kind)) && <PolicyList policies={policies} />}
          {settingsOfCalls(calls).map((each, at) => (
            <CallSettings key={`${at} ${each.title}`} {...each} />
          ))}
        </div>
      ))}
    </section>
  );
}

function CallSettings({ title, refuses, policies }: TitledSettings): JSX.Element {
  return (
    <>
      <h5>{title}</h5>
      {refuses !== undefined && <p class="notice bad">All are refused: {refuses}</p>}
      {policies.length > 0 && <PolicyList policies={policies} />}
    </>
  );
}

/** Kinds whose routes no traffic policy can govern. */
const FORWARDS_BYTES = /^(TCP|TLS)Route$/;

type RuleOnListener = ExplainedRule & { readonly listener: string };

function backendText(backend: string, behind: string | undefined, provider: string | undefined): string {
  if (behind === undefined) return `To ${backend}`;
  const front = provider === undefined ? behind : `${provider} of ${behind}`;
  return `To ${backend} behind ${front}, after the policies of the rule`;
}

/** Joins listeners on which the rule has the same policies. */
function groupEqual(
  rules: readonly RuleOnListener[],
): (Omit<RuleOnListener, "listener"> & { readonly listeners: readonly string[] })[] {
  const groups = Map.groupBy(rules, ({ listener: _listener, rule: _rule, ...same }) => JSON.stringify(same));
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    return first === undefined ? [] : [{ ...first, listeners: group.map(({ listener }) => listener) }];
  });
}
