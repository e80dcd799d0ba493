/** Locates the CRDs of the Gateway API and of its inference extension, in the Go modules of our generated types. */
import { execFile } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import {
  GATEWAY_API_MODULE,
  GATEWAY_API_VERSION,
  INFERENCE_KINDS,
  INFERENCE_MODULE,
  INFERENCE_VERSION,
} from "../../../codegen/gateway-api-version.ts";

/** @returns a folder, for `kubectl apply -f` with the standard channel and for `kubectl apply -k` with the experimental one */
export async function gatewayApiCrds(channel: "standard" | "experimental" = "standard"): Promise<string> {
  return join(await moduleFolder(`${GATEWAY_API_MODULE}@${GATEWAY_API_VERSION}`), "config/crd", channel);
}

/** @returns the files of the kinds that are read where the inference extension is switched on */
export async function inferenceCrds(): Promise<string[]> {
  const folder = await pickerCrds();
  return INFERENCE_KINDS.map(({ file }) => join(folder, file));
}

/** @returns a folder with all kinds of the extension, those that only its endpoint picker reads among them */
export async function pickerCrds(): Promise<string> {
  return join(await moduleFolder(`${INFERENCE_MODULE}@${INFERENCE_VERSION}`), "config/crd/bases");
}

/** The module is downloaded unless Go has it already. */
async function moduleFolder(module: string): Promise<string> {
  // Runs outside of any module, so that the modules of the testbed take no part.
  const { stdout } = await promisify(execFile)("go", ["mod", "download", "-json", module], { cwd: tmpdir() });
  const { Dir: directory } = JSON.parse(stdout) as { Dir: string }; // the documented output of `go mod download -json`
  return directory;
}
