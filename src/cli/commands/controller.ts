/**
 * `gwproxy controller` watches a cluster, writes status and serves data planes. main.ts adds it; this file holds flags
 * and help.
 */
import type { ControllerOptions } from "../../controller/options.ts";
import type { Terminal } from "../../lib/terminal.ts";
import { type Command, Option } from "commander";
import { addDeploymentOptions, addMeshOptions, classParametersRefs } from "./deployment-options.ts";
import { selectorList } from "./selector-list.ts";
import {
  addressOption,
  adminTokenOption,
  flag,
  hostList,
  inferenceOption,
  logLevelOption,
  unknownVariables,
} from "./options.ts";

const EXAMPLES = `
Examples:
  gwproxy controller
  gwproxy controller --kubeconfig ~/.kube/config --xds-address 127.0.0.1:9978
  gwproxy controller --xds-mode either          while data planes of before still connect in plaintext
  gwproxy controller --xds-tls-cert tls.crt --xds-tls-key tls.key

Data planes connect over TLS, unless --xds-address is a loopback address: what they get holds credentials. The authority that
signs the certificate is kept in the Secret gwproxy-xds-cert and made when there is none; --xds-tls-cert names files instead.
`;

const XDS_AUTH =
  "whether a data plane must show a token of the service account that bears its Gateway's name; " +
  "default: false where --xds-address is a loopback address, else true";

export function addControllerCommand(program: Command, terminal: Terminal): void {
  const command = program
    .command("controller")
    .description("watch a cluster, translate, write status and serve data planes")
    .option("-k, --kubeconfig <file>", "kubeconfig; default: KUBECONFIG, ~/.kube/config or the pod's own account")
    .addOption(addressOption("--xds-address <host:port>", "where data planes connect", ":9978"))
    .addOption(
      new Option(
        "--xds-mode <mode>",
        "plaintext, tls, or either on one port; default: tls, or plaintext where --xds-address is a loopback address and no files are named",
      )
        .choices(["plaintext", "tls", "either"])
        .env("GWPROXY_XDS_MODE"),
    )
    .addOption(
      new Option("--xds-tls-hosts <names>", "names in the certificate beside those of the Service, with commas")
        .argParser(hostList)
        .default([], "none")
        .env("GWPROXY_ADDITIONAL_XDS_TLS_HOSTS"),
    )
    .option("--xds-tls-cert <file>", `PEM certificate for data planes, leaf first; default: made from the Secret`)
    .option("--xds-tls-key <file>", "PEM key of the certificate")
    .addOption(new Option("--xds-auth <true|false>", XDS_AUTH).argParser(flag).env("GWPROXY_XDS_AUTH"))
    .addOption(addressOption("--health-address <host:port>", "/readyz and /healthz", ":9093"))
    .addOption(addressOption("--metrics-address <host:port>", "Prometheus metrics", ":9092"))
    .addOption(addressOption("--admin-address <host:port>", "admin server; keep it on loopback", "127.0.0.1:9095"))
    .addOption(adminTokenOption())
    .addOption(
      new Option("--controller-name <name>", "controllerName of the GatewayClasses that are ours")
        .default("gwproxy.dev/gwproxy")
        .env("GWPROXY_CONTROLLER_NAME"),
    )
    .addOption(
      new Option("--create-gateway-class <true|false>", "create the GatewayClass of --class-name when it is missing")
        .argParser(flag)
        .default(true)
        .env("GWPROXY_CREATE_GATEWAY_CLASS"),
    )
    .addOption(
      new Option(
        "--deployment-name <name>",
        "Deployment of the controller: it owns the lease, the Secret and the key sets that the controller makes",
      )
        .argParser((name) => (name === "" ? undefined : name))
        .env("GWPROXY_DEPLOYMENT_NAME"),
    )
    .addOption(
      new Option(
        "--gateway-class-parameters-refs <json>",
        'GwParameters of the created class, such as {"gwproxy":{"name":"defaults","namespace":"gwproxy-system"}}',
      )
        .argParser(classParametersRefs)
        .default({}, "none")
        .env("GWPROXY_GATEWAY_CLASS_PARAMETERS_REFS"),
    )
    .addOption(
      new Option(
        "--discovery-namespace-selectors <json>",
        'list of label selectors: only namespaces that one of them chooses count, such as [{"matchLabels":{"team":"a"}}]',
      )
        .argParser(selectorList)
        .default([], "all namespaces")
        .env("GWPROXY_DISCOVERY_NAMESPACE_SELECTORS"),
    )
    .addOption(
      new Option("--backend-ref-grant-mode <mode>", "whose references into other namespaces need a ReferenceGrant")
        .choices(["route-and-policy", "route", "none"])
        .default("route")
        .env("GWPROXY_BACKEND_REF_GRANT_MODE"),
    )
    .addOption(
      new Option(
        "--allow-local-backends [true|false]",
        "let static.host of a GwBackend lead to loopback and link-local addresses of the data planes",
      )
        .argParser(flag)
        .preset("true")
        .default(false)
        .env("GWPROXY_ALLOW_LOCAL_BACKENDS"),
    )
    .addOption(inferenceOption())
    .addOption(
      new Option("--enable-models <true|false>", "serve GwModels; without it they are not read")
        .argParser(flag)
        .default(true)
        .env("GWPROXY_ENABLE_MODELS"),
    )
    .addOption(
      new Option("--disable-leader-election <true|false>", "write without asking other replicas")
        .argParser(flag)
        .default(false)
        .env("GWPROXY_DISABLE_LEADER_ELECTION"),
    )
    .addOption(logLevelOption().env("GWPROXY_LOG_LEVEL"));
  addMeshOptions(addDeploymentOptions(command))
    .addHelpText("after", EXAMPLES)
    .action(async (options: ControllerOptions, command: Command) => {
      if ((options.xdsTlsCert === undefined) !== (options.xdsTlsKey === undefined))
        command.error("error: --xds-tls-cert and --xds-tls-key belong together; set both or none");
      if (options.xdsTlsCert !== undefined && options.xdsMode === "plaintext")
        command.error("error: --xds-mode plaintext uses no --xds-tls-cert; leave one of them out");
      const stranger = Object.keys(options.gatewayClassParametersRefs).find((name) => name !== options.className);
      if (stranger !== undefined)
        command.error(
          `error: --gateway-class-parameters-refs names the class ${stranger}, and the controller creates ` +
            `${options.className}; set spec.parametersRef of other GatewayClasses in the objects themselves`,
        );
      for (const sentence of unknownVariables(command, process.env)) terminal.err(`warning: ${sentence}\n`);
      const { runController } = await import("../../controller/controller.ts");
      await runController(options);
    });
}
