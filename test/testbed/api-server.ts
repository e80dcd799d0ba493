/**
 * A real Kubernetes API server for tests: etcd and kube-apiserver on loopback with certificates of their own, in a
 * temporary folder. No node and no controllers: objects, validation, watches, apply and admission are what it is for.
 */
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { freePort, freePorts } from "../support/fixtures/free-ports.ts";
import { makeCertificates, type Certificates } from "./certificates.ts";
import { restoreSnapshot, takeSnapshot } from "./etcd-snapshot.ts";
import { writeKubeconfig } from "./kubeconfig.ts";
import { programs } from "./programs.ts";

const run = promisify(execFile);
const READY_WITHIN_MS = 120_000;

export interface ApiServer {
  /** Path of a kubeconfig with the rights of a cluster administrator. */
  readonly kubeconfig: string;
  /** "https://127.0.0.1:PORT" */
  readonly server: string;
  /** A folder that lives as long as the server; for files of the test. */
  readonly directory: string;
  /** Runs kubectl. @returns what it printed. @throws with its messages when it fails. */
  kubectl(args: readonly string[], stdin?: string): Promise<string>;
  /** Kills the API server as a crash would; the data stay. */
  crash(): Promise<void>;
  /** Starts it again after a crash, under the same address. */
  restart(): Promise<void>;
  /** While the API server is down: runs kubectl through another one over the same data. */
  behindItsBack(commands: readonly (readonly string[])[]): Promise<void>;
  stop(): Promise<void>;
}

/** One that an earlier test of this process has stopped: it holds what a fresh one does, and costs nothing to start. */
let idle: ReusableServer | undefined;

interface ReusableServer extends ApiServer {
  /** Lets the process end although the server runs, or not. */
  keepProcess(alive: boolean): void;
}

/** Gives a fresh, empty API server. Missing programs are built first, which takes some minutes the first time. */
export async function startApiServer(): Promise<ApiServer> {
  const server = idle ?? (await startReusable());
  idle = undefined;
  server.keepProcess(true);
  return server;
}

async function startReusable(): Promise<ReusableServer> {
  const binaries = await programs("kubernetes");
  const directory = await mkdtemp(join(tmpdir(), "gwproxy-api-"));
  const guard = startGuard(directory);
  const certificates = await makeCertificates(join(directory, "pki"));
  const etcd = await startEtcd(binaries, directory, guard);
  const port = await freePort();
  const kubeconfigFor = (name: string, at: number): Promise<string> => {
    const { ca, admin: client } = certificates;
    return writeKubeconfig(join(directory, name), { server: `https://127.0.0.1:${at}`, ca, client });
  };
  const kubeconfig = await kubeconfigFor("kubeconfig", port);
  const front = (at: number): Promise<ChildProcess> =>
    startFront({ binaries, directory, guard, certificates, etcd: etcd.url, port: at });
  let current = await front(port);

  const kubectl = async (path: string, args: readonly string[], stdin?: string): Promise<string> => {
    const running = run(join(binaries, "kubectl"), ["--kubeconfig", path, ...args], { maxBuffer: 1 << 26 });
    // One that ends before it has read says why itself.
    running.child.stdin?.on("error", () => undefined);
    running.child.stdin?.end(stdin ?? "");
    return (await running).stdout;
  };

  const fresh = await takeSnapshot(etcd.url);
  let hasCrashed = false;
  const server: ReusableServer = {
    kubeconfig,
    server: `https://127.0.0.1:${port}`,
    directory,
    kubectl: (args, stdin) => kubectl(kubeconfig, args, stdin),
    crash: () => {
      hasCrashed = true;
      return end(current, "SIGKILL");
    },
    restart: async () => {
      current = await front(port);
    },
    behindItsBack: async (commands) => {
      const other = await freePort();
      const server = await front(other);
      const path = await kubeconfigFor("other.kubeconfig", other);
      for (const args of commands) await kubectl(path, args);
      await end(server, "SIGKILL");
    },
    keepProcess: (alive) => {
      for (const child of [current, etcd.process])
        for (const handle of [child, child.stdout, child.stderr] as HandleOfChild[]) handle[alive ? "ref" : "unref"]();
    },
    stop: async () => {
      if (!hasCrashed && idle === undefined) {
        await restoreSnapshot(etcd.url, fresh);
        idle = server;
        server.keepProcess(false);
        return;
      }
      // Asked to end, it would wait a minute for watches that are still open.
      await end(current, "SIGKILL");
      await end(etcd.process, "SIGKILL");
      guard.close();
    },
  };
  return server;
}

/** The pipes of a child are sockets, which their type does not say. */
type HandleOfChild = Pick<ChildProcess, "ref" | "unref">;

interface Guard {
  watch(child: ChildProcess): void;
  close(): void;
}

/**
 * A shell that outlives us by a moment: when our end of its pipe closes, however we ended, it kills what is left and
 * removes the folder. A handler in this process could not do that after a SIGKILL.
 */
function startGuard(directory: string): Guard {
  const script = `
    while read -r sign pid; do
      case $sign in +) alive="$alive $pid";; -) alive=$(printf %s " $alive " | sed "s/ $pid / /");; esac
    done
    [ -z "$(printf %s "$alive" | tr -d ' ')" ] || kill -KILL $alive 2>/dev/null
    rm -rf "$1"`;
  const shell = spawn("sh", ["-c", script, "guard", directory], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  shell.unref();
  // The shell ends when the pipe does; a write after that has nobody left to tell.
  shell.stdin.on("error", () => undefined);
  return {
    watch: (child) => {
      shell.stdin.write(`+ ${child.pid}\n`);
      child.once("exit", () => shell.stdin.writable && shell.stdin.write(`- ${child.pid}\n`));
    },
    close: () => shell.stdin.end(),
  };
}

function start(name: string, binary: string, args: readonly string[], directory: string): ChildProcess {
  const child = spawn(binary, args, { cwd: directory, stdio: ["ignore", "pipe", "pipe"] });
  const log = createWriteStream(join(directory, `${name}.log`), { flags: "a" });
  child.stdout.pipe(log, { end: false });
  child.stderr.pipe(log, { end: false });
  return child;
}

async function startEtcd(
  binaries: string,
  directory: string,
  guard: Guard,
): Promise<{ url: string; process: ChildProcess }> {
  const [clients = 0, peers = 0] = await freePorts(2);
  const [url, peer] = [`http://127.0.0.1:${clients}`, `http://127.0.0.1:${peers}`];
  const args = [
    "--data-dir",
    "etcd-data",
    "--unsafe-no-fsync",
    "--log-level",
    "error",
    "--listen-client-urls",
    url,
    "--advertise-client-urls",
    url,
    "--listen-peer-urls",
    peer,
    "--initial-advertise-peer-urls",
    peer,
    "--initial-cluster",
    `default=${peer}`,
  ];
  const child = start("etcd", join(binaries, "etcd"), args, directory);
  guard.watch(child);
  return { url, process: child };
}

interface Front {
  readonly binaries: string;
  readonly directory: string;
  readonly guard: Guard;
  readonly certificates: Certificates;
  readonly etcd: string;
  readonly port: number;
}

async function startFront({ binaries, directory, guard, certificates, etcd, port }: Front): Promise<ChildProcess> {
  const args = [
    `--etcd-servers=${etcd}`,
    "--bind-address=127.0.0.1",
    "--advertise-address=127.0.0.1",
    `--secure-port=${port}`,
    `--tls-cert-file=${certificates.server.cert}`,
    `--tls-private-key-file=${certificates.server.key}`,
    `--client-ca-file=${certificates.ca}`,
    `--cert-dir=${join(directory, "pki")}`,
    `--service-account-key-file=${certificates.serviceAccount.publicKey}`,
    `--service-account-signing-key-file=${certificates.serviceAccount.key}`,
    "--service-account-issuer=https://kubernetes.default.svc",
    "--service-cluster-ip-range=10.96.0.0/16",
    "--authorization-mode=RBAC",
    "--endpoint-reconciler-type=none",
    `--audit-policy-file=${await writeAuditPolicy(directory)}`,
    `--audit-log-path=${join(directory, AUDIT_LOG)}`,
    // Without controllers nothing makes the service accounts that pods would need; no pod ever runs here.
    "--disable-admission-plugins=ServiceAccount",
  ];
  const child = start("kube-apiserver", join(binaries, "kube-apiserver"), args, directory);
  guard.watch(child);
  const deadline = Date.now() + READY_WITHIN_MS;
  while (!(await isReady(port, certificates))) {
    if (child.exitCode !== null || Date.now() > deadline) {
      const log = await readFile(join(directory, "kube-apiserver.log"), "utf8");
      throw new Error(`kube-apiserver did not become ready:\n${log.split("\n").slice(-15).join("\n")}`);
    }
    await sleep(100);
  }
  return child;
}

/** File in the server's folder with the requests of our programs' accounts, an event in each line. */
export const AUDIT_LOG = "audit.log";

async function writeAuditPolicy(directory: string): Promise<string> {
  const users = ["gwproxy", "gwproxy-webhook"].map((name) => `system:serviceaccount:gwproxy-system:${name}`);
  const rules = [{ level: "Metadata", users, omitStages: ["RequestReceived"] }, { level: "None" }];
  const path = join(directory, "audit-policy.yaml");
  await writeFile(path, JSON.stringify({ apiVersion: "audit.k8s.io/v1", kind: "Policy", rules }));
  return path;
}

async function isReady(port: number, certificates: Certificates): Promise<boolean> {
  const [ca, cert, key] = await Promise.all([
    readFile(certificates.ca),
    readFile(certificates.admin.cert),
    readFile(certificates.admin.key),
  ]);
  return new Promise((resolve) => {
    const options = { host: "127.0.0.1", port, path: "/readyz", ca, cert, key, agent: false as const, timeout: 5000 };
    const asked = request(options, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    // Not listening yet is the ordinary answer of the first seconds.
    asked.on("error", () => resolve(false));
    asked.on("timeout", () => asked.destroy());
    asked.end();
  });
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill(signal);
  await exited;
}

if (import.meta.main) {
  const server = await startApiServer();
  process.stdout.write(`export KUBECONFIG=${server.kubeconfig}\n`);
  process.stderr.write("Ctrl-C stops it and removes its folder\n");
}
