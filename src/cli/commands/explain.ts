/** `gwproxy explain` says which policies govern a route or the connections of a Gateway, and which lost. main.ts adds it. */
import type { Terminal } from "../../lib/terminal.ts";
import type { Command } from "commander";
import type { ExplainOptions } from "../pods/explain.ts";
import { outputOption } from "./options.ts";
import { addPodOptions } from "./pod-options.ts";

const EXAMPLES = `
Examples:
  gwproxy explain httproute/shop -n team
  gwproxy explain httproute/shop.team --from gateway/edge --rule pay
  gwproxy explain team/shop --local -o json
  gwproxy explain gateway/edge.team

Policies are listed in the order in which they run. For each one it says where it comes from, which others lost, to whom
and why. A Gateway is explained by the policies about its connections, which those of its listeners share.
`;

export function addExplainCommand(program: Command, terminal: Terminal): void {
  addPodOptions(program.command("explain"), false)
    .description("say which policies govern each rule of a route, in their order, or the connections of a Gateway")
    .argument(
      "<object>",
      "KIND/NAME such as httproute/shop or gateway/edge, KIND/NAME.NAMESPACE, or NAMESPACE/NAME of a route",
    )
    .addOption(outputOption("text, json or yaml", ["text", "json", "yaml"]))
    .option("--rule <name>", "only the rule of this name or position")
    .option("--from <resource>", "data plane to ask, such as gateway/edge; default: the only Gateway of the namespace")
    .addHelpText("after", EXAMPLES)
    .action(async (object: string, options: ExplainOptions) => {
      const { explainObject } = await import("../pods/explain.ts");
      await explainObject(object, options, terminal);
    });
}
