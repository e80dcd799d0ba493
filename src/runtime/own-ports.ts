/** The ports that a long-running command needs for itself, checked before anything else of it starts. */
import type { Address, DataPlaneOptions } from "./options.ts";
import { checkPorts } from "../lib/port-check.ts";
import { hostAndPort } from "./process.ts";

/** @param ports address by flag @throws FatalError with exit code 1, naming the flag and who holds its port */
export async function checkOwnPorts(ports: Readonly<Record<string, Address>>): Promise<void> {
  await checkPorts(
    Object.entries(ports).map(([flag, { host, port }]) => ({
      subject: `${flag} ${hostAndPort(host, port)}`,
      host,
      port,
      remedy: `name another address with ${flag}`,
    })),
  );
}

/** What each process with a data plane listens on beside its listeners. */
export function dataPlanePorts(options: DataPlaneOptions): Readonly<Record<string, Address>> {
  return {
    "--admin-address": options.adminAddress,
    "--metrics-address": options.metricsAddress,
    "--readiness-address": options.readinessAddress,
  };
}
