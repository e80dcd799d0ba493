/** Runs `gwproxy proxy`: receives the resources of a controller over delta xDS and serves them. */
import type { Terminal } from "../lib/terminal.ts";
import type { ProxyOptions } from "./options.ts";
import { readFile } from "node:fs/promises";
import { collectWhenIdle } from "../lib/collect-when-idle.ts";
import { createXdsClient } from "../xds/client/connection.ts";
import { startDataPlane } from "./data-plane.ts";
import { checkOwnPorts, dataPlanePorts } from "./own-ports.ts";
import { createProcessLog, hostAndPort, stopSignal } from "./process.ts";
import { readCaFile } from "./tls-files.ts";

/** Returns a reader of the token. A mounted token is rotated, so it is read for each connection. */
function tokenFrom(path: string): () => Promise<string> {
  return async () => (await readFile(path, "utf8")).trim();
}

export async function runProxy(options: ProxyOptions, terminal: Terminal): Promise<void> {
  const process = createProcessLog(options.logLevel);
  const ca = options.xdsCa === undefined || options.xdsCa === "" ? undefined : await readCaFile(options.xdsCa);
  // Created before anything listens, because an address that cannot be used must end the process.
  const client = createXdsClient({
    address: options.xdsAddress,
    ...(ca === undefined ? {} : { tls: { ca } }),
    ...(options.xdsToken === undefined ? {} : { token: tokenFrom(options.xdsToken) }),
    gateway: options.gateway,
    log: process.log.child("xds"),
    apply: (update) => plane.apply(update),
    meter: {
      message: (typeUrl, bytes) => plane.metrics.controller.message(typeUrl, bytes),
      ended: (reason) => plane.metrics.controller.ended(reason),
    },
  });
  await checkOwnPorts(dataPlanePorts(options));
  const plane = await startDataPlane(options, process, "controller");
  plane.metrics.observe("config_synchronized", () => [{ values: [], value: client.connected() ? 1 : 0 }]);
  const stopped = stopSignal();
  client.start();
  await Promise.race([client.ready, stopped]);
  collectWhenIdle();
  plane.pending.delete("configuration");
  for (const listener of plane.proxy.listeners()) {
    terminal.out(
      `listening on ${hostAndPort(options.bindAddress, listener.boundPort)} for Gateway ${options.gateway}\n`,
    );
  }
  await stopped;
  await plane.stop();
  await client.stop();
}
