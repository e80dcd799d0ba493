/** The folder with the Gateway API's own CRDs, out of the Go module that the types are generated from. */
import { execFile } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { GATEWAY_API_MODULE, GATEWAY_API_VERSION } from "../../../codegen/gateway-api-version.ts";

/**
 * @returns a folder, for `kubectl apply -f` the standard channel's, for `kubectl apply -k` the experimental one's; the
 *   module is downloaded unless Go has it already
 */
export async function gatewayApiCrds(channel: "standard" | "experimental" = "standard"): Promise<string> {
  const args = ["mod", "download", "-json", `${GATEWAY_API_MODULE}@${GATEWAY_API_VERSION}`];
  // Outside of any module: the checkout's testbed modules must not take part.
  const { stdout } = await promisify(execFile)("go", args, { cwd: tmpdir() });
  const { Dir: directory } = JSON.parse(stdout) as { Dir: string }; // the documented answer of `go mod download -json`
  return join(directory, "config/crd", channel);
}
