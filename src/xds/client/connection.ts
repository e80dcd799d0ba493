/**
 * The xDS client of a data plane: it keeps one delta ADS stream to the controller and reopens it with back-off.
 * `src/runtime` uses it.
 *
 *     start ─▶ connect ─▶ stream open ─▶ first state applied ─▶ connected, ready, back-off reset
 *                ▲            │                                     │
 *                └── wait ◀───┴────────── error or end ◀────────────┘
 *
 * In: an address and `apply`. Out: updates, applied one after another. A data plane that loses its controller keeps
 * serving the state it has (static stability); one that never had a state is not ready. Each stream gets its own gRPC
 * channel, so that the waits happen only here.
 */
import { setTimeout as delay } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import {
  Client,
  connectivityState,
  credentials,
  Metadata,
  type ChannelCredentials,
  type ClientDuplexStream,
} from "@grpc/grpc-js";
import {
  AggregatedDiscoveryService,
  NodeSchema,
  type DeltaDiscoveryRequest,
  type DeltaDiscoveryResponse,
  type Node,
} from "../../../generated/proto/envoy/service/discovery/v3/discovery_pb.ts";
import type { ApplyResult, ResourceUpdate } from "../../ir/resource.ts";
import { createBackoff, type BackoffOptions } from "../../lib/time/backoff.ts";
import { FatalError, messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { methodDefinition } from "../../lib/grpc.ts";
import { GATEWAY_METADATA, MAX_MESSAGE_BYTES } from "../limits.ts";
import { ClientSession } from "./session.ts";
import { Store } from "./store.ts";

export interface XdsClientOptions {
  /** `https://host:port` or `http://host:port`. Without a scheme, TLS is used exactly when `tls` is set. */
  readonly address: string;
  /** `ca` is the PEM of the trusted CA certificates; when unset, those of the system are trusted. */
  readonly tls?: { readonly ca?: string };
  /** Called for every connection, because a mounted token is rotated. */
  readonly token?: () => string | Promise<string>;
  /** Key ("namespace/name") of the Gateway to serve. */
  readonly gateway: string;
  /** Identifies this data plane in the controller's log, for example by its pod. */
  readonly nodeId?: string;
  readonly log: Logger;
  /**
   * Applies an update and returns the resources it refused, which must keep their earlier state. It is not called again
   * before it has settled.
   */
  readonly apply: (update: ResourceUpdate) => Promise<ApplyResult>;
  readonly backoff?: BackoffOptions;
  /** How long a connection may take, in milliseconds, before the next attempt. */
  readonly connectWithinMs?: number;
  /** Counts received messages and ended streams. */
  readonly meter?: StreamMeter;
}

interface StreamMeter {
  /** @param bytes size of the encoded message */
  message(typeUrl: string, bytes: number): void;
  /** Called when a stream could not be opened, broke, or was ended by the controller, but not when `stop` ends it. */
  ended(reason: "ConnectionError" | "Error" | "Complete"): void;
}

export interface XdsClient {
  start(): void;
  /** Resolves when the first full state has been applied. */
  readonly ready: Promise<void>;
  /** Reports whether the client follows the controller's state at this moment. */
  connected(): boolean;
  /** Closes the stream. @returns when no update is being applied any more */
  stop(): Promise<void>;
}

type Stream = ClientDuplexStream<DeltaDiscoveryRequest, DeltaDiscoveryResponse>;

/** @throws FatalError when the address or the name of the Gateway is invalid */
export function createXdsClient(options: XdsClientOptions): XdsClient {
  const target = targetOf(options);
  const node = nodeOf(options);
  const store = new Store();
  const backoff = createBackoff(options.backoff ?? { initialMs: 250, maxMs: 15_000 });
  const stopping = new AbortController();
  const ready = Promise.withResolvers<void>();
  let connected = false;
  /** True once the current stream has delivered a message; it tells a broken stream from one that never opened. */
  let heard = false;
  let running: Promise<void> | undefined;

  const connect = async (): Promise<void> => {
    try {
      await runStream({
        options,
        target,
        node,
        store,
        signal: stopping.signal,
        onMessage(typeUrl, bytes) {
          heard = true;
          options.meter?.message(typeUrl, bytes);
        },
        onState() {
          if (!connected) options.log.info("following the controller", { address: target.authority });
          connected = true;
          backoff.reset();
          ready.resolve();
        },
      });
    } finally {
      connected = false;
    }
  };

  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      let reason = "the controller closed the stream";
      let end: Parameters<StreamMeter["ended"]>[0] = "Complete";
      heard = false;
      try {
        await connect();
      } catch (error) {
        reason = messageOf(error);
        end = heard ? "Error" : "ConnectionError";
      }
      if (stopping.signal.aborted) return;
      options.meter?.ended(end);
      const waitMs = Math.round(backoff.next());
      options.log.warn("the controller is out of reach", { address: target.authority, reason, waitMs });
      // Rejects only when stop() cuts the wait short, and then the loop ends.
      await delay(waitMs, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  };

  return {
    start() {
      running ??= run();
    },
    ready: ready.promise,
    connected: () => connected,
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

interface StreamContext {
  readonly options: XdsClientOptions;
  readonly target: Target;
  readonly node: Node;
  readonly store: Store;
  readonly signal: AbortSignal;
  readonly onMessage: StreamMeter["message"];
  readonly onState: () => void;
}

/**
 * A controller's pod that is just being removed may take a connection and never answer, not even with a reset. Nothing
 * else ends such an attempt for a quarter of an hour: keepalive probes begin when a connection stands.
 */
const CONNECT_WITHIN_MS = 10_000;

/**
 * Runs one stream until it has ended and no update is being applied. @throws with the reason of the end
 */
async function runStream({ options, target, node, store, signal, onMessage, onState }: StreamContext): Promise<void> {
  const { log, apply, token, connectWithinMs = CONNECT_WITHIN_MS } = options;
  const metadata = new Metadata();
  if (token !== undefined) metadata.set("authorization", `Bearer ${await token()}`);
  if (signal.aborted) return;
  const client = new Client(target.authority, target.credentials, CHANNEL_OPTIONS);
  const stream = openStream(client, metadata, onMessage);
  const session = new ClientSession({
    node,
    store,
    log,
    apply,
    send: (request) => stream.write(request),
    onState,
  });
  const cancel = (): void => stream.cancel();
  signal.addEventListener("abort", cancel);
  let deadline: NodeJS.Timeout | undefined;
  try {
    session.start();
    await new Promise<void>((resolve, reject) => {
      const giveUp = (): void => {
        if (client.getChannel().getConnectivityState(false) === connectivityState.READY) return;
        reject(new Error(`no connection within ${connectWithinMs} ms`));
      };
      deadline = setTimeout(giveUp, connectWithinMs);
      stream.on("data", (response: DeltaDiscoveryResponse) => session.receive(response));
      stream.on("error", reject);
      stream.on("end", resolve);
    });
  } finally {
    clearTimeout(deadline);
    signal.removeEventListener("abort", cancel);
    stream.cancel();
    await session.end();
    client.close();
  }
}

const CHANNEL_OPTIONS = {
  "grpc.max_receive_message_length": MAX_MESSAGE_BYTES,
  "grpc.max_send_message_length": MAX_MESSAGE_BYTES,
  // Detects, within this time, a controller that vanished without closing the connection.
  "grpc.keepalive_time_ms": 30_000,
  "grpc.keepalive_timeout_ms": 20_000,
  // The waits between attempts are controlled here; a channel shared with an earlier attempt would add its own.
  "grpc.use_local_subchannel_pool": 1,
  "grpc.enable_retries": 0,
};

function openStream(client: Client, metadata: Metadata, onMessage: StreamMeter["message"]): Stream {
  const method = methodDefinition(AggregatedDiscoveryService.method.deltaAggregatedResources);
  const read = (bytes: Buffer): DeltaDiscoveryResponse => {
    // The method descriptor determines the type.
    const message = method.responseDeserialize(bytes) as DeltaDiscoveryResponse;
    onMessage(message.typeUrl, bytes.length);
    return message;
  };
  const stream = client.makeBidiStreamRequest(method.path, method.requestSerialize, read, metadata);
  // The method descriptor determines both message types; the generic adapter knows them only as Message.
  return stream as unknown as Stream;
}

interface Target {
  readonly authority: string;
  readonly credentials: ChannelCredentials;
}

function targetOf({ address, tls }: XdsClientOptions): Target {
  const match = /^(?:(https?):\/\/)?([^/]+:\d+)\/?$/.exec(address);
  const authority = match?.[2];
  if (authority === undefined) throw new FatalError(`"${address}" is no address of a controller: host:port is needed`);
  const secure = match?.[1] === undefined ? tls !== undefined : match[1] === "https";
  if (!secure && tls !== undefined) throw new FatalError(`"${address}" asks for plaintext, but a CA is set`);
  if (!secure) return { authority, credentials: credentials.createInsecure() };
  return { authority, credentials: credentials.createSsl(tls?.ca === undefined ? null : Buffer.from(tls.ca)) };
}

function nodeOf({ gateway, nodeId }: XdsClientOptions): Node {
  const match = /^([^/~]+)\/([^/~]+)$/.exec(gateway);
  if (match === null) throw new FatalError(`"${gateway}" is no Gateway: namespace/name is needed`);
  return create(NodeSchema, {
    id: nodeId ?? "",
    metadata: { [GATEWAY_METADATA]: `${match[1]}~${match[2]}` },
  });
}
