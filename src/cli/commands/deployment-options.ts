/** The controller's options for how it deploys the data planes of Gateways. controller.ts adds them. */
import { type Command, InvalidArgumentError, Option } from "commander";

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
    );
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
