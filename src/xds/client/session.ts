/**
 * The client side of one delta ADS stream: it subscribes to every type, passes received resources to `apply`, and then
 * answers with ACK or NACK. `connection.ts` uses it.
 *
 *     receive ─▶ inbox ─▶ (all types answered once) ─▶ applyBatch ─▶ ACK / NACK of each response
 *                  ▲                                      │
 *                  └────── arrives while applying ◀───────┘
 *
 * The first responses of all types are applied as one update, at the start and after every reconnect. A data plane
 * therefore never serves half a configuration, and a reconnect removes nothing before its replacement is there.
 * Responses that arrive while an update is being applied wait, and are then applied as one update as well.
 */
import { create } from "@bufbuild/protobuf";
import {
  DeltaDiscoveryRequestSchema,
  type DeltaDiscoveryRequest,
  type DeltaDiscoveryResponse,
  type Node,
} from "../../../generated/proto/envoy/service/discovery/v3/discovery_pb.ts";
import type { ApplyResult, Resource, ResourceType, ResourceUpdate } from "../../ir/resource.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { decodeResource, SEND_ORDER, typeOfUrl, typeUrlOf } from "../codec.ts";
import { encodeNack, type RejectedResource } from "../nack.ts";
import type { Store } from "./store.ts";

/** `google.rpc.Code` INVALID_ARGUMENT, which a NACK carries. */
const INVALID_ARGUMENT = 3;

export interface SessionOptions {
  readonly node: Node;
  readonly store: Store;
  readonly log: Logger;
  readonly apply: (update: ResourceUpdate) => Promise<ApplyResult>;
  readonly send: (request: DeltaDiscoveryRequest) => void;
  /** Called when the first state of this stream has been applied. */
  readonly onState: () => void;
}

interface Received {
  readonly type: ResourceType;
  readonly nonce: string;
  readonly set: readonly Resource[];
  readonly removed: readonly string[];
  /** Resources that could not be decoded. */
  readonly refused: readonly RejectedResource[];
}

export class ClientSession {
  readonly #options: SessionOptions;
  /** Types whose first response is still missing. */
  readonly #awaited = new Set<ResourceType>(SEND_ORDER);
  #inbox: Received[] = [];
  #working: Promise<void> | undefined;
  #hasState = false;
  #over = false;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** Subscribes to every type and names the versions that are already held. */
  start(): void {
    const { node, store, send } = this.#options;
    SEND_ORDER.forEach((type, index) => {
      send(
        create(DeltaDiscoveryRequestSchema, {
          // The xDS protocol requires the node only in the first request of a stream.
          ...(index === 0 ? { node } : {}),
          typeUrl: typeUrlOf(type),
          resourceNamesSubscribe: ["*"],
          initialResourceVersions: store.versions(type),
        }),
      );
    });
  }

  receive(response: DeltaDiscoveryResponse): void {
    const type = typeOfUrl(response.typeUrl);
    if (type === undefined) {
      this.#options.log.warn("the controller sent a type that was not asked for", { typeUrl: response.typeUrl });
      return;
    }
    this.#inbox.push(decodeResponse(type, response));
    this.#awaited.delete(type);
    if (this.#awaited.size === 0) this.#working ??= this.#work();
  }

  /** Ends the session. @returns when no update is being applied any more, so that the store is up to date */
  async end(): Promise<void> {
    this.#over = true;
    await this.#working;
  }

  async #work(): Promise<void> {
    while (this.#inbox.length > 0 && !this.#over) {
      const batch = this.#inbox;
      this.#inbox = [];
      await this.#applyBatch(batch);
      if (!this.#hasState) {
        this.#hasState = true;
        this.#options.onState();
      }
    }
    this.#working = undefined;
  }

  async #applyBatch(batch: readonly Received[]): Promise<void> {
    const { store, log, apply } = this.#options;
    const update = mergeUpdates(batch);
    let result: ApplyResult = { refused: [] };
    if (update.set.length > 0 || update.removed.length > 0 || !this.#hasState) {
      try {
        result = await apply(update);
      } catch (error) {
        // It is unknown how much of the update is in force: all of it is refused, and sent again on the next stream.
        log.error("an update could not be applied", { reason: messageOf(error) });
        result = { refused: refuseAll(update, messageOf(error)) };
      }
    }
    store.admit(update, result);
    for (const received of batch) this.#answer(received, result);
  }

  #answer({ type, nonce, set, removed, refused }: Received, result: ApplyResult): void {
    if (this.#over) return;
    const named = new Set([...set.map(({ key }) => key), ...removed]);
    const all = [...refused, ...result.refused.filter((entry) => entry.type === type && named.has(entry.key))];
    this.#options.send(
      create(DeltaDiscoveryRequestSchema, {
        typeUrl: typeUrlOf(type),
        responseNonce: nonce,
        ...(all.length === 0 ? {} : { errorDetail: { code: INVALID_ARGUMENT, message: encodeNack(all) } }),
      }),
    );
  }
}

function decodeResponse(type: ResourceType, { nonce, resources, removedResources }: DeltaDiscoveryResponse): Received {
  const set: Resource[] = [];
  const refused: RejectedResource[] = [];
  for (const wire of resources) {
    try {
      set.push(decodeResource(type, wire));
    } catch (error) {
      refused.push({ type, key: wire.name, reason: messageOf(error) });
    }
  }
  return { type, nonce, set, removed: removedResources, refused };
}

/** Merges several steps into one; the last change of each key counts. */
export function mergeUpdates(
  steps: readonly { type: ResourceType; set: readonly Resource[]; removed: readonly string[] }[],
): ResourceUpdate {
  const last = new Map<string, Resource | { readonly type: ResourceType; readonly key: string }>();
  for (const { type, set, removed } of steps) {
    for (const resource of set) last.set(`${type} ${resource.key}`, resource);
    for (const key of removed) last.set(`${type} ${key}`, { type, key });
  }
  const set: Resource[] = [];
  const removed: { type: ResourceType; key: string }[] = [];
  for (const entry of last.values()) {
    if ("message" in entry) set.push(entry);
    else removed.push(entry);
  }
  return { set, removed };
}

function refuseAll(update: ResourceUpdate, reason: string): RejectedResource[] {
  return [...update.set, ...update.removed].map(({ type, key }) => ({ type, key, reason }));
}
