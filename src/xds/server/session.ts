/**
 * Serves one data plane on one stream: its subscriptions, the resources it was sent, and its answers. `discovery.ts`
 * uses it.
 *
 *     feed update ─▶ wanted state ─┐
 *                                  ├─▶ schedule ─▶ push ─▶ response with nonce ─▶ ACK or NACK
 *     request ─────▶ subscription ─┘   (one turn)         (outstanding)
 *
 * In: requests, and changes of the feed. Out: responses, ACKs and NACKs. Changes of one event-loop turn
 * are sent together. While the stream is full (backpressure), changes are only marked: a slow reader gets the newest
 * state instead of a backlog.
 */
import { create } from "@bufbuild/protobuf";
import {
  DeltaDiscoveryResponseSchema,
  type DeltaDiscoveryRequest,
  type DeltaDiscoveryResponse,
} from "../../../generated/proto/envoy/service/discovery/v3/discovery_pb.ts";
import type { Resource, ResourceType, ResourceUpdate } from "../../ir/resource.ts";
import { GwError } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { encodeResource, typeOfUrl, typeUrlOf } from "../codec.ts";
import { decodeNack, type RejectedResource } from "../nack.ts";
import { planPush, resourcesOf, type Step } from "./delta.ts";
import { Answers, type TypeSync } from "./session-sync.ts";
import { Subscription } from "./subscriptions.ts";

/** Reports a request that a conforming client never sends. It ends the stream. */
export class DiscoveryRequestError extends GwError {
  readonly code = "discovery_request_invalid";
}

export interface AckedResource {
  readonly type: ResourceType;
  readonly key: string;
  /**
   * Version that was acknowledged. Compare it with the current one: an acknowledgement may be older than the last
   * change.
   */
  readonly version: string;
}

export interface SessionOutput {
  /** @returns false when the stream is full; the owner then calls `drained` once it is not */
  send(response: DeltaDiscoveryResponse): boolean;
  acked(resources: readonly AckedResource[]): void;
  nacked(refused: readonly RejectedResource[]): void;
}

export class Session {
  readonly #output: SessionOutput;
  readonly #log: Logger;
  readonly #state = new Map<ResourceType, Map<string, Resource>>();
  readonly #subscriptions = new Map<ResourceType, Subscription>();
  readonly #unanswered = new Set<ResourceType>();
  readonly #outstanding = new Map<string, Step>();
  readonly #answers = new Map<ResourceType, Answers>();
  #nonce = 0;
  #full = false;
  #scheduled: NodeJS.Immediate | undefined;
  #closed = false;

  constructor(output: SessionOutput, log: Logger) {
    this.#output = output;
    this.#log = log;
  }

  /** Changes the resources that this data plane should hold; the first update carries all of them. */
  update({ set, removed }: ResourceUpdate): void {
    for (const resource of set) {
      this.#resources(resource.type).set(resource.key, resource);
      this.#subscriptions.get(resource.type)?.mark(resource.key);
    }
    for (const { type, key } of removed) {
      this.#resources(type).delete(key);
      this.#answers.get(type)?.removed(key);
      this.#subscriptions.get(type)?.mark(key);
    }
    this.#schedule();
  }

  /** @throws DiscoveryRequestError when the request asks for something that is not supported here */
  request(request: DeltaDiscoveryRequest): void {
    const type = typeOfUrl(request.typeUrl);
    if (type === undefined) return this.#answerUnknown(request);
    if (request.resourceNamesUnsubscribe.includes("*")) this.#subscriptions.delete(type);
    else this.#subscribe(type, request);
    if (request.responseNonce !== "") this.#answered(request.responseNonce, request.errorDetail?.message);
  }

  drained(): void {
    this.#full = false;
    this.#schedule();
  }

  /** Returns how far the data plane is, by the URL of each type that it has subscribed to. */
  sync(): Record<string, TypeSync> {
    const unanswered = new Map<ResourceType, number>();
    for (const { type, set } of this.#outstanding.values())
      unanswered.set(type, (unanswered.get(type) ?? 0) + set.length);
    return Object.fromEntries(
      Array.from(this.#subscriptions.keys(), (type): [string, TypeSync] => [
        typeUrlOf(type),
        {
          resources: resourcesOf(this.#state, type).size,
          unanswered: unanswered.get(type) ?? 0,
          ...this.#answersOf(type).read(),
        },
      ]),
    );
  }

  close(): void {
    this.#closed = true;
    clearImmediate(this.#scheduled);
  }

  #resources(type: ResourceType): Map<string, Resource> {
    let resources = this.#state.get(type);
    if (resources === undefined) this.#state.set(type, (resources = new Map()));
    return resources;
  }

  #answersOf(type: ResourceType): Answers {
    let answers = this.#answers.get(type);
    if (answers === undefined) this.#answers.set(type, (answers = new Answers()));
    return answers;
  }

  #acked(type: ResourceType, resources: readonly AckedResource[]): void {
    this.#answersOf(type).acked(resources.map(({ key }) => key));
    this.#output.acked(resources);
  }

  #subscribe(type: ResourceType, request: DeltaDiscoveryRequest): void {
    if (request.resourceNamesSubscribe.some((name) => name !== "*")) {
      throw new DiscoveryRequestError("only whole types can be subscribed to, not single resources");
    }
    if (this.#subscriptions.has(type)) return;
    const subscription = new Subscription(request.initialResourceVersions);
    this.#subscriptions.set(type, subscription);
    this.#unanswered.add(type);
    const kept: AckedResource[] = [];
    for (const resource of resourcesOf(this.#state, type).values()) {
      if (subscription.holds(resource)) kept.push({ type, key: resource.key, version: resource.version });
      subscription.mark(resource.key);
    }
    // Resources kept from an earlier stream were applied then. They are not sent again, so no other acknowledgement
    // would come.
    if (kept.length > 0) this.#acked(type, kept);
    this.#schedule();
  }

  /**
   * Answers with an empty response: a newer data plane waits for a first response of a type that only its own version
   * knows.
   */
  #answerUnknown({ typeUrl, responseNonce }: DeltaDiscoveryRequest): void {
    if (responseNonce !== "") return;
    this.#log.warn("a data plane subscribes to an unknown type", { typeUrl });
    this.#nonce += 1;
    this.#output.send(create(DeltaDiscoveryResponseSchema, { typeUrl, nonce: String(this.#nonce) }));
  }

  #answered(nonce: string, errorDetail: string | undefined): void {
    const step = this.#outstanding.get(nonce);
    if (step === undefined) {
      this.#log.debug("an answer to an unknown nonce was ignored", { nonce });
      return;
    }
    this.#outstanding.delete(nonce);
    const keys = [...step.set.map(({ key }) => key), ...step.removed];
    const refused = errorDetail === undefined ? [] : decodeNack(errorDetail, step.type, keys);
    const bad = new Set(refused.map(({ key }) => key));
    const acked = step.set.filter(({ key }) => !bad.has(key));
    if (acked.length > 0)
      this.#acked(
        step.type,
        acked.map(({ type, key, version }) => ({ type, key, version })),
      );
    if (refused.length === 0) return;
    this.#answersOf(step.type).refused(refused);
    this.#output.nacked(refused);
  }

  #schedule(): void {
    if (this.#scheduled !== undefined || this.#full || this.#closed) return;
    this.#scheduled = setImmediate(() => {
      this.#scheduled = undefined;
      if (!this.#full) this.#push();
    });
  }

  #push(): void {
    for (const step of planPush(this.#subscriptions, this.#state, this.#unanswered)) {
      this.#nonce += 1;
      const nonce = String(this.#nonce);
      this.#outstanding.set(nonce, step);
      const response = create(DeltaDiscoveryResponseSchema, {
        typeUrl: typeUrlOf(step.type),
        nonce,
        resources: step.set.map(encodeResource),
        removedResources: [...step.removed],
      });
      if (!this.#output.send(response)) this.#full = true;
    }
    this.#unanswered.clear();
  }
}
