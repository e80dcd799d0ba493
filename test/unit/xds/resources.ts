/** Resources, a feed that a test can change, and a data plane that records what it is given. */
import { create } from "@bufbuild/protobuf";
import {
  BackendSchema,
  EndpointsSchema,
  HttpRouteSchema,
  ListenerSchema,
  PolicySchema,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { resourceOf } from "../../../src/ir/encode.ts";
import type { ApplyResult, Resource, ResourceType, ResourceUpdate } from "../../../src/ir/resource.ts";
import { createLogger, type Logger } from "../../../src/lib/log.ts";
import type { ResourceFeed } from "../../../src/xds/server/discovery.ts";

export const quiet: Logger = createLogger({ level: "off", modules: new Map() }, () => undefined);

export function backend(name: string, host = "127.0.0.1"): Resource {
  const kind = { case: "static" as const, value: { host, port: 80 } };
  return resourceOf("Backend", create(BackendSchema, { key: `backend/a/${name}`, kind }));
}

export function endpoints(name: string, ...addresses: string[]): Resource {
  return resourceOf(
    "Endpoints",
    create(EndpointsSchema, {
      key: `service/a/${name}:80`,
      endpoints: addresses.map((address) => ({ address, port: 80, ready: true })),
    }),
  );
}

export function listener(name: string, hostname = ""): Resource {
  return resourceOf("Listener", create(ListenerSchema, { key: `a/gw.${name}`, name, hostname }));
}

export function policy(name: string, createdAtMs = 0n): Resource {
  return resourceOf("Policy", create(PolicySchema, { key: `policy/a/${name}`, createdAtMs }));
}

export function route(name: string, prefix = "/"): Resource {
  return resourceOf(
    "HttpRoute",
    create(HttpRouteSchema, {
      key: `httproute/a/${name}`,
      rules: [{ matches: [{ path: { case: "prefix", value: prefix } }] }],
    }),
  );
}

export interface TestFeed extends ResourceFeed {
  change(gateway: string, set: readonly Resource[], removed?: ResourceUpdate["removed"]): void;
  listeners(): number;
}

export function testFeed(initial: Readonly<Record<string, readonly Resource[]>> = {}): TestFeed {
  const states = new Map<string, Map<string, Resource>>();
  const listeners = new Set<{ gateway: string; listener: (update: ResourceUpdate) => void }>();
  const stateOf = (gateway: string): Map<string, Resource> => {
    const state = states.get(gateway) ?? new Map<string, Resource>();
    states.set(gateway, state);
    return state;
  };
  const change: TestFeed["change"] = (gateway, set, removed = []) => {
    for (const resource of set) stateOf(gateway).set(`${resource.type} ${resource.key}`, resource);
    for (const { type, key } of removed) stateOf(gateway).delete(`${type} ${key}`);
    for (const entry of listeners) if (entry.gateway === gateway) entry.listener({ set, removed });
  };
  for (const [gateway, resources] of Object.entries(initial)) change(gateway, resources);
  return {
    change,
    snapshot: (gateway) => [...stateOf(gateway).values()],
    subscribe(gateway, listener) {
      const entry = { gateway, listener };
      listeners.add(entry);
      return () => listeners.delete(entry);
    },
    listeners: () => listeners.size,
  };
}

export interface DataPlane {
  readonly apply: (update: ResourceUpdate) => Promise<ApplyResult>;
  /** Every update so far. */
  readonly updates: ResourceUpdate[];
  /** Version by "Type key". */
  readonly state: Map<string, string>;
  /** Keys that it will refuse. */
  readonly refuses: Map<string, string>;
  /** Resolves as soon as the condition holds, which is looked at after each update. */
  until(condition: () => boolean): Promise<void>;
}

export function dataPlane(): DataPlane {
  const state = new Map<string, string>();
  const refuses = new Map<string, string>();
  const updates: ResourceUpdate[] = [];
  const watched = watch();
  return {
    updates,
    state,
    refuses,
    until: watched.until,
    async apply(update) {
      updates.push(update);
      const refused: { type: ResourceType; key: string; reason: string }[] = [];
      for (const { type, key, version } of update.set) {
        const reason = refuses.get(key);
        if (reason === undefined) state.set(`${type} ${key}`, version);
        else refused.push({ type, key, reason });
      }
      for (const { type, key } of update.removed) state.delete(`${type} ${key}`);
      watched.changed();
      return { refused };
    },
  };
}

/** Waiting for a condition without a clock: `changed` looks again. */
export function watch(): { changed: () => void; until: (condition: () => boolean) => Promise<void> } {
  const waiting = new Set<{ condition: () => boolean; resolve: () => void }>();
  return {
    changed() {
      for (const entry of waiting) {
        if (!entry.condition()) continue;
        waiting.delete(entry);
        entry.resolve();
      }
    },
    until: (condition) =>
      condition() ? Promise.resolve() : new Promise((resolve) => waiting.add({ condition, resolve })),
  };
}

export function keysOf(update: ResourceUpdate | undefined): { set: string[]; removed: string[] } {
  return {
    set: (update?.set ?? []).map(({ key }) => key),
    removed: (update?.removed ?? []).map(({ key }) => key),
  };
}
