/**
 * The client of the SPIFFE Workload API. Listeners and upstreams with SPIFFE read the identity in force from it; the
 * first one that needs an identity starts the stream to the node's agent.
 *
 *   idle ──first need──► waiting ──identity──► in force ◄─────────── a newer identity
 *                           │                      │
 *                           └──── PERMISSION_DENIED, or expiry ───► lost ──identity──► in force
 *
 * The stream reconnects with exponential backoff, independently of these states. While the agent is away, the last
 * identity serves until it expires; an agent that refuses revokes it (SPIFFE Workload API §5.2.1). Private keys never
 * reach a log or a dump.
 */
import { create } from "@bufbuild/protobuf";
import { Client, credentials, Metadata, status, type ClientReadableStream, type ServiceError } from "@grpc/grpc-js";
import {
  SpiffeWorkloadAPI,
  X509SVIDRequestSchema,
  type X509SVIDResponse,
} from "../../../generated/proto/spiffe/workload/workload_pb.ts";
import { type Backoff, createBackoff } from "../../lib/time/backoff.ts";
import type { Clock } from "../../lib/time/clock.ts";
import { ConfigError, messageOf } from "../../lib/errors.ts";
import { methodDefinition } from "../../lib/grpc.ts";
import type { Logger } from "../../lib/log.ts";
import { workloadAddress } from "../../lib/network/workload-endpoint.ts";
import { readIdentity, type WorkloadIdentity } from "./identity.ts";

export interface WorkloadApiOptions {
  /** "unix:///path" or "tcp://address:port"; undefined when no endpoint is configured. */
  readonly endpoint: string | undefined;
  readonly log: Logger;
  readonly clock: Clock;
  /** Called when the identity is replaced or lost. */
  readonly onChange: () => void;
}

export interface IdentitySource {
  /**
   * Returns the identity in force; the first call starts the stream.
   * @returns a text with the reason when there is none
   */
  current(): WorkloadIdentity | string;
}

/** The state as `/config_dump` shows it. */
export interface WorkloadApiDump {
  readonly endpoint: string | null;
  readonly spiffeId: string | null;
  readonly serialNumber: string | null;
  /** Time in the format of RFC 3339. */
  readonly expiresAt: string | null;
  /** Number of CA certificates by trust domain. */
  readonly trustDomains: Readonly<Record<string, number>>;
  /** The last error, until it is resolved. */
  readonly fault: string | null;
}

const NOWHERE = "no workload API is set: start with --spiffe-endpoint-socket, or with SPIFFE_ENDPOINT_SOCKET";
const WAITING = "the workload API has sent no identity yet";
/** The agent has to send the first message of a stream at once (SPIFFE Workload API §4.3). */
const ANSWER_MS = 10_000;
/** Time that the first configuration that needs an identity waits for one. */
const PATIENCE_MS = 1_000;
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 5_000;
const METHOD = methodDefinition(SpiffeWorkloadAPI.method.fetchX509SVID);
const CHANNEL_OPTIONS = {
  "grpc.enable_http_proxy": 0,
  "grpc.service_config_disable_resolution": 1,
  // Give each stream a connection of its own, so that a new stream does not wait for the library's reconnect backoff.
  "grpc.use_local_subchannel_pool": 1,
  "grpc.enable_retries": 0,
};

export class WorkloadApi implements IdentitySource {
  readonly #options: WorkloadApiOptions;
  readonly #address: string | undefined;
  readonly #backoff: Backoff = createBackoff({ initialMs: FIRST_WAIT_MS, maxMs: LONGEST_WAIT_MS });
  #identity: WorkloadIdentity | undefined;
  /** Why the last identity was lost. */
  #lost: string | undefined;
  /** The last error, until it is resolved. */
  #error: string | undefined;
  /** Resolves with the agent's first message, a failure, or after PATIENCE_MS; undefined before the first need. */
  #settled: PromiseWithResolvers<void> | undefined;
  #stream: ClientReadableStream<X509SVIDResponse> | undefined;
  #cancelWait: (() => void) | undefined;
  #cancelExpiry: (() => void) | undefined;
  #closed = false;

  /** @throws TypeError when the endpoint is not a valid address */
  constructor(options: WorkloadApiOptions) {
    this.#options = options;
    this.#address = options.endpoint === undefined ? undefined : workloadAddress(options.endpoint);
  }

  current(): WorkloadIdentity | string {
    this.need();
    const identity = this.#identity;
    if (identity === undefined) return this.#reason() ?? WAITING;
    return identity.expiresAtMs > this.#options.clock.now() ? identity : expired(identity);
  }

  /** Starts the stream on the first call. */
  need(): void {
    if (this.#settled !== undefined || this.#closed) return;
    this.#settled = Promise.withResolvers();
    const { log, clock } = this.#options;
    if (this.#address === undefined) {
      log.error("a workload identity is needed", { reason: NOWHERE });
      this.#error = NOWHERE;
      this.#settled.resolve();
      return;
    }
    clock.after(PATIENCE_MS, this.#settled.resolve);
    this.#connect(this.#address);
  }

  /** Resolves when a needed identity has arrived, or when there is a reason why it has not. */
  settled(): Promise<void> {
    return this.#settled?.promise ?? Promise.resolve();
  }

  /** @returns null when nothing needs an identity */
  dump(): WorkloadApiDump | null {
    if (this.#settled === undefined) return null;
    const identity = this.#identity;
    const sizes = [...(identity?.bundles ?? [])].map(([name, { length }]) => [name, length] as const);
    return {
      endpoint: this.#options.endpoint ?? null,
      spiffeId: identity?.id.text ?? null,
      serialNumber: identity?.serialNumber ?? null,
      expiresAt: identity === undefined ? null : timeOf(identity),
      trustDomains: Object.fromEntries(sizes),
      fault: this.#reason() ?? null,
    };
  }

  close(): void {
    this.#closed = true;
    this.#stream?.cancel();
    this.#cancelWait?.();
    this.#cancelExpiry?.();
    this.#settled?.resolve();
  }

  #reason(): string | undefined {
    const reasons = new Set([this.#lost, this.#error].filter((reason) => reason !== undefined));
    return reasons.size === 0 ? undefined : [...reasons].join("; ");
  }

  #connect(address: string): void {
    const client = new Client(address, credentials.createInsecure(), CHANNEL_OPTIONS);
    const stream = openStream(client);
    this.#stream = stream;
    let reason = "the agent closed the stream";
    const cancelSilence = this.#options.clock.after(ANSWER_MS, () => {
      reason = "the agent does not answer";
      stream.cancel();
    });
    let over = false;
    const end = (error?: ServiceError): void => {
      if (over) return;
      over = true;
      cancelSilence();
      client.close();
      if (error?.code === status.PERMISSION_DENIED) {
        reason = `the agent refuses: ${error.details}`;
        this.#lose(reason);
      } else if (error !== undefined && error.code !== status.CANCELLED) {
        reason = error.details;
      }
      this.#retry(address, reason);
    };
    stream.on("data", (response: X509SVIDResponse) => {
      cancelSilence();
      this.#take(response);
    });
    stream.on("error", end);
    stream.on("end", () => end());
  }

  #take(response: X509SVIDResponse): void {
    const { log, clock } = this.#options;
    try {
      const identity = readIdentity(response);
      if (identity.expiresAtMs <= clock.now()) throw new ConfigError(`it expired at ${timeOf(identity)}`);
      this.#backoff.reset();
      this.#error = identity.errors[0];
      for (const reason of identity.errors) log.warn("the workload API sent what cannot be used", { reason });
      this.#use(identity);
      const { id, bundles } = identity;
      const trust_domains = [...bundles.keys()].join(" ");
      log.info("workload identity received", { spiffe_id: id.text, expires_at: timeOf(identity), trust_domains });
    } catch (error) {
      // Keep the former identity (SPIFFE Workload API §4.5).
      this.#error = `the workload API sent no usable identity: ${messageOf(error)}`;
      log.error("workload identity refused", { reason: messageOf(error) });
    }
    this.#settled?.resolve();
  }

  #use(identity: WorkloadIdentity): void {
    this.#identity = identity;
    this.#lost = undefined;
    this.#awaitExpiry(identity);
    this.#options.onChange();
  }

  #awaitExpiry(identity: WorkloadIdentity): void {
    const { clock } = this.#options;
    this.#cancelExpiry?.();
    this.#cancelExpiry = clock.after(Math.max(0, identity.expiresAtMs - clock.now()), () => {
      // setTimeout cannot wait longer than 2^31 - 1 ms (about 25 days), so the timer may fire early.
      if (identity.expiresAtMs > clock.now()) return this.#awaitExpiry(identity);
      this.#lose(expired(identity));
      // Reconnect: an agent that has sent no newer identity on this stream may send one on another.
      this.#stream?.cancel();
    });
  }

  #lose(reason: string): void {
    if (this.#identity === undefined) return;
    this.#identity = undefined;
    this.#lost = reason;
    this.#cancelExpiry?.();
    this.#options.log.error("workload identity lost", { reason });
    this.#options.onChange();
  }

  #retry(address: string, reason: string): void {
    this.#stream = undefined;
    if (this.#closed) return;
    const { clock, log, endpoint } = this.#options;
    const waitMs = Math.round(this.#backoff.next());
    // Warn once per reason: an agent may be away for long.
    const say = this.#error === reason ? log.debug : log.warn;
    say("the workload API is out of reach", { endpoint, reason, wait_ms: waitMs });
    this.#error = reason;
    this.#settled?.resolve();
    this.#cancelWait = clock.after(waitMs, () => this.#connect(address));
  }
}

function openStream(client: Client): ClientReadableStream<X509SVIDResponse> {
  const metadata = new Metadata();
  // This header protects the agent against server-side request forgery (SPIFFE Workload Endpoint §5).
  metadata.set("workload.spiffe.io", "true");
  const { path, requestSerialize, responseDeserialize } = METHOD;
  // The method's own schema decodes the messages, so they have this type.
  const decode = responseDeserialize as (bytes: Buffer) => X509SVIDResponse;
  return client.makeServerStreamRequest(path, requestSerialize, decode, create(X509SVIDRequestSchema), metadata);
}

function expired(identity: WorkloadIdentity): string {
  return `the identity ${identity.id.text} expired at ${timeOf(identity)}, and the workload API has sent no newer one`;
}

function timeOf({ expiresAtMs }: WorkloadIdentity): string {
  return new Date(expiresAtMs).toISOString();
}
