/**
 * Translates `mcp` of a GwBackend: servers of the Model Context Protocol at an address or behind a Service of the same
 * namespace. `translate.ts` uses it. A Service without endpoints is sent all the same, as it may get some later.
 */
import { create } from "@bufbuild/protobuf";
import type {
  MCPBackend,
  McpSelector,
  McpTarget as ApiTarget,
  McpTargetSelector,
} from "../../../generated/types/mcp.ts";
import {
  McpBackendSchema,
  McpPrefixMode,
  McpTargetSchema,
  type DestinationScope,
  type McpBackend,
  type McpTarget,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { servicePortKey } from "../../ir/keys.ts";
import type { Readable } from "../../lib/collections/collection.ts";
import type { Read } from "../../lib/collections/graph.ts";
import { within, type Report } from "../shared/report.ts";
import type { ServiceView } from "../shared/views.ts";
import { selectTargets, type McpServiceCollections } from "./mcp-targets.ts";
import type { FullSettingsContext } from "./settings/context.ts";
import { translateSettings } from "./settings/settings.ts";
import { checkDestination, translateStatic } from "./static.ts";

export interface McpContext extends McpServiceCollections {
  readonly namespace: string;
  readonly services: Readable<ServiceView>;
  readonly destinationScope: DestinationScope;
  readonly settings: FullSettingsContext;
  readonly read: Read;
  readonly error: Report;
  readonly warning: Report;
}

const DEFAULT_PATH = "/mcp";
const DEFAULT_SSE_PATH = "/sse";

const PREFIX_MODES: Readonly<Record<NonNullable<MCPBackend["prefixMode"]>, McpPrefixMode>> = {
  Conditional: McpPrefixMode.UNSPECIFIED,
  Always: McpPrefixMode.ALWAYS,
  Never: McpPrefixMode.NEVER,
};

export function translateMcp(
  { targets, sessionRouting, failureMode, prefixMode = "Conditional" }: MCPBackend,
  context: McpContext,
): McpBackend {
  const { error, warning } = context;
  const translated = targets.map((target, at) => {
    const path = `targets[${at}]`;
    return translateEntry(target, { ...context, error: within(error, path), warning: within(warning, path) });
  });
  checkNames(translated, error);
  return create(McpBackendSchema, {
    targets: translated.flat(),
    stateless: sessionRouting === "Stateless",
    failOpen: failureMode === "FailOpen",
    prefixMode: PREFIX_MODES[prefixMode],
  });
}

/** Returns the keys of the Backends that targets are behind. */
export function servicesOf({ targets }: McpBackend): string[] {
  return targets.flatMap(({ place }) => (place.case === "backend" ? [place.value] : []));
}

function translateEntry({ name, selector, static: target }: McpTargetSelector, context: McpContext): McpTarget[] {
  if (selector !== undefined) return translateSelector(selector, context);
  if (target === undefined) return [];
  const inner = {
    ...context,
    error: within(context.error, "static"),
    warning: within(context.warning, "static"),
  };
  return [translateTarget(name, target, inner)];
}

/** The servers that are found now; a Service that comes or goes changes this backend alone. */
function translateSelector(selector: McpSelector, context: McpContext): McpTarget[] {
  const error = within(context.error, "selector");
  return selectTargets(selector, { ...context, error }).map(({ name, backend, legacySse, path }) => {
    const place = { case: "backend" as const, value: backend };
    return create(McpTargetSchema, { name, place, legacySse, path: pathOf(path, legacySse) });
  });
}

/** Reports targets of equal names: requests name their target by it, and sessions too. */
function checkNames(targets: readonly (readonly McpTarget[])[], error: Report): void {
  const seen = new Set<string>();
  for (const [at, entry] of targets.entries())
    for (const { name } of entry) {
      if (seen.has(name)) error(`targets[${at}]`, `another target has the name ${name}`);
      seen.add(name);
    }
}

function translateTarget(name: string, target: ApiTarget, context: McpContext): McpTarget {
  const { path, policies, protocol } = target;
  const legacySse = protocol === "SSE";
  const settings = translateSettings(policies, context.settings, within(context.error, "policies"));
  return create(McpTargetSchema, {
    name,
    place: placeOf(target, context),
    legacySse,
    path: pathOf(path, legacySse),
    ...(settings === undefined ? {} : { settings }),
  });
}

function placeOf({ host, backendRef, port }: ApiTarget, context: McpContext): McpTarget["place"] {
  const { namespace, services, read, destinationScope, error, warning } = context;
  if (backendRef === undefined) {
    const place = { host: host ?? "", port };
    const found = checkDestination(place, destinationScope);
    if (found !== undefined) error(found.path, found.message);
    return { case: "static", value: translateStatic(place, destinationScope) };
  }
  const service = read.get(services, `${namespace}/${backendRef.name}`);
  if (service === undefined) error("backendRef", `Service ${namespace}/${backendRef.name} not found`);
  else if (!service.ports.some((candidate) => candidate.port === port))
    warning("port", `Service ${namespace}/${backendRef.name} has no TCP port ${port}`);
  return { case: "backend", value: servicePortKey(namespace, backendRef.name, port) };
}

function pathOf(given: string | undefined, legacySse: boolean): string {
  const path = given ?? (legacySse ? DEFAULT_SSE_PATH : DEFAULT_PATH);
  return path.startsWith("/") ? path : `/${path}`;
}
