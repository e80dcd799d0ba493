/**
 * The discovery server: delta ADS (`envoy.service.discovery.v3`, incremental xDS) with the resource types of
 * `gwproxy.config.v1`. `src/controller` uses it.
 *
 * In: a feed of resources per Gateway. Out: streams to data planes, and their ACKs and NACKs for the status.
 * `authorize` decides which data plane may follow which Gateway.
 *
 *     first request ─▶ gateway of the node ─▶ authorize ─▶ session on the feed ─▶ release
 *     later requests ──── wait until the session is open ────▶ session.request
 *
 * A data plane names its Gateway in the node metadata of its first request: key `gateway`, value `namespace~name`.
 */
import { type Server as NetServer, createServer, type Socket } from "node:net";
import { Server, ServerCredentials, status, type ServerDuplexStream } from "@grpc/grpc-js";
import {
  AggregatedDiscoveryService,
  type DeltaDiscoveryRequest,
  type DeltaDiscoveryResponse,
  type Node,
} from "../../../generated/proto/envoy/service/discovery/v3/discovery_pb.ts";
import type { Resource, ResourceUpdate } from "../../ir/resource.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Logger } from "../../lib/log.ts";
import { serviceDefinition } from "../../lib/grpc.ts";
import { GATEWAY_METADATA, MAX_MESSAGE_BYTES } from "../limits.ts";
import type { RejectedResource } from "../nack.ts";
import { ReloadableCredentials, type ServerCertificate } from "./credentials.ts";
import type { TypeSync } from "./session-sync.ts";
import { DiscoveryRequestError, Session, type AckedResource } from "./session.ts";

/**
 * Source of the resources. Gateways are named "namespace/name", as in the IR. The feed must hold a full state before
 * the server listens: a reconnecting data plane has to remove every resource that the feed does not name.
 */
export interface ResourceFeed {
  snapshot(gateway: string): readonly Resource[];
  /** @returns the function that ends the subscription */
  subscribe(gateway: string, listener: (update: ResourceUpdate) => void): () => void;
}

interface StreamIdentity {
  /** Key ("namespace/name") of the Gateway. */
  readonly gateway: string;
  /** Token from `authorization: Bearer …`; it is never logged. */
  readonly token: string | undefined;
}

/** Distinguishes the answers of one data plane from those of another, for the life of its stream. */
export type StreamId = symbol;

export type AuthorizeStream = (
  identity: StreamIdentity,
) => Promise<{ allowed: true } | { allowed: false; reason: string }>;

export interface XdsServerOptions {
  readonly log: Logger;
  readonly feed: ResourceFeed;
  /**
   * Decides about each stream; when unset, every stream is served. When it throws, the stream is refused and the data
   * plane tries again.
   */
  readonly authorize?: AuthorizeStream;
  /** Certificate of the server; when unset, the server speaks plaintext. */
  readonly tls?: ServerCertificate;
  /** Serves plaintext on the same port as well; only with `tls`. */
  readonly alsoPlaintext?: boolean;
  /** Called when a data plane has applied these resources, now or before it connected. */
  readonly onAck?: (gateway: string, resources: readonly AckedResource[], stream: StreamId) => void;
  readonly onNack?: (gateway: string, refused: readonly RejectedResource[], stream: StreamId) => void;
  /** Called when a stream has ended and no more answers come from it. */
  readonly onClose?: (gateway: string, stream: StreamId) => void;
}

/** A data plane that is connected, as the dump of the controller shows it. */
export interface ConnectedDataPlane {
  /** "namespace/name" */
  readonly gateway: string;
  /** What the data plane calls itself. */
  readonly node: string;
  readonly peer: string;
  /** RFC 3339. */
  readonly connectedAt: string;
  /** By the URL of each type of resources. */
  readonly sync: Readonly<Record<string, TypeSync>>;
}

export interface XdsServer {
  /** @returns the bound port, which the system chose when port 0 was requested */
  listen(address: { host: string; port: number }): Promise<number>;
  /** Replaces the certificate of a server that was created with one. */
  replaceCertificate(certificate: ServerCertificate): void;
  /** Returns the number of connected data planes of a Gateway ("namespace/name"). */
  connected(gateway: string): number;
  /** Returns that number for each Gateway that has any. */
  connections(): Iterable<readonly [gateway: string, dataPlanes: number]>;
  dataPlanes(): ConnectedDataPlane[];
  stop(): void;
}

type Call = ServerDuplexStream<DeltaDiscoveryRequest, DeltaDiscoveryResponse>;

interface Connection extends Omit<ConnectedDataPlane, "sync"> {
  readonly session: Session;
}

/** The connections of each Gateway that has any. */
type Connections = Map<string, Set<Connection>>;

/** Limit of the name of a node, which the data plane chooses; names in Kubernetes have at most 253 characters. */
const MAX_NODE_LENGTH = 253;

export function createXdsServer(options: XdsServerOptions): XdsServer {
  const credentials = options.tls === undefined ? undefined : new ReloadableCredentials(options.tls);
  const connections: Connections = new Map();
  const server = new Server({
    "grpc.max_receive_message_length": MAX_MESSAGE_BYTES,
    "grpc.max_send_message_length": MAX_MESSAGE_BYTES,
    // Detects, within this time, a node that vanished without closing the connection, and frees its session.
    "grpc.keepalive_time_ms": 30_000,
    "grpc.keepalive_timeout_ms": 20_000,
  });
  server.addService(serviceDefinition(AggregatedDiscoveryService), {
    deltaAggregatedResources: (call: Call) => serveStream(call, options, connections),
  });
  const either =
    credentials !== undefined && options.alsoPlaintext === true ? createEitherListener(server, credentials) : undefined;
  return {
    listen: ({ host, port }) =>
      either === undefined ? bind(server, host, port, credentials) : bindEither(either, host, port),
    replaceCertificate(certificate) {
      if (credentials === undefined) throw new TypeError("the discovery server was made without TLS");
      credentials.replace(certificate);
    },
    connected: (gateway) => connections.get(gateway)?.size ?? 0,
    connections: () => Array.from(connections, ([gateway, { size }]): [string, number] => [gateway, size]),
    dataPlanes: () =>
      [...connections.values()].flatMap((all) =>
        Array.from(all, ({ session, ...named }) => ({ ...named, sync: session.sync() })),
      ),
    stop() {
      either?.close();
      server.forceShutdown();
    },
  };
}

function bind(
  server: Server,
  host: string,
  port: number,
  credentials: ServerCredentials = ServerCredentials.createInsecure(),
): Promise<number> {
  const authority = host.includes(":") ? `[${host}]` : host;
  return new Promise((resolve, reject) => {
    server.bindAsync(`${authority}:${port}`, credentials, (error, bound) => {
      if (error === null) resolve(bound);
      else reject(error);
    });
  });
}

function bindEither(listener: NetServer, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    listener.once("error", reject);
    listener.listen({ host, port }, () => {
      const bound = listener.address();
      resolve(typeof bound === "object" && bound !== null ? bound.port : port);
    });
  });
}

/** Serves one stream. Requests wait until the first one has been authorized. */
function serveStream(call: Call, options: XdsServerOptions, connections: Connections): void {
  const { log } = options;
  let opening: Promise<Session | undefined> | undefined;
  let release = (): void => {};
  let over = false;
  const end = (code: status, details: string): void => {
    if (over) return;
    close();
    call.emit("error", { code, details });
  };
  const close = (): void => {
    over = true;
    release();
  };
  const open = async (node: Node | undefined): Promise<Session | undefined> => {
    const gateway = gatewayOf(node);
    if (gateway === undefined) {
      end(status.INVALID_ARGUMENT, `node metadata "${GATEWAY_METADATA}" must be "namespace~name"`);
      return undefined;
    }
    const rejection = await findRejection(call, gateway, options);
    if (rejection !== undefined) {
      log.warn("a data plane was refused", { gateway, peer: call.getPeer(), reason: rejection.details });
      end(rejection.code, rejection.details);
    }
    // The client may have gone during the authorization; then nothing must be subscribed for it.
    if (over) return undefined;
    const started = startSession(call, { gateway, node: node?.id ?? "" }, options, connections);
    release = started.release;
    log.info("a data plane connected", { gateway, node: node?.id, peer: call.getPeer() });
    return started.session;
  };
  call.on("data", (request: DeltaDiscoveryRequest) => {
    opening ??= open(request.node);
    opening
      .then((session) => (over ? undefined : session?.request(request)))
      .catch((error: unknown) => {
        if (error instanceof DiscoveryRequestError) return end(status.INVALID_ARGUMENT, error.message);
        log.error("a discovery stream failed", { reason: messageOf(error) });
        end(status.INTERNAL, "internal error");
      });
  });
  call.on("end", () => {
    close();
    call.end();
  });
  call.on("cancelled", close);
  call.on("close", close);
  // The transport broke; the other events report the details.
  call.on("error", close);
}

function startSession(
  call: Call,
  { gateway, node }: { readonly gateway: string; readonly node: string },
  { feed, log, onAck, onNack, onClose }: XdsServerOptions,
  connections: Connections,
): { session: Session; release: () => void } {
  const stream: StreamId = Symbol(gateway);
  const session = new Session(
    {
      send: (response) => call.write(response),
      acked: (resources) => onAck?.(gateway, resources, stream),
      nacked(refused) {
        for (const { type, key, reason } of refused) {
          log.warn("a data plane refused a resource", { gateway, type, key, reason });
        }
        onNack?.(gateway, refused, stream);
      },
    },
    log,
  );
  call.on("drain", () => session.drained());
  // No change can be lost between snapshot and subscription, because both run in the same turn of the event loop.
  session.update({ set: feed.snapshot(gateway), removed: [] });
  const unsubscribe = feed.subscribe(gateway, (update) => session.update(update));
  const connection: Connection = {
    gateway,
    node: node.slice(0, MAX_NODE_LENGTH),
    peer: call.getPeer(),
    connectedAt: new Date().toISOString(),
    session,
  };
  const siblings = connections.get(gateway) ?? new Set();
  connections.set(gateway, siblings.add(connection));
  let released = false;
  return {
    session,
    release() {
      if (released) return;
      released = true;
      unsubscribe();
      session.close();
      siblings.delete(connection);
      if (siblings.size === 0) connections.delete(gateway);
      log.info("a data plane disconnected", { gateway });
      onClose?.(gateway, stream);
    },
  };
}

async function findRejection(
  call: Call,
  gateway: string,
  { authorize, log }: XdsServerOptions,
): Promise<{ code: status; details: string } | undefined> {
  if (authorize === undefined) return undefined;
  const token = tokenOf(call);
  try {
    const verdict = await authorize({ gateway, token });
    if (verdict.allowed) return undefined;
    return { code: token === undefined ? status.UNAUTHENTICATED : status.PERMISSION_DENIED, details: verdict.reason };
  } catch (error) {
    log.error("a data plane could not be authorized", { gateway, reason: messageOf(error) });
    return { code: status.UNAVAILABLE, details: "the token could not be reviewed" };
  }
}

function tokenOf(call: Call): string | undefined {
  const [header] = call.metadata.get("authorization");
  const match = typeof header === "string" ? /^Bearer +(\S+)$/i.exec(header) : null;
  return match?.[1];
}

function gatewayOf(node: Node | undefined): string | undefined {
  const text = node?.metadata?.[GATEWAY_METADATA];
  const match = typeof text === "string" ? /^([^~/]+)~([^~/]+)$/.exec(text) : null;
  return match === null ? undefined : `${match[1]}/${match[2]}`;
}

/**
 * Content type of a TLS handshake record (RFC 8446 §5.1). HTTP/2 in plaintext begins with the letter P (RFC 9113 §3.4).
 */
const TLS_HANDSHAKE = 0x16;

/** A connection that sends no byte within this time is closed. */
const FIRST_BYTE_LIMIT_MS = 10_000;

/**
 * Accepts TLS and plaintext on one port, distinguished by the first byte, so that data planes of both kinds stay
 * connected while a fleet moves from one to the other.
 * @returns a server that is not listening yet and passes its connections to `server`
 */
function createEitherListener(server: Server, credentials: ServerCredentials): NetServer {
  const secure = server.createConnectionInjector(credentials);
  const plain = server.createConnectionInjector(ServerCredentials.createInsecure());
  return createServer((socket: Socket) => {
    socket.setNoDelay(true);
    socket.setTimeout(FIRST_BYTE_LIMIT_MS, () => socket.destroy());
    // Handles a peer that resets before its first byte; later the HTTP/2 session has its own listener.
    socket.on("error", () => socket.destroy());
    socket.once("readable", () => {
      const first: unknown = socket.read(1);
      if (!Buffer.isBuffer(first)) return socket.destroy();
      socket.setTimeout(0);
      socket.removeAllListeners("timeout");
      socket.unshift(first);
      (first[0] === TLS_HANDSHAKE ? secure : plain).injectConnection(socket);
    });
  });
}
