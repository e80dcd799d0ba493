/**
 * Golden cases of the deployer: objects as an operator would write them, a line `# Output`, then the objects that are
 * made for each Gateway, or why there are none. Comments before the objects describe the case; `# xds: tls` gives the
 * controller an authority, `# dummy port: 0` takes the Service port of Gateways without listeners away.
 * `UPDATE_GOLDEN=1` rewrites the outputs.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { test } from "node:test";
import { parseAllDocuments, stringify } from "yaml";
import type { KubeObject } from "../../../src/api/object.ts";
import { servicePorts, type DeployerSettings, type Manifest } from "../../../src/deployer/objects/context.ts";
import { bringsSessionKey } from "../../../src/deployer/objects/session-key.ts";
import { render } from "../../../src/deployer/render.ts";
import type { DeploymentPlan } from "../../../src/translator/gateways/deployment-plan.ts";
import { createTranslator } from "../../../src/translator/translate.ts";

const ROOT = join(import.meta.dirname, "../../golden/deployer");
const MARK = "# Output\n";
const SESSION_KEY = "0123456789abcdef".repeat(4);

for (const path of globSync(join(ROOT, "**/*.yaml")).sort()) {
  test(`deployer golden case ${relative(ROOT, path)}`, () => {
    const text = readFileSync(path, "utf8");
    const [input = "", expected = ""] = text.split(MARK);
    const output = deploy(input);
    if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(path, `${input}${MARK}${output}`);
    else assert.equal(expected, output, "run with UPDATE_GOLDEN=1 and review the difference");
  });
}

function deploy(input: string): string {
  const objects = parseAllDocuments(input)
    .map((document): unknown => document.toJS())
    .filter((object): object is KubeObject => object !== null);
  const translator = createTranslator({ controllerName: "gwproxy.dev/gwproxy", implicitClass: "gwproxy" });
  const { deploymentPlans } = translator.apply(objects.map((object) => ({ type: "set", object })));
  const settings = settingsOf(input);
  const output = [...deploymentPlans].map(([gateway, placement]) => [
    gateway,
    placement && printed(placement, settings),
  ]);
  return stringify(Object.fromEntries(output), { lineWidth: 0, aliasDuplicateObjects: false });
}

function settingsOf(input: string): DeployerSettings {
  const isTls = /^# xds: tls$/m.test(input);
  return {
    image: { registry: "ghcr.io/gwproxy", repository: "proxy", tag: "1.2.3" },
    imagePullSecrets: [],
    ambientIdentityHosts: "",
    className: "gwproxy",
    mesh: { autoEnabled: false, caAddress: "https://ca.mesh:15012", clusterId: "Kubernetes", network: "" },
    version: "1.2.3",
    xdsAddress: `${isTls ? "https" : "http"}://gwproxy.gwproxy-system.svc:9978`,
    xdsCa: isTls ? "-----BEGIN CERTIFICATE-----\nof the controller\n-----END CERTIFICATE-----\n" : undefined,
    noListenersPort: Number(/^# dummy port: (\d+)$/m.exec(input)?.[1] ?? 443),
  };
}

function printed(plan: DeploymentPlan, settings: DeployerSettings): unknown {
  const { error, addressError, isForeign } = plan;
  if (isForeign) return "another controller's";
  if (error !== undefined) return `not accepted: ${error.reason}: ${error.message}`;
  if (addressError !== undefined) return `not deployed: ${addressError.reason}: ${addressError.message}`;
  const ports = servicePorts(plan, settings);
  if (ports.length === 0) return "not deployed: no port";
  const sessionKey = bringsSessionKey(plan) ? undefined : SESSION_KEY;
  const objects = render({ plan, settings, ports, sessionKey });
  return objects.map((object) => (object.kind === "Secret" ? masked(object) : object));
}

function masked(secret: Manifest): Manifest {
  const data = Object.entries(secret["data"] as Record<string, string>); // a rendered Secret
  return { ...secret, data: Object.fromEntries(data.map(([name, value]) => [name, `<${value.length} characters>`])) };
}
