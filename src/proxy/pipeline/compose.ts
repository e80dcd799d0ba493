/**
 * Composes one chain of the units that `selectUnits` lets win, in the order of the policy table
 * (docs/reference/order.md). Called when a rule or listener is bound, never during a request. What it adds of the
 * route's own filters, explain.ts must explain.
 */
import { create } from "@bufbuild/protobuf";
import {
  AuthorizationSchema,
  HeaderModifiersSchema,
  TimeoutsSchema,
  type Cors,
  type HeaderChange,
  type Retry,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import type { RoutedExchange } from "../exchange/exchange.ts";
import { REQUEST_ORDER, type PolicyName } from "../policies/index.ts";
import type { Middleware } from "../policies/policy.ts";
import type { CompiledMiddleware, CompiledPolicy, PolicySet } from "../policies/policy-set.ts";
import type { Origins } from "./chain-runner.ts";
import { selectUnits, slotsOf, type Selection } from "./select-units.ts";

/** Filters and fields of the route object itself. They win over every attached policy that did not lock the unit. */
export interface InlineFilters {
  readonly owner: string;
  readonly requestHeaders: HeaderChange | undefined;
  readonly responseHeaders: HeaderChange | undefined;
  readonly cors: Cors | undefined;
  readonly requestTimeoutMs: number | undefined;
  readonly retry: Retry | undefined;
  /** Redirect and URL rewrite: no policy has an equivalent, and they run after the header edits. */
  readonly middlewares: readonly Middleware<RoutedExchange>[];
}

export interface Chain {
  readonly middlewares: readonly Middleware<RoutedExchange>[];
  /** See `Chain` in chain-runner.ts. */
  readonly captureBytes: number | undefined;
  /** See `Chain` in chain-runner.ts. */
  readonly origins: Origins;
  /** A policy of the chain answers requests for OAuth metadata. */
  readonly servesMetadata: boolean;
}

const NO_FILTERS: InlineFilters = {
  owner: "",
  requestHeaders: undefined,
  responseHeaders: undefined,
  cors: undefined,
  requestTimeoutMs: undefined,
  retry: undefined,
  middlewares: [],
};

/**
 * @param levels from the least specific to the most specific, each sorted oldest first
 * @throws ConfigError only for inline filters; attached policies were compiled before
 */
export function compose(
  policies: PolicySet,
  levels: readonly (readonly CompiledPolicy[])[],
  preRouting: boolean,
  inline: InlineFilters = NO_FILTERS,
): Chain {
  const selection = selectUnits(levels, preRouting);
  const parts: CompiledMiddleware[] = [];
  for (const name of REQUEST_ORDER) {
    const part = partOf(name, selection, policies, inline);
    if (part !== undefined) parts.push(part);
    if (name === "hostRewrite")
      parts.push(
        ...inline.middlewares.map((middleware) => ({
          middleware,
          readsBody: false,
          servesMetadata: false,
          origin: undefined,
        })),
      );
  }
  return {
    middlewares: parts.map(({ middleware }) => middleware),
    origins: parts.map(({ origin }) => origin),
    servesMetadata: parts.some(({ servesMetadata }) => servesMetadata),
    captureBytes: parts.some(({ readsBody }) => readsBody) ? captureLimit(selection) : undefined,
  };
}

/**
 * Returns the limit of a request buffer policy if one applies, so that expressions read as much as the policy allows. 0
 * selects the limit of the request.
 */
function captureLimit({ units }: Selection): number {
  const unit = units.get("buffer")?.unit;
  return (unit?.case === "buffer" && unit.value.request?.maxBytes) || 0;
}

function partOf(
  name: PolicyName,
  selection: Selection,
  policies: PolicySet,
  inline: InlineFilters,
): CompiledMiddleware | undefined {
  switch (name) {
    case "authorization":
      return authorization(selection, policies);
    case "headerModifiers":
      return headerModifiers(selection, policies, inline);
    case "cors":
      if (inline.cors === undefined || selection.locked.has(name)) break;
      return policies.compileUnit({ case: "cors", value: inline.cors }, inline.owner);
    case "timeouts": {
      const { requestTimeoutMs: requestMs } = inline;
      if (requestMs === undefined || selection.locked.has(name)) break;
      return policies.compileUnit({ case: "timeouts", value: create(TimeoutsSchema, { requestMs }) }, inline.owner);
    }
    case "retry":
      if (inline.retry === undefined || selection.locked.has(name)) break;
      return policies.compileUnit({ case: "retry", value: inline.retry }, inline.owner);
    case "responseBuffer":
      return selection.units.get("buffer")?.inner;
    default:
  }
  return selection.units.get(name)?.compiled;
}

function authorization(
  { authorization: units, preRouting }: Selection,
  policies: PolicySet,
): CompiledMiddleware | undefined {
  if (units.length < 2) return units[0]?.compiled;
  const rules = units.flatMap(({ unit }) => (unit.case === "authorization" ? unit.value.rules : []));
  const owner = units.map((unit) => unit.owner).join(" ");
  const unit = { case: "authorization", value: create(AuthorizationSchema, { rules }) } as const;
  return policies.compileUnit(unit, owner, preRouting);
}

function headerModifiers(
  { units, locked }: Selection,
  policies: PolicySet,
  inline: InlineFilters,
): CompiledMiddleware | undefined {
  const request = units.get("request-headers");
  const response = units.get("response-headers");
  const ownRequest = locked.has("request-headers") ? undefined : inline.requestHeaders;
  const ownResponse = locked.has("response-headers") ? undefined : inline.responseHeaders;
  const same = request === response || request === undefined || response === undefined;
  const only = request ?? response;
  const carriesMore = only !== undefined && slotsOf(only).length > Number(request === only) + Number(response === only);
  if (ownRequest === undefined && ownResponse === undefined && same && !carriesMore) return only?.compiled;
  const merged = create(HeaderModifiersSchema);
  const wonRequest = ownRequest ?? (request?.unit.case === "headerModifiers" ? request.unit.value.request : undefined);
  const wonResponse =
    ownResponse ?? (response?.unit.case === "headerModifiers" ? response.unit.value.response : undefined);
  if (wonRequest !== undefined) merged.request = wonRequest;
  if (wonResponse !== undefined) merged.response = wonResponse;
  return policies.compileUnit({ case: "headerModifiers", value: merged }, only?.owner ?? inline.owner);
}
