/** Locates the Gateway API's own CRDs, in the Go module from which our types are generated. */
import { execFile } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { GATEWAY_API_MODULE, GATEWAY_API_VERSION } from "../../../codegen/gateway-api-version.ts";

/**
 * @returns a folder, for `kubectl apply -f` with the standard channel and for `kubectl apply -k` with the experimental
 * one; the module is downloaded unless Go has it already
 */
export async function gatewayApiCrds(channel: "standard" | "experimental" = "standard"): Promise<string> {
  const args = ["mod", "download", "-json", `${GATEWAY_API_MODULE}@${GATEWAY_API_VERSION}`];
  // Runs outside of any module, so that the modules of the testbed take no part.
  const { stdout } = await promisify(execFile)("go", args, { cwd: tmpdir() });
  const { Dir: directory } = JSON.parse(stdout) as { Dir: string }; // the documented output of `go mod download -json`
  return join(directory, "config/crd", channel);
}
