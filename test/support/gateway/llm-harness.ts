/**
 * In-memory dependencies of the LLM handler for its tests: bodies, an exchange that records what the handler does, an
 * upstream that records its requests, and configured providers.
 */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  AiBackendSchema,
  BackendAuthSchema,
  BackendSettingsSchema,
  type CredentialLocationSchema,
  ProviderSchema,
  type AiBackend,
  type BackendSettings,
  type CloudACredential,
  type Provider,
} from "../../../generated/proto/gwproxy/config/v1/ir_pb.ts";
import { HeaderList } from "../../../src/lib/header-list.ts";
import { compileAuth } from "./key-auth.ts";
import { createLogger } from "../../../src/lib/log.ts";
import { testMembers } from "./endpoints.ts";
import type { BackendDeps } from "../../../src/proxy/backends/handler.ts";
import { connectionOf, type UpstreamTarget } from "../../../src/proxy/upstream/dial/connection-settings.ts";
import type { Upstream, UpstreamRequest, UpstreamResponse } from "../../../src/proxy/upstream/upstream.ts";
import { sealOf } from "../../../src/proxy/mcp/session/session-keys.ts";
import { Sessions } from "../../../src/proxy/mcp/session/sessions.ts";
import { allocateShared, openShared } from "../../../src/proxy/shared-state.ts";
import { ProxyError } from "../../../src/proxy/exchange/errors.ts";
import { Catalogs } from "../../../src/proxy/llm/cost/catalogs.ts";
import type { Ledger } from "../../../src/proxy/llm/call/ledger.ts";
import type { Body, BodyStream } from "../../../src/proxy/exchange/body.ts";
import type { RoutedExchange, Outcome, TokenGate } from "../../../src/proxy/exchange/exchange.ts";

/** A ledger that charges nothing. */
export const NO_LEDGER: Ledger = {
  countsText: false,
  sent: () => undefined,
  flowing: () => undefined,
  addText: () => undefined,
  record: () => undefined,
  settle: () => undefined,
};

/** Returns a stream that delivers the given chunks and then ends or breaks. */
export function streamFrom(chunks: readonly Buffer[], broken?: Error): BodyStream {
  const state = { at: 0, over: false };
  let run = (): void => undefined;
  return {
    read(sink) {
      run = () => {
        while (!state.over && state.at < chunks.length) if (!sink.data(chunks[state.at++] as Buffer)) return;
        if (state.over) return;
        state.over = true;
        if (broken === undefined) sink.end([]);
        else sink.error(broken);
      };
      run();
    },
    resume: () => run(),
    destroy: () => void (state.over = true),
  };
}

/** Reads a body to its end or to its error. */
export async function readBody(body: Body): Promise<{ text: string; error: Error | undefined }> {
  if (body === null || Buffer.isBuffer(body)) return { text: (body ?? "").toString(), error: undefined };
  return new Promise((resolve) => {
    let text = "";
    body.read({
      data: (chunk) => {
        text += chunk.toString("latin1");
        return true;
      },
      end: () => resolve({ text: Buffer.from(text, "latin1").toString(), error: undefined }),
      error: (error) => resolve({ text, error }),
    });
  });
}

export class TestExchange implements RoutedExchange {
  readonly startedAtMs: number = performance.now();
  readonly startedAt: Date = new Date();
  readonly listener = { bind: "b", gateway: "g", namespace: "n", name: "l" };
  route: RoutedExchange["route"] = undefined;
  backend: RoutedExchange["backend"] = undefined;
  readonly source = { address: "127.0.0.1", port: 1 };
  calledAtMs: number | undefined = undefined;
  answeredAtMs: number | undefined = undefined;
  method = "POST";
  target = "/v1/chat/completions";
  host = "gateway.test";
  scheme: RoutedExchange["scheme"] = "http";
  readonly originalScheme = "http";
  readonly outboundKind = "Primary";
  readonly trace = undefined;
  readonly version = "1.1";
  readonly requestHeaders: HeaderList;
  readonly originalTarget = "/v1/chat/completions";
  readonly originalHost = "gateway.test";
  readonly proxyAuthorization = undefined;
  readonly cdnLoop = undefined;
  requestLimitBytes = 65_536;
  responseLimitBytes = 65_536;
  readonly connect = false;
  requestBody: Body;
  deadlineAtMs: number | undefined = undefined;
  backendTimeoutMs: number | undefined = undefined;
  endpoint: string | undefined = undefined;
  hostChoice: RoutedExchange["hostChoice"] = undefined;
  retry: RoutedExchange["retry"] = undefined;
  tried: RoutedExchange["tried"] = undefined;
  attempt: RoutedExchange["attempt"] = undefined;
  replyTrailers: RoutedExchange["replyTrailers"] = undefined;
  readonly matchedPrefix = undefined;
  readonly queuedHeaders: HeaderList = new HeaderList();
  readonly tokenGates: TokenGate[] = [];
  readonly roots: Map<string, unknown> = new Map();
  readonly #done: ((outcome: Outcome) => void)[] = [];

  constructor(body: Buffer, headers: HeaderList = new HeaderList(["content-type", "application/json"])) {
    this.requestBody = body;
    this.requestHeaders = headers;
  }

  root(name: string): unknown {
    return this.roots.get(name);
  }

  setRoot(name: string, value: unknown): void {
    this.roots.set(name, value);
  }

  async bufferRequestBody(limitBytes: number): Promise<Buffer | undefined> {
    const body = this.requestBody;
    return Buffer.isBuffer(body) && body.length <= limitBytes ? body : undefined;
  }

  addLogField(): void {}
  addSecretParameter(): void {}

  onAbort(): void {}

  onDone(callback: (outcome: Outcome) => void): void {
    this.#done.push(callback);
  }

  finish(clientGone = false): void {
    for (const callback of this.#done.splice(0))
      callback({ status: 200, requestBytes: 0, responseBytes: 0, durationMs: 0, error: undefined, clientGone });
  }

  get llm(): Record<string, unknown> {
    return (this.roots.get("llm") ?? {}) as Record<string, unknown>;
  }
}

export interface Sent {
  readonly target: UpstreamTarget;
  readonly request: UpstreamRequest;
}

/** Returns an upstream that answers from memory and records its requests. */
export function fakeUpstream(answer: (sent: Sent) => UpstreamResponse): Upstream & { readonly sent: Sent[] } {
  const sent: Sent[] = [];
  return {
    sent,
    async send(target, request) {
      sent.push({ target, request });
      return answer({ target, request });
    },
    open: () => Promise.reject(new ProxyError("upstream_unreachable")),
    retire: () => undefined,
    forget: () => undefined,
    identityChanged: () => undefined,
    connections: () => new Map(),
    close: () => undefined,
  };
}

export function testDeps(upstream: Upstream): BackendDeps {
  return {
    ...testMembers(),
    owner: "backend/test",
    place: "backend/test|",
    catalogs: new Catalogs(),
    log: createLogger({ level: "off", modules: new Map() }, () => undefined),
    upstream,
    settings: (_section, inline, { defaults, behind } = {}): BackendSettings =>
      create(BackendSettingsSchema, { ...defaults, ...inline, ...behind }),
    auth: compileAuth,
    connection: ({ tls, tcp }) => connectionOf({ tls, tcp }),
    sessions: new Sessions(sealOf([]), openShared(allocateShared(1), 0).sessions),
    behind: () => {
      throw new ProxyError("backend_invalid");
    },
    serviceEndpoint: () => undefined,
    callout: () => {
      throw new ProxyError("backend_invalid");
    },
    pickerCallout: () => {
      throw new ProxyError("backend_invalid");
    },
    traffic: () => undefined,
    hostCallout: () => {
      throw new ProxyError("backend_invalid");
    },
  };
}

export type ProviderInit = Partial<Omit<Provider, "$typeName" | "formats" | "settings">> & {
  readonly formats?: readonly { type: string; path?: string }[];
  readonly credential?: string;
  /** Keys that requests are signed with. */
  readonly cloudA?: CloudACredential;
  /** Location of the credential; by default the one of the provider. */
  readonly location?: MessageInitShape<typeof CredentialLocationSchema>["location"];
};

export function aiBackend({ credential, cloudA, location, formats = [], ...rest }: ProviderInit): AiBackend {
  const place = location === undefined ? {} : { location: { location } };
  const settings = create(BackendSettingsSchema);
  if (cloudA !== undefined) settings.auth = create(BackendAuthSchema, { kind: { case: "cloudA", value: cloudA } });
  if (credential !== undefined)
    settings.auth = create(BackendAuthSchema, { kind: { case: "key", value: { value: credential, ...place } } });
  const node = create(ProviderSchema, { ...rest, settings });
  node.formats = formats.map(({ type, path = "" }) => ({
    $typeName: "gwproxy.config.v1.ProviderFormat",
    type,
    path,
  }));
  return create(AiBackendSchema, { groups: [{ providers: [node] }] });
}
