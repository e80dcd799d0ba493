/** Options for how the data planes of Gateways are deployed. controller.ts and render.ts add them. */
import { type Command, InvalidArgumentError, Option } from "commander";
import type { ClassParametersRef } from "../../controller/options.ts";
import { messageOf } from "../../lib/errors.ts";
import { isRecord } from "../../lib/is-record.ts";
import { flag } from "./options.ts";

export function addDeploymentOptions(command: Command): Command {
  return command
    .addOption(
      new Option("--proxy-image-registry <host/path>", "where images of data planes are pulled from")
        .default("ghcr.io/gwproxy")
        .env("GWPROXY_PROXY_IMAGE_REGISTRY"),
    )
    .addOption(
      new Option("--proxy-image-repository <name>", "name of the image of data planes")
        .argParser(nonEmpty)
        .default("proxy")
        .env("GWPROXY_PROXY_IMAGE_REPOSITORY"),
    )
    .addOption(
      new Option("--proxy-image-tag <tag>", "tag of the image of data planes; default: the version of the controller")
        .default("")
        .env("GWPROXY_PROXY_IMAGE_TAG"),
    )
    .addOption(
      new Option("--dummy-port <port>", "Service port of a Gateway without listeners; 0: it is not deployed")
        .argParser(portOrNone)
        .default(443)
        .env("GWPROXY_NO_LISTENERS_DUMMY_PORT"),
    )
    .addOption(
      new Option("--xds-service-name <name>", "Service by which data planes of the cluster reach the controller")
        .argParser(nonEmpty)
        .default("gwproxy")
        .env("GWPROXY_XDS_SERVICE_NAME"),
    )
    .addOption(
      new Option("--xds-service-host <host>", "host by which they reach it; wins over the Service")
        .default("")
        .env("GWPROXY_XDS_SERVICE_HOST"),
    )
    .addOption(
      new Option("--xds-service-port <port>", "port by which they reach it")
        .argParser(port)
        .default(9978)
        .env("GWPROXY_XDS_SERVICE_PORT"),
    )
    .addOption(
      new Option("--proxy-image-pull-secrets <json>", 'Secrets with which nodes pull the image, such as ["registry"]')
        .argParser(nameList)
        .default([], "none")
        .env("GWPROXY_PROXY_IMAGE_PULL_SECRETS"),
    )
    .addOption(
      new Option(
        "--ambient-identity-hosts <hosts>",
        "hosts that data planes may send ambient cloud credentials to, with commas; default: the clouds' own domains",
      )
        .default("")
        .env("GWPROXY_AMBIENT_IDENTITY_HOSTS"),
    )
    .addOption(
      new Option("--class-name <name>", "GatewayClass that is created when it is missing")
        .default("gwproxy")
        .env("GWPROXY_CLASS_NAME"),
    )
    .addOption(
      new Option("--namespace <name>", "namespace of the controller: of its lease and its stored JWKS")
        .default("gwproxy-system")
        .env("POD_NAMESPACE"),
    );
}

/** Adds the defaults of service meshes, which parameters of Gateways override. */
export function addMeshOptions(command: Command): Command {
  const text = (flags: string, description: string, variable: string): Option =>
    new Option(flags, description).default("").env(variable);
  return command
    .addOption(
      new Option("--mesh-auto-enabled <true|false>", "mesh on the Gateways of the own class that do not switch it off")
        .argParser(flag)
        .default(false)
        .env("GWPROXY_MESH_AUTO_ENABLED"),
    )
    .addOption(
      new Option("--mesh-namespace <name>", "namespace of the mesh")
        .default("istio-system")
        .env("GWPROXY_MESH_NAMESPACE"),
    )
    .addOption(
      new Option("--mesh-revision <name>", "revision of the mesh").default("default").env("GWPROXY_MESH_REVISION"),
    )
    .addOption(
      text("--mesh-ca-address <url>", "authority of the mesh; default: its Service", "GWPROXY_MESH_CA_ADDRESS"),
    )
    .addOption(
      text("--mesh-cluster-id <name>", "the cluster in the mesh; default: Kubernetes", "GWPROXY_MESH_CLUSTER_ID"),
    )
    .addOption(text("--mesh-network <name>", "the network in the mesh; default: none", "GWPROXY_MESH_NETWORK"));
}

/** Parses a JSON list of object names. */
function nameList(text: string): readonly string[] {
  const list = parseJson(text === "" ? "[]" : text);
  if (Array.isArray(list) && list.every((name) => typeof name === "string" && name !== "")) return list as string[]; // just checked
  throw new InvalidArgumentError('give a JSON list of names, such as ["registry"]');
}

/** Parses a JSON map of GatewayClasses to their parameters. */
export function classParametersRefs(text: string): Readonly<Record<string, ClassParametersRef>> {
  const map = parseJson(text === "" ? "{}" : text);
  if (!isRecord(map)) throw new InvalidArgumentError("give a JSON map of class names to {name, namespace}");
  return Object.fromEntries(
    Object.entries(map).map(([className, ref]) => {
      const { name, namespace, ...more } = isRecord(ref) ? ref : {};
      const isWhole = typeof name === "string" && typeof namespace === "string" && name !== "" && namespace !== "";
      if (isWhole && Object.keys(more).length === 0) return [className, { name, namespace }];
      throw new InvalidArgumentError(`class ${className} needs {"name": "…", "namespace": "…"} and nothing else`);
    }),
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new InvalidArgumentError(`it is not JSON: ${messageOf(error)}`);
  }
}

function nonEmpty(text: string): string {
  if (text === "") throw new InvalidArgumentError("it must not be empty");
  return text;
}

function portOrNone(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new InvalidArgumentError(`"${text}" is not a port`);
}

function port(text: string): number {
  const value = portOrNone(text);
  if (value === 0) throw new InvalidArgumentError("0 is not a port that can be reached");
  return value;
}
