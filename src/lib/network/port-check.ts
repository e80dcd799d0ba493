/**
 * Opens ports for a moment before a program starts, so that a taken port ends the start with a message that names it.
 * The processes use it for their own ports, and `gwproxy up` for those of its gateways.
 */
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { FatalError, messageOf } from "../errors.ts";
import { findPortHolder, THIS_PROCESS } from "./port-holder.ts";

export interface RequiredPort {
  /** The setting that asks for the port, such as "--admin-address 127.0.0.1:15000"; the message begins with it. */
  readonly subject: string;
  /** "" means every address. */
  readonly host: string;
  /** 0 lets the system choose a port, which is never taken. */
  readonly port: number;
  /** Tells a user what to do instead of stopping the process that has the port. */
  readonly remedy: string;
}

/** @throws FatalError with exit code 1 for the first port that cannot be opened */
export async function checkPorts(ports: readonly RequiredPort[]): Promise<void> {
  const open: { readonly required: RequiredPort; readonly server: Server }[] = [];
  try {
    for (const required of ports) {
      const { host, port } = required;
      if (port === 0) continue;
      const other = open.find((other) => other.required.port === port);
      const server = createServer((socket) => socket.destroy());
      open.push({ required, server });
      server.listen({ port, ...(host === "" ? {} : { host }) });
      await once(server, "listening").catch((error: unknown) => {
        throw new FatalError(portMessage(required, error, other?.required), 1, error);
      });
    }
  } finally {
    await Promise.all(open.map(({ server }) => closed(server)));
  }
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => void server.close(() => resolve()));
}

function portMessage(
  { subject, host, port, remedy }: RequiredPort,
  error: unknown,
  other: RequiredPort | undefined,
): string {
  if (codeOf(error) !== "EADDRINUSE") return `${subject}: cannot be opened (${messageOf(error)}); ${remedy}`;
  if (other !== undefined) return `${subject}: the port is also that of ${other.subject}; ${remedy}`;
  return `${subject}: ${takenBy(findPortHolder(host, port), remedy)}`;
}

/**
 * @param holder the result of findPortHolder
 * @returns "the port is taken by nginx (process 4711); stop it and start again, or " and the remedy
 */
export function takenBy(holder: string | undefined, remedy: string): string {
  const taken = `the port is taken by ${holder ?? "another process"}`;
  return holder === THIS_PROCESS ? `${taken}; ${remedy}` : `${taken}; stop it and start again, or ${remedy}`;
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
