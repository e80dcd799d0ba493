/**
 * Says which process listens on a TCP port, for messages about a port that is taken; used by the commands and by the
 * quickstart. Reads /proc, so only Linux can tell: elsewhere, and for processes of other users, less or nothing is said.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { isIPv6 } from "node:net";
import { basename } from "node:path";

interface ListeningSocket {
  /** Hexadecimal, as the kernel prints it. */
  readonly address: string;
  readonly uid: string;
  readonly inode: string;
}

export const THIS_PROCESS = "this process itself";

/** State LISTEN of the kernel's TCP states, in /proc/net/tcp. */
const LISTEN = "0A";

/** @returns such as "node server.js (process 4711)", or undefined where nothing is known of a holder */
export function findPortHolder(host: string, port: number): string | undefined {
  const sockets = listeningSockets(port);
  const wanted = sockets.filter(({ address }) => overlaps(address, host));
  // The names of hosts are not resolved here: where no address fits, any holder of the port is the best guess.
  for (const { inode, uid } of wanted.length > 0 ? wanted : sockets) {
    if (inode === "0") continue;
    const pid = processOfSocket(inode);
    if (pid === process.pid) return THIS_PROCESS;
    if (pid !== undefined) return `${programOf(pid)} (process ${pid})`;
    return `a process of the user with uid ${uid}`;
  }
  return undefined;
}

function listeningSockets(port: number): ListeningSocket[] {
  const wanted = port.toString(16).toUpperCase().padStart(4, "0");
  return ["/proc/net/tcp", "/proc/net/tcp6"].flatMap((file) =>
    readText(file)
      .split("\n")
      .slice(1)
      .flatMap((line) => {
        const [, local = "", , state, , , , uid = "", , inode = ""] = line.trim().split(/\s+/);
        const [address = "", localPort] = local.split(":");
        return state === LISTEN && localPort === wanted ? [{ address, uid, inode }] : [];
      }),
  );
}

/** Whether a socket on one address keeps another from being opened: equal ones do, and "every address" on either side. */
function overlaps(held: string, host: string): boolean {
  if (/^0+$/.test(held) || host === "" || host === "::" || host === "0.0.0.0") return true;
  if (isIPv6(host)) return held.length === 32;
  // The kernel prints each 32-bit word of an address in the byte order of the machine; those of IPv4 end a mapped one.
  const bytes = host.split(".").map((part) => Number(part).toString(16).toUpperCase().padStart(2, "0"));
  return held.endsWith(bytes.toReversed().join("")) || held.endsWith(bytes.join(""));
}

function processOfSocket(inode: string): number | undefined {
  const target = `socket:[${inode}]`;
  const ids = namesIn("/proc").filter((name) => /^\d+$/.test(name));
  const found = ids.find((id) => namesIn(`/proc/${id}/fd`).some((fd) => linkOf(`/proc/${id}/fd/${fd}`) === target));
  return found === undefined ? undefined : Number(found);
}

/** The program and, of an interpreter, its script; further arguments may hold secrets. */
function programOf(pid: number): string {
  const [program = "", script = ""] = readText(`/proc/${pid}/cmdline`).split("\0");
  const shown = [program, script.startsWith("-") ? "" : script]
    .filter((part) => part !== "")
    .map((part) => basename(part));
  return shown.length === 0 ? readText(`/proc/${pid}/comm`).trim() : shown.join(" ");
}

/** Processes end and belong to others: what cannot be read says nothing. */
function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}
