/** Checks the ports that a long-running command needs for itself before it starts anything else. */
import type { Address, DataPlaneOptions } from "./options.ts";
import { checkPorts } from "../lib/network/port-check.ts";
import { hostAndPort } from "./process.ts";

/**
 * @param ports addresses by flag
 * @throws FatalError with exit code 1, which names the flag and the process that holds its port
 */
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

/** Returns the addresses on which a process with a data plane listens besides the listeners of its Gateways. */
export function dataPlanePorts(options: DataPlaneOptions): Readonly<Record<string, Address>> {
  return {
    "--admin-address": options.adminAddress,
    "--metrics-address": options.metricsAddress,
    "--readiness-address": options.readinessAddress,
  };
}
