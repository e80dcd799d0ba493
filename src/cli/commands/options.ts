/** Options that several commands share, and parsers that refuse a bad value with a full sentence. */
import type { Address } from "../../runtime/options.ts";
import { availableParallelism, networkInterfaces } from "node:os";
import { type Command, InvalidArgumentError, Option } from "commander";
import { parseDuration } from "../../lib/time/duration.ts";
import { messageOf } from "../../lib/errors.ts";
import { parseLogFilter } from "../../lib/log.ts";
import { closest } from "../../lib/suggest.ts";
import { LOG_FORMATS } from "../../telemetry/log-lines.ts";
import { MAX_THREADS } from "../../lib/shared-table.ts";
import { workloadAddress } from "../../lib/network/workload-endpoint.ts";
import { isAddressRange, parseHostPort } from "../../lib/network/written-address.ts";

/** Limit of `--workers`: the main thread takes one of the thread numbers in the tables of shared memory. */
const MAX_WORKERS = MAX_THREADS - 1;

/**
 * Adds the options for manifests: `-f`, which may be repeated, and arguments, so that both a pattern that the shell has
 * expanded and one in quotes work.
 */
export function addManifestPaths(command: Command): Command {
  return command
    .argument("[paths...]", "the same as -f")
    .option(
      "-f, --file <path>",
      'file, folder, pattern such as "a/*.yaml" in quotes, or - for standard input; may be repeated',
      collect,
    );
}

/** @returns all paths in the order of flags, then arguments; without any path the command exits with its usage */
export function manifestPaths(
  command: Command,
  paths: readonly string[],
  { file = [] }: { readonly file?: readonly string[] },
): readonly string[] {
  const all = [...file, ...paths];
  if (all.length === 0) command.error("error: no manifests; name files or folders, such as -f manifests/");
  return all;
}

export function addDataPlaneOptions(command: Command): Command {
  return command
    .option("--bind-address <ip>", "address that listeners bind; by default all of both families", everyAddress())
    .addOption(
      new Option("--trusted-proxies <ranges>", "whose X-Forwarded headers are kept where no policy says otherwise")
        .argParser(ranges)
        .default([], "none")
        .env("TRUSTED_PROXIES"),
    )
    .addOption(
      addressOption("--admin-address <host:port>", "admin server; keep it on loopback", "127.0.0.1:15000").env(
        "ADMIN_ADDR",
      ),
    )
    .addOption(adminTokenOption())
    .addOption(addressOption("--metrics-address <host:port>", "Prometheus metrics", ":15020").env("STATS_ADDR"))
    .addOption(addressOption("--readiness-address <host:port>", "readiness probe", ":15021").env("READINESS_ADDR"))
    .addOption(logLevelOption().env("LOG_LEVEL"))
    .addOption(
      new Option("--log-format <form>", "lines of the access log, which go to stdout: text or json")
        .choices(LOG_FORMATS)
        .default("text")
        .env("LOG_FORMAT"),
    )
    .addOption(
      new Option("--workers <n>", "threads that serve; default: one for each core, or CPU_LIMIT")
        .argParser(workers)
        .default(usualWorkers(process.env["CPU_LIMIT"], availableParallelism(), process.platform), "cores")
        .env("WORKERS"),
    )
    .addOption(
      secondsOption("--thread-timeout <seconds>", "a thread that does not come round for so long is replaced; 0: never")
        .default(30)
        .env("THREAD_TIMEOUT"),
    )
    .addOption(
      new Option(
        "--spiffe-endpoint-socket <uri>",
        "SPIFFE workload API for identities, such as unix:///run/spire/agent/api.sock or tcp://127.0.0.1:8081",
      )
        .argParser(workloadApi)
        .env("SPIFFE_ENDPOINT_SOCKET"),
    )
    .addOption(
      new Option(
        "--session-key <keys>",
        "seals MCP sessions: 64 hexadecimal digits, or a comma list whose first key seals and all of which open; " +
          "without it sessions end with the process; the environment hides it from other users",
      )
        .argParser((keys) => (keys === "" ? undefined : keys))
        .env("SESSION_KEY"),
    )
    .addOption(
      secondsOption("--drain-min <seconds>", "after the word to stop, connections are accepted so long (0)").env(
        "CONNECTION_MIN_TERMINATION_DEADLINE",
      ),
    )
    .addOption(
      secondsOption("--drain-max <seconds>", "whatever is still connected then is cut off (5)").env(
        "CONNECTION_TERMINATION_DEADLINE",
      ),
    )
    .addOption(
      secondsOption("--grace-period <seconds>", "until the process is killed; --drain-max follows from it").env(
        "TERMINATION_GRACE_PERIOD_SECONDS",
      ),
    );
}

/** Returns "::" when the system has IPv6, because such a socket also accepts IPv4 (dual stack). */
function everyAddress(): string {
  const hasIPv6 = Object.values(networkInterfaces()).some((all) => all?.some(({ family }) => family === "IPv6"));
  return hasIPv6 ? "::" : "0.0.0.0";
}

/** Parses addresses and ranges such as "10.0.0.0/8,192.0.2.1". */
function ranges(text: string): string[] {
  const list = text.split(",").map((each) => each.trim());
  const bad = list.find((each) => !isAddressRange(each));
  if (bad !== undefined)
    throw new InvalidArgumentError(`"${bad}" is neither an address nor a range such as 10.0.0.0/8`);
  return list;
}

/**
 * Returns the default of `--workers`: one thread for each core that this process may use. With one core everything runs
 * in the main thread. Only Linux distributes the connections of one port to several threads, so other systems get one.
 * @param limit CPU_LIMIT: cores as a Kubernetes quantity; for a pod without a limit, the cores of its node
 */
export function usualWorkers(limit: string | undefined, cores: number, platform: string): number {
  if (platform !== "linux") return 1;
  const allowed = limit === undefined ? undefined : parseCpu(limit);
  return Math.max(1, Math.min(Math.ceil(allowed ?? cores), cores, MAX_WORKERS));
}

/** Parses "2" or "1500m"; 0 and other texts mean that there is no limit. */
function parseCpu(text: string): number | undefined {
  const [, digits, milli] = /^(\d{1,6}(?:\.\d{1,9})?)(m?)$/.exec(text) ?? [];
  return Number(digits) > 0 ? Number(digits) / (milli === "m" ? 1000 : 1) : undefined;
}

function workers(text: string): number {
  const count = Number(text);
  if (/^[0-9]{1,3}$/.test(text) && count >= 1 && count <= MAX_WORKERS) return count;
  throw new InvalidArgumentError(`give a whole number from 1 to ${MAX_WORKERS}`);
}

/** Treats an empty value as unset, as in a template whose value is missing. */
function workloadApi(text: string): string | undefined {
  if (text === "") return undefined;
  try {
    workloadAddress(text);
    return text;
  } catch (error) {
    throw new InvalidArgumentError(messageOf(error));
  }
}

function secondsOption(flags: string, description: string): Option {
  return new Option(flags, description).argParser(seconds);
}

/** Parses "10", or a duration such as "10s" or "1m30s". */
function seconds(text: string): number {
  const ms = parseDuration(/^[0-9]{1,5}$/.test(text) ? `${text}s` : text);
  if (ms === undefined) throw new InvalidArgumentError(`"${text}" is neither seconds nor a duration such as 90s`);
  return ms / 1000;
}

/** Returns an option that takes "host:port" and shows its default as it would be typed. */
export function addressOption(flags: string, description: string, standard: string): Option {
  return new Option(flags, description).argParser(address).default(address(standard), standard);
}

/**
 * Returns a sentence for each variable that begins like those of the controller and is none of them. Variables that
 * Kubernetes makes for a Service of such a name, `…_PORT…` and `…_SERVICE_…`, are left out.
 */
export function unknownVariables(command: Command, environment: NodeJS.ProcessEnv): string[] {
  const known = [...command.options.flatMap(({ envVar }) => envVar ?? []), ...OTHER_VARIABLES];
  return Object.keys(environment)
    .filter((name) => name.startsWith("GWPROXY_") && !known.includes(name) && !/_PORT(_|$)|_SERVICE_/.test(name))
    .sort()
    .map((name) => {
      const near = closest(name, known);
      return `${name} is not a variable of the controller${near === undefined ? "" : `; did you mean ${near}?`}`;
    });
}

/** Variables of this program that no option of the controller reads. */
const OTHER_VARIABLES = ["GWPROXY_REVISION", "GWPROXY_EXTERNAL_ACCOUNT_FILES"];

/** Returns the option of every process with an admin server. */
export function adminTokenOption(): Option {
  return new Option(
    "--admin-token-file <file>",
    "file with the token that requests to the admin server must show as Authorization: Bearer; default: none",
  )
    .argParser((path) => (path === "" ? undefined : path))
    .env("ADMIN_TOKEN_FILE");
}

export function logLevelOption(): Option {
  return new Option("--log-level <filter>", "off, error, warn, info, debug or trace; module=level is possible")
    .argParser(logFilter)
    .default("info");
}

/** Parses an address to listen on: "host:port", "[v6]:port" or ":port", which is every address; port 0 selects a free one. */
function address(text: string): Address {
  const parsed = hostPort(text);
  return { ...parsed, host: parsed.host === "" ? everyAddress() : parsed.host };
}

/** Parses "host:port" or "[v6]:port"; the host of ":port" is empty. */
export function hostPort(text: string): Address {
  const parsed = parseHostPort(text);
  if (parsed === undefined) throw new InvalidArgumentError(`"${text}" is not HOST:PORT`);
  return parsed;
}

function collect(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}

/** Returns the `--output` option; the first form is the default. */
export function outputOption(description: string, forms: readonly string[]): Option {
  return new Option("-o, --output <form>", description).choices(forms).default(forms[0]);
}

/** Checks a log filter such as "info,proxy=debug". */
export function logFilter(text: string): string {
  if (parseLogFilter(text) === undefined)
    throw new InvalidArgumentError(`"${text}" is not a log filter; try "info" or "info,proxy=debug"`);
  return text;
}

/** Returns the option of every command that translates. */
export function inferenceOption(): Option {
  return new Option(
    "--enable-inference [true|false]",
    "serve InferencePools of the Gateway API inference extension, whose CRD the cluster then has to have",
  )
    .argParser(flag)
    .preset("true")
    .default(false)
    .env("GWPROXY_ENABLE_INFERENCE");
}

/** Parses "true" or "false". */
export function flag(text: string): boolean {
  if (text === "true" || text === "false") return text === "true";
  throw new InvalidArgumentError(`"${text}" is neither true nor false`);
}

/** Checks a name of the form "namespace/name". */
export function namespacedName(text: string): string {
  if (!/^[^/\s]+\/[^/\s]+$/.test(text)) throw new InvalidArgumentError(`"${text}" is not NAMESPACE/NAME`);
  return text;
}

/** Parses a list such as "a.example.com, 10.0.0.1"; an empty text is an empty list. */
export function hostList(text: string): string[] {
  if (text === "") return [];
  const hosts = text.split(",").map((host) => host.trim());
  const bad = hosts.find((host) => !/^[A-Za-z0-9.:_-]+$/.test(host));
  if (bad !== undefined) throw new InvalidArgumentError(`"${bad}" is no host name`);
  return hosts;
}
