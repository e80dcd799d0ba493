/**
 * Decides when a status is written, and from which input: after a step of the translator, and when a data plane
 * acknowledges or refuses a resource. `controller-core.ts` uses it. In: steps and answers. Out: desired statuses of the
 * affected objects.
 */
import type { ObjectId } from "../api/object.ts";
import { GATEWAY_GROUP, GWPROXY_GROUP, INFERENCE_GROUP } from "../api/refs.ts";
import type { Resource } from "../ir/resource.ts";
import { computeStatus } from "../status/compute.ts";
import type { StatusContext } from "../status/condition.ts";
import type { Logger } from "../lib/log.ts";
import type { DesiredStatus } from "../status/desired.ts";
import type { TranslationStep, Translator } from "../translator/translator.ts";
import type { XdsServerOptions } from "../xds/server/discovery.ts";
import { createAcknowledgements, type ResourceId } from "./acknowledgements.ts";

export interface StatusFeedOptions {
  readonly translator: Pick<Translator, "statusInput" | "diagnosticsOf" | "resource">;
  readonly controllerName: string;
  readonly put: (status: DesiredStatus) => void;
  /** Returns the state of a Gateway's deployment ("namespace/name"); unset when Gateways are not deployed. */
  readonly deployment?: StatusContext["deployment"];
  /** Logs the diagnostics of objects whose status has no place for them. */
  readonly log: Pick<Logger, "warn">;
}

export interface StatusFeed {
  /** Writes the status of every object that a step touched. */
  follow(step: TranslationStep): void;
  /** Writes the status of an object after a change outside of the translator, such as its deployment. */
  refresh(id: ObjectId): void;
  /** Receives the answers of data planes from the discovery server. */
  readonly answers: Required<Pick<XdsServerOptions, "onAck" | "onNack" | "onClose">>;
}

/**
 * Kinds whose resources lead to an object with a status. A Service has none, so a NACK of its resources is only
 * logged.
 */
const GROUPS: Readonly<Record<string, string>> = {
  Gateway: GATEWAY_GROUP,
  ListenerSet: GATEWAY_GROUP,
  BackendTLSPolicy: GATEWAY_GROUP,
  HTTPRoute: GATEWAY_GROUP,
  TCPRoute: GATEWAY_GROUP,
  TLSRoute: GATEWAY_GROUP,
  GRPCRoute: GATEWAY_GROUP,
  GwBackend: GWPROXY_GROUP,
  GwPolicy: GWPROXY_GROUP,
  InferencePool: INFERENCE_GROUP,
};

export function createStatusFeed(options: StatusFeedOptions): StatusFeed {
  const { translator, controllerName, put, log, deployment } = options;
  const acknowledgements = createAcknowledgements();
  const { has: acknowledged, hasBind: hasDataPlane, nackReason } = acknowledgements;
  const context = {
    controllerName,
    acknowledged,
    hasDataPlane,
    nackReason,
    ...(deployment === undefined ? {} : { deployment }),
  };

  /** Returns the objects behind resources, without duplicates. */
  function ownersOf(wanted: readonly ResourceId[]): ObjectId[] {
    const owners = new Map<string, ObjectId>();
    for (const { type, key } of wanted) {
      const resource = translator.resource(type, key);
      const owner = resource && ownerOf(resource);
      if (owner !== undefined) owners.set(`${owner.kind} ${owner.namespace}/${owner.name}`, owner);
    }
    return [...owners.values()];
  }

  function write(ids: readonly ObjectId[]): void {
    for (const id of ids) {
      const input = translator.statusInput(id);
      if (input !== undefined) put(computeStatus(input, context));
      else {
        for (const { path, message } of translator.diagnosticsOf(id))
          log.warn(message, { object: `${id.kind} ${id.namespace}/${id.name}`, path });
      }
    }
  }

  return {
    follow(step) {
      for (const [gateway, { removed }] of step.byGateway) acknowledgements.forget(gateway, removed);
      acknowledgements.forgetEverywhere(step.update.removed);
      write(step.touched);
    },
    refresh(id) {
      const input = translator.statusInput(id);
      // The listeners of ListenerSets are served by the same data planes.
      write([id, ...(input?.kind === "Gateway" ? input.listenerSets : [])]);
    },
    answers: {
      onAck: (gateway, resources, stream) => write(ownersOf(acknowledgements.ack(gateway, stream, resources))),
      onNack(gateway, refused, stream) {
        acknowledgements.nack(gateway, stream, refused);
        write(ownersOf(refused));
      },
      onClose: (_gateway, stream) => acknowledgements.closed(stream),
    },
  };
}

function ownerOf(resource: Resource): ObjectId | undefined {
  const reference = referenceOf(resource);
  const group = reference && GROUPS[reference.kind];
  if (reference === undefined || group === undefined) return undefined;
  const { kind, namespace, name } = reference;
  return { group, kind, namespace, name };
}

function referenceOf(resource: Resource): { kind: string; namespace: string; name: string } | undefined {
  switch (resource.type) {
    case "Bind":
    case "ModelCatalogSource":
      return resource.message.gateway;
    case "Listener":
      return resource.message.listenerSet ?? resource.message.gateway;
    case "Endpoints":
      return undefined;
    default:
      return resource.message.object;
  }
}
