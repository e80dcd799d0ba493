/**
 * Finds the process that listens on a TCP port, for messages about a taken port in the commands and in `gwproxy up`. It
 * reads /proc, so only Linux can answer: elsewhere, and for processes of other users, it finds less or nothing.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { isIPv6 } from "node:net";
import { basename } from "node:path";

interface ListeningSocket {
  /** Address in hexadecimal, as the kernel prints it. */
  readonly address: string;
  readonly uid: string;
  readonly inode: string;
}

export const THIS_PROCESS = "this process itself";

/** The LISTEN state in /proc/net/tcp. */
const LISTEN = "0A";

/** @returns a text such as "node server.js (process 4711)"; undefined when the holder is unknown */
export function findPortHolder(host: string, port: number): string | undefined {
  const sockets = listeningSockets(port);
  const wanted = sockets.filter(({ address }) => overlaps(address, host));
  // Host names are not resolved here: when no address fits, any holder of the port is the best guess.
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

/** Tells whether a socket on one address blocks another: equal addresses do, and "every address" on either side. */
function overlaps(held: string, host: string): boolean {
  if (/^0+$/.test(held) || host === "" || host === "::" || host === "0.0.0.0") return true;
  if (isIPv6(host)) return held.length === 32;
  // The kernel prints each 32-bit word in the byte order of the machine; a mapped IPv4 address ends with its own word.
  const bytes = host.split(".").map((part) => Number(part).toString(16).toUpperCase().padStart(2, "0"));
  return held.endsWith(bytes.toReversed().join("")) || held.endsWith(bytes.join(""));
}

function processOfSocket(inode: string): number | undefined {
  const target = `socket:[${inode}]`;
  const ids = namesIn("/proc").filter((name) => /^\d+$/.test(name));
  const found = ids.find((id) => namesIn(`/proc/${id}/fd`).some((fd) => linkOf(`/proc/${id}/fd/${fd}`) === target));
  return found === undefined ? undefined : Number(found);
}

/** Returns the program and, for an interpreter, its script. Further arguments may hold secrets and are left out. */
function programOf(pid: number): string {
  const [program = "", script = ""] = readText(`/proc/${pid}/cmdline`).split("\0");
  const shown = [program, script.startsWith("-") ? "" : script]
    .filter((part) => part !== "")
    .map((part) => basename(part));
  return shown.length === 0 ? readText(`/proc/${pid}/comm`).trim() : shown.join(" ");
}

/** Reads a file of /proc. Processes end and belong to other users, so an unreadable file counts as empty. */
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
