/**
 * Deploys a Gateway with GwParameters into an API server that only stores: translator, deployer and client are the real
 * ones, and objects arrive there over HTTP. The proofs of GwParameters use it; what a real API server makes of the
 * objects is in `test/cluster`.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { GwParametersSpec } from "../../../generated/types/parameters.ts";
import { validate } from "../../../src/admission/validate.ts";
import type { KubeObject } from "../../../src/api/object.ts";
import { Deployer } from "../../../src/deployer/deployer.ts";
import type { DeployerSettings } from "../../../src/deployer/objects/context.ts";
import { createKubernetesClient, type KubernetesClient } from "../../../src/sources/kubernetes/client.ts";
import { DEPLOYED_KINDS, STANDARD_KINDS } from "../../../src/sources/kubernetes/kinds.ts";
import { createKubernetesObjectClient } from "../../../src/sources/kubernetes/object-client.ts";
import { createTranslator } from "../../../src/translator/translate.ts";
import { DEPLOYER_SETTINGS } from "../fixtures/rendered-objects.ts";
import { recordingLog } from "../gateway/silent-log.ts";
import type { ProofContext } from "../proofs/prove.ts";

/** An applied object; the tests know what its kind has. */
export interface AppliedObject extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: Readonly<Record<string, unknown>>;
}

export interface Deployed {
  /** Objects in the order in which they were applied. */
  readonly objects: readonly AppliedObject[];
  /** Why the Gateway is not accepted, or undefined. */
  readonly error: string | undefined;
}

interface Levels {
  readonly class?: GwParametersSpec;
  readonly gateway?: GwParametersSpec;
}

/** @throws AssertionError when admission refuses the parameters, as they may be altered by a counter-proof */
export async function deploy(
  context: ProofContext,
  levels: Levels,
  settings: Partial<DeployerSettings> = {},
): Promise<Deployed> {
  const { client, applied } = await startStore(context);
  let reportFailure = (_failure: string | undefined): void => undefined;
  const failed = new Promise<string>((resolve) => {
    reportFailure = (failure) => void (failure === undefined ? undefined : resolve(failure));
  });
  const translator = createTranslator({ controllerName: "gwproxy.dev/gwproxy", implicitClass: undefined });
  const deployer = new Deployer({
    client: createKubernetesObjectClient({ client, kinds: [...STANDARD_KINDS, ...DEPLOYED_KINDS], fieldManager: "c" }),
    log: recordingLog().log,
    settings: { ...DEPLOYER_SETTINGS, ...settings },
    onState: () => reportFailure(deployer.state("team/edge").failure),
  });
  context.after(() => deployer.stop());
  const objects = manifests(levels).map((object) => context.alteration?.alter(object) ?? object);
  for (const object of objects) {
    const faults = validate(object).filter(({ severity }) => severity === "error");
    assert.deepEqual(faults, [], "admission refuses the object");
  }
  const { deploymentPlans } = translator.apply(objects.map((object) => ({ type: "set", object })));
  deployer.lead();
  deployer.deploy(deploymentPlans);
  const failure = await Promise.race([failed, deployer.idle()]);
  assert.equal(failure, undefined, "the Gateway is deployed");
  return { objects: applied, error: deploymentPlans.get("team/edge")?.error?.message };
}

function manifests({ class: ofClass, gateway: ofGateway }: Levels): KubeObject[] {
  const group = "gwproxy.dev";
  const parameters = (name: string, namespace: string, spec: object): object => {
    return { apiVersion: `${group}/v1alpha1`, kind: "GwParameters", metadata: { name, namespace }, spec };
  };
  const classRef = { group, kind: "GwParameters", name: "defaults", namespace: "infra" };
  const ownRef = { group, kind: "GwParameters", name: "edge" };
  const list = [
    {
      apiVersion: "gateway.networking.k8s.io/v1",
      kind: "GatewayClass",
      metadata: { name: "gwproxy" },
      spec: { controllerName: "gwproxy.dev/gwproxy", ...(ofClass === undefined ? {} : { parametersRef: classRef }) },
    },
    {
      apiVersion: "gateway.networking.k8s.io/v1",
      kind: "Gateway",
      metadata: { name: "edge", namespace: "team", uid: "uid-of-edge" },
      spec: {
        gatewayClassName: "gwproxy",
        listeners: [{ name: "http", port: 80, protocol: "HTTP", allowedRoutes: { namespaces: { from: "Same" } } }],
        ...(ofGateway === undefined ? {} : { infrastructure: { parametersRef: ownRef } }),
      },
    },
    ...(ofClass === undefined ? [] : [parameters("defaults", "infra", ofClass)]),
    ...(ofGateway === undefined ? [] : [parameters("edge", "team", ofGateway)]),
  ];
  return list as KubeObject[]; // each has the members that all objects have
}

/** An HTTP server that takes every applied object and has none before. */
async function startStore(
  context: ProofContext,
): Promise<{ readonly client: KubernetesClient; readonly applied: AppliedObject[] }> {
  const applied: AppliedObject[] = [];
  const server = createServer(async (request, response) => {
    response.setHeader("content-type", "application/json");
    const body = await text(request);
    // A dry run asks for what is there before the first deployment: nothing.
    const applies = request.method === "PATCH" && !(request.url ?? "").includes("dryRun=");
    if (applies) applied.push(JSON.parse(body) as AppliedObject);
    const missing = { kind: "Status", apiVersion: "v1", status: "Failure", reason: "NotFound", code: 404 };
    response.statusCode = applies ? 200 : 404;
    response.end(applies ? body : JSON.stringify(missing));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // a TCP server has such an address
  const directory = await mkdtemp(join(tmpdir(), "gwproxy-deployed-"));
  const kubeconfig = join(directory, "kubeconfig");
  // The client sends plain HTTP only where the certificate would not be checked either.
  const cluster = { server: `http://127.0.0.1:${port}`, "insecure-skip-tls-verify": true };
  await writeFile(
    kubeconfig,
    JSON.stringify({
      clusters: [{ name: "c", cluster }],
      users: [{ name: "u", user: {} }],
      contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
      "current-context": "x",
    }),
  );
  const client = await createKubernetesClient(kubeconfig);
  context.after(async () => {
    client.close();
    server.closeAllConnections();
    server.close();
    await rm(directory, { recursive: true });
  });
  return { client, applied };
}
