/**
 * Builds the answer of the controller's /config_dump (docs/admin.md): what is read from the cluster, what is served to
 * each Gateway, secrets masked, and how far its data planes are. `controller.ts` uses it.
 */
import type { ObjectId } from "../api/object.ts";
import { compare } from "../lib/compare.ts";
import { dumpResources, dumpVersion } from "../runtime/dump.ts";
import type { Translator } from "../translator/translator.ts";
import type { ConnectedDataPlane } from "../xds/server/discovery.ts";
import type { ControllerOptions } from "./options.ts";

export interface DumpedController {
  readonly translator: Pick<Translator, "gateways" | "resourcesOf" | "diagnostics">;
  readonly dataPlanes: readonly ConnectedDataPlane[];
  /** Number of objects that were read, by kind. */
  readonly objects: Readonly<Record<string, number>>;
  /** Whether the cluster has been read. */
  readonly isReady: boolean;
  readonly isLeader: boolean;
  readonly options: ControllerOptions;
  /** The log filter in force. */
  readonly logging: string;
}

/** Any number of objects may be wrong; the status of each tells the rest. */
const MAX_DIAGNOSTICS = 1_000;

export function controllerDump(controller: DumpedController): object {
  const { translator, dataPlanes, objects, isReady, isLeader, options, logging } = controller;
  const { kubeconfig: _kubeconfig, ...config } = options;
  const diagnostics = translator.diagnostics();
  return {
    version: dumpVersion(),
    config: { ...config, logging },
    ready: isReady,
    leader: isLeader,
    objects,
    gateways: Object.fromEntries(
      translator
        .gateways()
        .map((gateway) => [
          gateway,
          dumpResources({ resources: translator.resourcesOf(gateway), listeners: [], endpoints: [] }),
        ]),
    ),
    dataPlanes: dataPlanes.toSorted((a, b) => compare(a.gateway, b.gateway) || compare(a.node, b.node)),
    diagnostics: diagnostics
      .slice(0, MAX_DIAGNOSTICS)
      .map(({ object, severity, path, message }) => ({ object: printId(object), severity, path, message })),
    diagnosticsLeftOut: Math.max(0, diagnostics.length - MAX_DIAGNOSTICS),
  };
}

/** Task of /debug/tasks: the server of discovery, and the streams of data planes. */
export interface ControllerTask {
  readonly kind: "listener" | "stream";
  readonly id: string;
  /** Id of the task that it belongs to; null for a listener. */
  readonly parent: string | null;
  readonly name: string;
  readonly state: string;
  readonly ageMs?: number;
  readonly children: readonly ControllerTask[];
}

const MAX_STREAMS = 10_000;

/** @param address of the discovery server; undefined before it listens */
export function controllerTasks(
  dataPlanes: readonly ConnectedDataPlane[],
  address: string | undefined,
  now: number = Date.now(),
): { readonly tasks: readonly ControllerTask[]; readonly truncated: boolean } {
  if (address === undefined) return { tasks: [], truncated: false };
  const id = `xds ${address}`;
  const children = dataPlanes.slice(0, MAX_STREAMS).map(({ gateway, node, peer, connectedAt }, at): ControllerTask => {
    const ageMs = now - Date.parse(connectedAt);
    return {
      kind: "stream",
      id: `${id} ${at}`,
      parent: id,
      name: `${gateway} ${node} ${peer}`,
      state: "open",
      ageMs,
      children: [],
    };
  });
  const listener: ControllerTask = { kind: "listener", id, parent: null, name: id, state: "open", children };
  return { tasks: [listener], truncated: dataPlanes.length > MAX_STREAMS };
}

function printId({ kind, namespace, name }: ObjectId): string {
  return namespace === "" ? `${kind} ${name}` : `${kind} ${namespace}/${name}`;
}
