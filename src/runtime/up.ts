/**
 * Runs `gwproxy up`: the directory source, the translator and the data plane in one process, and prints what they
 * report.
 */
import type { Terminal } from "../lib/terminal.ts";
import type { UpOptions } from "./options.ts";
import type { ApplyResult, ResourceUpdate } from "../ir/resource.ts";
import { collectWhenIdle } from "../lib/collect-when-idle.ts";
import { messageOf, FatalError } from "../lib/errors.ts";
import type { SourceDiagnostic } from "../sources/source.ts";
import { createTranslator } from "../translator/translate.ts";
import type { Diagnostic } from "../translator/shared/diagnostics.ts";
import { suggestNextStep } from "../translator/references/explain.ts";
import { indexObjects, type ObjectIndex } from "../translator/references/find.ts";
import { startDataPlane } from "./data-plane.ts";
import { createEmbedded } from "./embedded.ts";
import { createManifestSource, fileTranslation } from "./manifests.ts";
import { checkOwnPorts, dataPlanePorts } from "./own-ports.ts";
import { createProcessLog, hostAndPort, stopSignal } from "./process.ts";
import { changedNames, type ClosedPort, closedPorts, consoleUrl, diagnosticLine, rowOf } from "./report.ts";
import { findPathErrors } from "../sources/directory/read.ts";

/** @throws FatalError with exit code 2 for a path that does not exist, 1 for a port of the process that is taken */
export async function runUp(options: UpOptions, terminal: Terminal): Promise<void> {
  // The author of the files is the owner of the environment, so its keys may go to every host that they name.
  process.env["GWPROXY_AMBIENT_IDENTITY_HOSTS"] ??= "*";
  await checkManifestPaths(options.file);
  await checkOwnPorts(dataPlanePorts(options));
  const processLog = createProcessLog(options.logLevel);
  const { log } = processLog;
  const plane = await startDataPlane(options, processLog, "files");
  const source = createManifestSource(options.file, log.child("source"));
  const translator = createTranslator(fileTranslation(options));
  const reporter = createReporter(options.output, terminal);
  const listening = new Set<string>();
  let closed: readonly ClosedPort[] = [];

  const embedded = createEmbedded({
    log,
    source,
    translator,
    proxy: plane,
    ownListeners: plane.ownListeners,
    onApplied(update, result) {
      for (const listener of plane.proxy.listeners()) {
        if (listening.has(listener.bind)) continue;
        listening.add(listener.bind);
        reporter.listening({ ...listener, address: options.bindAddress });
      }
      if (plane.pending.size === 0) reporter.changed(update);
      closed = closedPorts(result, options.bindAddress);
      reporter.refused(result);
      if (plane.pending.size === 0) reporter.closed(closed);
    },
    onReviewed: () => reporter.diagnostics("translation", placedDiagnostics()),
    onDiagnostics: (diagnostics) => reporter.diagnostics("files", diagnostics),
    onFailure: (error) => log.error("a change could not be applied", { error: messageOf(error) }),
  });

  /** Suggestions are looked up once: a diagnostic that stays is the same object after each review. */
  const nextSteps = new WeakMap<Diagnostic, string>();

  function placedDiagnostics(): SourceDiagnostic[] {
    let index: ObjectIndex | undefined;
    return translator.diagnostics().map((diagnostic) => {
      let suggestion = nextSteps.get(diagnostic);
      if (suggestion === undefined) {
        index ??= indexObjects(
          source.objects().map(({ object, rejection }) => ({ object, isRefused: rejection !== undefined })),
        );
        suggestion = suggestNextStep(diagnostic, index);
        nextSteps.set(diagnostic, suggestion);
      }
      return place(diagnostic, suggestion);
    });
  }

  /** Adds the position of the cause in the files to a diagnostic. */
  function place(diagnostic: Diagnostic, suggestion: string): SourceDiagnostic {
    const { object, path, severity, message } = diagnostic;
    const at = source.locate(object, path) ?? { file: "", line: 0, column: 0 };
    return {
      ...at,
      object: `${object.kind} ${object.namespace}/${object.name}`,
      path,
      severity,
      message,
      suggestion,
    };
  }

  const stopped = stopSignal();
  await embedded.start();
  collectWhenIdle();
  plane.pending.delete("configuration");
  reporter.console(consoleUrl(plane.adminAddress));
  reporter.closed(closed);
  if (listening.size === 0 && closed.length === 0) reporter.idle();
  await stopped;
  await plane.stop();
  await embedded.stop();
}

interface Reporter {
  listening(listener: { readonly address: string; readonly boundPort: number; readonly gateway: string }): void;
  changed(update: ResourceUpdate): void;
  refused(result: ApplyResult): void;
  closed(ports: readonly ClosedPort[]): void;
  /** Says where the page of the admin server is. */
  console(url: string): void;
  /** @param from origin of the diagnostics; each origin replaces only what it reported before */
  diagnostics(from: string, diagnostics: readonly SourceDiagnostic[]): void;
  idle(): void;
}

function createReporter(form: "text" | "json", terminal: Terminal): Reporter {
  const known = new Map<string, Set<string>>();
  const say = (text: string, event: Readonly<Record<string, unknown>>): void =>
    terminal.out(form === "json" ? `${JSON.stringify(event)}\n` : `${text}\n`);
  return {
    listening({ address, boundPort, gateway }) {
      say(`listening on ${hostAndPort(address, boundPort)} for Gateway ${gateway}`, {
        event: "listening",
        address,
        port: boundPort,
        gateway,
      });
    },
    changed(update) {
      const { set, removed } = changedNames(update);
      say([...set.map((name) => `changed ${name}`), ...removed.map((name) => `removed ${name}`)].join("\n"), {
        event: "changed",
        set,
        removed,
      });
    },
    refused({ refused }) {
      for (const { type, key, reason } of refused.filter(({ type }) => type !== "Bind"))
        say(`refused ${type} ${key}: ${reason}`, { event: "refused", type, key, reason });
    },
    closed(ports) {
      for (const { gateway, port, reason } of ports)
        say(`Gateway ${gateway} is not served on port ${port}: ${reason}`, { event: "closed", gateway, port, reason });
    },
    diagnostics(from, diagnostics) {
      const before = known.get(from) ?? new Set();
      const lines = new Map(diagnostics.map((diagnostic) => [diagnosticLine(diagnostic), diagnostic]));
      for (const [line, diagnostic] of lines)
        if (!before.has(line)) say(line, { event: "problem", ...rowOf(diagnostic) });
      for (const line of before) if (!lines.has(line)) say(`mended: ${line}`, { event: "mended", problem: line });
      known.set(from, new Set(lines.keys()));
    },
    console: (url) => say(`console at ${url}`, { event: "console", url }),
    idle: () => say("no Gateway of the class gwproxy yet; watching the files", { event: "idle" }),
  };
}

/**
 * Checks the paths before the start, because a path that does not exist is a typing error.
 * @throws FatalError with exit code 2 for the first path that cannot be read
 */
async function checkManifestPaths(paths: readonly string[]): Promise<void> {
  const [error] = await findPathErrors(paths);
  if (error !== undefined)
    throw new FatalError(`-f ${error.path}: ${error.message}; name files or folders that exist`, 2);
}
