/**
 * Starts a whole gateway in this process for one test, wired as `gwproxy up` does it: manifests in, real sockets out.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createEmbedded } from "../../../src/runtime/embedded.ts";
import { createManifestSource, fileTranslation } from "../../../src/runtime/manifests.ts";
import type { ResourceUpdate } from "../../../src/ir/resource.ts";
import { createLogger } from "../../../src/lib/log.ts";
import { createProxy, type Proxy, type ProxyOptions } from "../../../src/proxy/proxy.ts";
import type { ObjectEvent, Source, SourceDiagnostic } from "../../../src/sources/source.ts";
import { createTranslator } from "../../../src/translator/translate.ts";
import type { Translator } from "../../../src/translator/translator.ts";
import { expectEvent } from "../proofs/expect-event.ts";
import { NotReadyError, type Alteration, type ProofContext } from "../proofs/prove.ts";

export interface TestGateway {
  /** Returns http://127.0.0.1:port of the listener that has this port in the manifest. */
  url(port?: number): string;
  /** Rewrites the manifest file; resolves when the change serves. */
  change(manifests: string): Promise<void>;
  /** Resolves when the check holds. The check runs now and after each step that reaches the proxy. */
  until(check: () => Promise<boolean>): Promise<void>;
  readonly proxy: Proxy;
  readonly translator: Translator;
  /** Every step that reached the proxy, oldest first; the first one is the start. */
  readonly updates: readonly ResourceUpdate[];
  problems(): readonly SourceDiagnostic[];
}

/** Manifests that most tests start from: one Gateway `gw` with the listener `http` on port 8080. */
export const GATEWAY: string = gatewayOf(["{name: http, port: 8080, protocol: HTTP}"]);

/**
 * Returns a Gateway `gw`.
 * @param listeners flow YAML of each listener
 * @param more further members of its spec, indented by two
 */
export function gatewayOf(listeners: readonly string[], more = ""): string {
  return `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw}
spec:
  gatewayClassName: gwproxy
  listeners:
${listeners.map((listener) => `    - ${listener}`).join("\n")}
${more}`;
}

/** Returns a route `name` that sends everything (or a path prefix) to the GwBackend `backend`. */
export function route(name: string, backend: string, prefix = "/"): string {
  return `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: ${name}}
spec:
  parentRefs: [{name: gw}]
  rules:
    - name: rule
      matches: [{path: {type: PathPrefix, value: ${prefix}}}]
      backendRefs: [{group: gwproxy.dev, kind: GwBackend, name: ${backend}}]
`;
}

export function staticBackend(name: string, port: number): string {
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwBackend
metadata: {name: ${name}}
spec:
  static: {host: 127.0.0.1, port: ${port}}
`;
}

/**
 * Returns a GwPolicy on the HTTPRoute `routeName`.
 * @param spec YAML of spec without targetRefs, indented by two
 */
export function routePolicy(name: string, routeName: string, spec: string): string {
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwPolicy
metadata: {name: ${name}}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: ${routeName}}]
${spec}
`;
}

/**
 * Returns a GwPolicy on the Gateway `gw`.
 * @param spec as for routePolicy
 */
export function gatewayPolicy(name: string, spec: string): string {
  return `
apiVersion: gwproxy.dev/v1alpha1
kind: GwPolicy
metadata: {name: ${name}}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]
${spec}
`;
}

/** Returns a Secret or ConfigMap with PEM texts. */
export function pemObject(
  kind: "ConfigMap" | "Secret",
  name: string,
  entries: Readonly<Record<string, string>>,
): string {
  const data = Object.entries(entries).map(([key, pem]) => `  ${key}: |\n    ${pem.trim().replaceAll("\n", "\n    ")}`);
  const field = kind === "Secret" ? "stringData" : "data";
  return [`apiVersion: v1`, `kind: ${kind}`, `metadata: {name: ${name}}`, `${field}:`, ...data].join("\n");
}

/** Starts a gateway with one route `web` to 127.0.0.1:port, and further manifests. */
export function startWeb(context: ProofContext, port: number, ...more: readonly string[]): Promise<TestGateway> {
  return startGateway(context, documents(GATEWAY, staticBackend("web", port), route("web", "web"), ...more));
}

/** Starts a gateway like startWeb, with this `spec.traffic` in flow YAML on the route. */
export function withTraffic(context: ProofContext, port: number, traffic: string): Promise<TestGateway> {
  return startWeb(context, port, routePolicy("policy", "web", `  traffic: ${traffic}`));
}

export function documents(...parts: readonly string[]): string {
  return parts.join("\n---\n");
}

/** @param settings dependencies of the data plane that the test controls: its clock, random numbers and locality */
export async function startGateway(
  context: ProofContext,
  manifests: string,
  settings: Partial<
    Pick<
      ProxyOptions,
      "nowMs" | "clock" | "random" | "locality" | "telemetry" | "spiffeEndpoint" | "log" | "sessionKeys"
    >
  > = {},
): Promise<TestGateway> {
  const folder = mkdtempSync(join(tmpdir(), "gwproxy-test-"));
  const file = join(folder, "manifests.yaml");
  writeFileSync(file, manifests);
  // Admission may refuse the altered object; the proxy's log about it would only be noise.
  const print = (line: string): void => void (context.alteration ?? process.stderr.write(line));
  const log = createLogger({ level: "error", modules: new Map() }, print);
  const proxy = createProxy({ bindAddress: "127.0.0.1", log, ports: () => 0, ...settings });
  const translator = createTranslator(fileTranslation({ enableInference: true }));
  const files = createManifestSource([folder], log);
  let problems: readonly SourceDiagnostic[] = [];
  let failure: unknown;
  const updates: ResourceUpdate[] = [];
  let nextStep = Promise.withResolvers<void>();
  const embedded = createEmbedded({
    log,
    source: withAlteration(context.alteration, files),
    translator,
    proxy,
    onApplied: (update) => void updates.push(update),
    onReviewed() {
      nextStep.resolve();
      nextStep = Promise.withResolvers();
    },
    onDiagnostics: (list) => {
      problems = list;
    },
    onFailure: (error) => {
      failure = error;
    },
  });
  context.after(async () => {
    await embedded.stop();
    await proxy.close();
    rmSync(folder, { recursive: true, force: true });
  });
  await embedded.start();
  if (failure !== undefined) throw failure;
  return {
    proxy,
    translator,
    updates,
    problems: () => problems,
    url(port = 8080) {
      const listener = proxy.listeners().find((each) => each.port === port);
      if (listener === undefined) throw new NotReadyError(`no listener serves port ${port}`);
      return `http://127.0.0.1:${listener.boundPort}`;
    },
    async until(check) {
      for (;;) {
        const { promise } = nextStep;
        if (await check()) return;
        await expectEvent(context, promise, "a step that makes the expected difference");
      }
    },
    async change(text) {
      writeFileSync(file, text);
      await files.reload();
      await embedded.settled();
      if (failure !== undefined) throw failure;
    },
  };
}

/** Wraps a source so that one field is altered after admission and before translation; the proof must then fail. */
function withAlteration(alteration: Alteration | undefined, source: Source): Source {
  if (alteration === undefined) return source;
  const alter = (event: ObjectEvent): ObjectEvent =>
    event.type === "set" ? { type: "set", object: alteration.alter(event.object) } : event;
  return {
    start: (sink) =>
      source.start({ apply: (events) => sink.apply(events.map(alter)), report: (list) => sink.report(list) }),
    stop: () => source.stop(),
  };
}
