/** A whole gateway in this process to which a test passes objects one by one, as watches do, without files. */
import assert from "node:assert/strict";
import { createEmbedded } from "../../../src/runtime/embedded.ts";
import { createLogger } from "../../../src/lib/log.ts";
import { createProxy } from "../../../src/proxy/proxy.ts";
import { applyDefaults } from "../../../generated/defaults.ts";
import { objectId, type KubeObject } from "../../../src/api/object.ts";
import type { SourceSink } from "../../../src/sources/source.ts";
import { createTranslator } from "../../../src/translator/translate.ts";
import type { ProofContext } from "../proofs/prove.ts";

export type Manifest = KubeObject & { readonly spec?: unknown };

export interface FedGateway {
  /** URL http://127.0.0.1:port of its only listener. */
  readonly url: string;
  /**
   * Applies one step; resolves when it serves.
   * @throws when a part of it was refused
   */
  set(...objects: readonly Manifest[]): Promise<void>;
  remove(...objects: readonly Manifest[]): Promise<void>;
}

/** @param objects objects with exactly one Gateway, which has one listener */
export async function startFedGateway(
  context: Pick<ProofContext, "after">,
  ...objects: readonly Manifest[]
): Promise<FedGateway> {
  const log = createLogger({ level: "error", modules: new Map() }, (line) => void process.stderr.write(line));
  const proxy = createProxy({ bindAddress: "127.0.0.1", log, ports: () => 0 });
  const translator = createTranslator({ controllerName: "gwproxy.dev/gwproxy", implicitClass: "gwproxy" });
  const failures: unknown[] = [];
  let sink: SourceSink | undefined;
  const embedded = createEmbedded({
    log,
    source: {
      start(given) {
        sink = given;
        return Promise.resolve();
      },
      stop: () => Promise.resolve(),
    },
    translator,
    proxy,
    onApplied: (_update, { refused }) => void failures.push(...refused),
    onReviewed: () => undefined,
    onDiagnostics: () => undefined,
    onFailure: (error) => void failures.push(error),
  });
  context.after(async () => {
    await embedded.stop();
    proxy.close();
  });
  await embedded.start();
  const settle = async (): Promise<void> => {
    await embedded.settled();
    assert.deepEqual([...failures, ...translator.diagnostics()], []);
  };
  const set = (...changed: readonly Manifest[]): Promise<void> => {
    sink?.apply(changed.map((object) => ({ type: "set", object: complete(object) })));
    return settle();
  };
  await set(...objects);
  const [listener] = proxy.listeners();
  assert.ok(listener, "nothing listens");
  return {
    url: `http://127.0.0.1:${listener.boundPort}`,
    set,
    remove: (...gone) => {
      sink?.apply(gone.map((object) => ({ type: "delete", id: objectId(complete(object)) })));
      return settle();
    },
  };
}

/** Completes an object as an API server stores it. */
function complete(object: Manifest): KubeObject {
  const { apiVersion, kind, metadata } = object;
  const group = apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "";
  const creationTimestamp = "1970-01-01T00:00:00Z";
  return applyDefaults(`${group}/${kind}`, {
    ...object,
    metadata: { namespace: "default", creationTimestamp, ...metadata },
  });
}
