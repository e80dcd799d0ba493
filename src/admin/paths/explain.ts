/**
 * `/explain`: the policies of each rule of a route, in the order in which they run, and those that lost; or those about
 * the connections of a Gateway.
 */
import { getQuery } from "h3";
import { json, text } from "../http.ts";
import type { AdminPath } from "./admin-path.ts";

const USAGE = "usage: ?route=<namespace>/<name>[&rule=<name or position>] or ?gateway=<namespace>/<name>";

export const explain: AdminPath = {
  help: "the policies of each rule of ?route=NAMESPACE/NAME (&rule=N: one rule) in their order, or those of the connections of ?gateway=NAMESPACE/NAME, and which lost to whom",
  async get(event, { explain: explainRoute, explainGateway }) {
    const { route, rule, gateway } = getQuery(event);
    if (isName(gateway) && route === undefined && rule === undefined) {
      const ports = await explainGateway(gateway);
      return ports.length === 0 ? text("no Gateway of this name has a port here\n", 404) : json(ports);
    }
    if (!isName(route) || gateway !== undefined) return text(`${USAGE}\n`, 400);
    const routes = await explainRoute(route);
    if (routes.length === 0) return text("no route of this name is bound to a listener; its status says why\n", 404);
    if (rule === undefined) return json(routes);
    const chosen = routes.map((each) => ({ ...each, rules: chooseRule(each.rules, String(rule)) }));
    if (chosen.every(({ rules }) => rules.length === 0))
      return text("the route has no rule of this name or position\n", 404);
    return json(chosen);
  },
};

/** A name wins over a position. A rule has several entries where its backends have policies of their own. */
function chooseRule<Rule extends { readonly rule: string }>(rules: readonly Rule[], wanted: string): Rule[] {
  const names = [...new Set(rules.map(({ rule }) => rule))];
  const name = !names.includes(wanted) && /^\d+$/.test(wanted) ? names[Number(wanted)] : wanted;
  return rules.filter(({ rule }) => rule === name);
}

/** Decides whether a parameter is "namespace/name". */
function isName(value: unknown): value is string {
  return typeof value === "string" && /^[^/\s]+\/[^/\s]+$/.test(value);
}
