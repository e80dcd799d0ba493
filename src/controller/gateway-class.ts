/**
 * Creates the controller's GatewayClass when it is missing, so that applying a Gateway is all a user has to do.
 * `controller-core.ts` uses it. The leader creates it when it starts to lead, and again after it was deleted.
 */
import type { ObjectId } from "../api/object.ts";
import { GATEWAY_GROUP, GWPROXY_GROUP } from "../api/refs.ts";
import { createBackoff } from "../lib/time/backoff.ts";
import { systemClock, type Clock } from "../lib/time/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
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
  /** GwParameters that the class refers to; unset when it has none. */
  readonly parametersRef?: ClassParametersRef | undefined;
  readonly log: Logger;
  /** Schedules the next try; tests inject one. */
  readonly clock?: Clock;
}

const RETRY_MS = { initialMs: 500, maxMs: 10_000 } as const;

export function createOwnClass(
  client: KubernetesClient,
  { name, controllerName, parametersRef, log, clock = systemClock }: OwnClassOptions,
): OwnClass {
  const backoff = createBackoff(RETRY_MS);
  let isLeading = false;
  /** At most one try is scheduled, however often the class is deleted and the lead changes meanwhile. */
  let cancelRetry = (): void => undefined;

  const ensure = (): void => {
    cancelRetry();
    if (!isLeading) return;
    applyClass(client, { name, controllerName, parametersRef }).then(
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
      if (id.group === GATEWAY_GROUP && id.kind === "GatewayClass" && id.name === name) ensure();
    },
  };
}

async function applyClass(
  client: KubernetesClient,
  { name, controllerName, parametersRef }: Pick<OwnClassOptions, "name" | "controllerName" | "parametersRef">,
): Promise<void> {
  await client.request({
    method: "PATCH",
    path: `/apis/${GATEWAY_GROUP}/v1/gatewayclasses/${encodeURIComponent(name)}`,
    query: { fieldManager: controllerName, force: "true" },
    contentType: "application/apply-patch+yaml",
    body: {
      apiVersion: `${GATEWAY_GROUP}/v1`,
      kind: "GatewayClass",
      metadata: { name },
      spec: {
        controllerName,
        description: "Gateways served by gwproxy",
        ...(parametersRef === undefined
          ? {}
          : { parametersRef: { group: GWPROXY_GROUP, kind: "GwParameters", ...parametersRef } }),
      },
    },
  });
}
