/**
 * Creates the controller's GatewayClass when it is missing, so that applying a Gateway is all a user has to do.
 * `controller-core.ts` uses it. The leader creates it when it starts to lead, and again after it was deleted. A class
 * that is as it should be is not written, so that a restart of the controller writes nothing.
 *
 * Where a chart renders the class, the leader must not create it: an uninstalled class would come back. It only corrects
 * the parameters of one that exists, when it starts to lead and they differ. It writes nothing else, because `helm
 * upgrade` may not change a field that the controller has written (server-side apply).
 */
import type { ObjectId } from "../api/object.ts";
import { GATEWAY_GROUP, GWPROXY_GROUP } from "../api/refs.ts";
import { createBackoff } from "../lib/time/backoff.ts";
import { systemClock, type Clock } from "../lib/time/clock.ts";
import { deepEqual } from "../lib/deep-equal.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import { isStatus } from "../sources/kubernetes/api-error.ts";
import type { KubernetesClient } from "../sources/kubernetes/client.ts";
import type { ClassParametersRef } from "./options.ts";

export interface OwnClass {
  /** Sets whether this replica writes. */
  lead(isLeader: boolean): void;
  /** Takes the deletion of an object of any kind. */
  deleted(id: ObjectId): void;
}

export interface OwnClassOptions {
  readonly name: string;
  readonly controllerName: string;
  /** Creates a class that is missing; without it only one that exists is corrected. */
  readonly mayCreate: boolean;
  /** GwParameters that the class refers to; unset when it has none. */
  readonly parametersRef?: ClassParametersRef | undefined;
  readonly log: Logger;
  /** Schedules the next try; tests inject one. */
  readonly clock?: Clock;
}

const RETRY_MS = { initialMs: 500, maxMs: 10_000 } as const;

export function createOwnClass(
  client: KubernetesClient,
  { log, clock = systemClock, ...wanted }: OwnClassOptions,
): OwnClass {
  const { name, mayCreate } = wanted;
  const backoff = createBackoff(RETRY_MS);
  let isLeading = false;
  /** At most one try is scheduled, however often the class is deleted and the lead changes meanwhile. */
  let cancelRetry = (): void => undefined;

  const ensure = (): void => {
    cancelRetry();
    if (!isLeading) return;
    const written = mayCreate ? applyClass(client, wanted) : correctClass(client, wanted);
    written.then(
      () => backoff.reset(),
      (error: unknown) => {
        log.warn("the GatewayClass cannot be applied", { name, error: messageOf(error) });
        cancelRetry();
        cancelRetry = clock.after(backoff.next(), ensure);
      },
    );
  };

  return {
    lead(isLeader) {
      isLeading = isLeader;
      ensure();
    },
    deleted(id) {
      if (mayCreate && id.group === GATEWAY_GROUP && id.kind === "GatewayClass" && id.name === name) ensure();
    },
  };
}

type WantedClass = Pick<OwnClassOptions, "name" | "controllerName" | "parametersRef">;

async function applyClass(client: KubernetesClient, wanted: WantedClass): Promise<void> {
  const { name, controllerName } = wanted;
  const parametersRef = parametersOf(wanted);
  const spec = {
    controllerName,
    description: "Gateways served by gwproxy",
    ...(parametersRef === undefined ? {} : { parametersRef }),
  };
  const current = await readClass(client, name);
  if (deepEqual(current?.spec, spec)) return;
  await client.request({
    method: "PATCH",
    path: classPath(name),
    query: { fieldManager: controllerName, force: "true" },
    contentType: "application/apply-patch+yaml",
    body: {
      apiVersion: `${GATEWAY_GROUP}/v1`,
      kind: "GatewayClass",
      metadata: { name },
      spec,
    },
  });
}

/** Makes a class that exists refer to the configured parameters, if there are any and it does not do so yet. */
async function correctClass(client: KubernetesClient, wanted: WantedClass): Promise<void> {
  const parametersRef = parametersOf(wanted);
  const current = parametersRef === undefined ? undefined : await readClass(client, wanted.name);
  // The field controllerName is immutable, so a class of another controller can only be left alone.
  if (current?.spec.controllerName !== wanted.controllerName) return;
  if (deepEqual(current.spec.parametersRef, parametersRef)) return;
  const { resourceVersion } = current.metadata;
  await client.request({
    method: "PATCH",
    path: classPath(wanted.name),
    query: { fieldManager: wanted.controllerName },
    contentType: "application/merge-patch+json",
    body: { metadata: { resourceVersion }, spec: { parametersRef } },
  });
}

interface GatewayClass {
  readonly metadata: { readonly resourceVersion: string };
  readonly spec: { readonly controllerName: string; readonly parametersRef?: object };
}

async function readClass(client: KubernetesClient, name: string): Promise<GatewayClass | undefined> {
  try {
    return (await client.request({ method: "GET", path: classPath(name) })) as GatewayClass; // by its path
  } catch (error) {
    if (isStatus(error, 404)) return undefined;
    throw error;
  }
}

function classPath(name: string): string {
  return `/apis/${GATEWAY_GROUP}/v1/gatewayclasses/${encodeURIComponent(name)}`;
}

function parametersOf({ parametersRef }: WantedClass): object | undefined {
  return parametersRef === undefined ? undefined : { group: GWPROXY_GROUP, kind: "GwParameters", ...parametersRef };
}
