/** A folder of manifests that a directory source follows, for tests of what it delivers and reports. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { TestContext } from "node:test";
import type { Violation } from "../../src/admission/violation.ts";
import { createLogger } from "../../src/lib/log.ts";
import { type DirectorySource, createDirectorySource } from "../../src/sources/directory/source.ts";
import type { ObjectEvent, SourceProblem, SourceSink } from "../../src/sources/source.ts";

const OFF = createLogger({ level: "off", modules: new Map() }, () => {});

/** Collects what arrives and lets a test wait for it. */
export class RecordedEvents implements SourceSink {
  events: ObjectEvent[] = [];
  problems: readonly SourceProblem[] = [];
  #waiting: { until: () => boolean; resolve: () => void }[] = [];

  apply(events: readonly ObjectEvent[]): void {
    this.events.push(...events);
    this.#wake();
  }

  report(problems: readonly SourceProblem[]): void {
    this.problems = problems;
    this.#wake();
  }

  until(condition: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push({ until: condition, resolve });
      this.#wake();
    });
  }

  take(): string[] {
    const taken = this.events.map(
      (event) =>
        `${event.type} ${event.type === "set" ? `${event.object.kind}/${event.object.metadata.name}` : `${event.id.kind}/${event.id.name}`}`,
    );
    this.events = [];
    return taken;
  }

  #wake(): void {
    for (const one of this.#waiting) if (one.until()) one.resolve();
  }
}

/** Refuses objects whose spec says so, at that field. */
export function refuseBad(object: unknown): Violation[] {
  const { spec } = object as { spec?: { bad?: boolean } };
  if (spec?.bad !== true) return [];
  return [
    {
      path: "spec.bad",
      severity: "error",
      reason: "FieldValueInvalid",
      message: "Invalid value: true",
      suggestion: "remove it",
    },
  ];
}

export interface FollowedFolder {
  readonly folder: string;
  readonly sink: RecordedEvents;
  readonly source: DirectorySource;
  write(name: string, text: string): Promise<void>;
}

/** Starts a source on a new folder with these files. */
export async function followFolder(
  t: TestContext,
  files: Readonly<Record<string, string>>,
  paths?: readonly string[],
): Promise<FollowedFolder> {
  const folder = await mkdtemp(join(tmpdir(), "directory-source-"));
  const write = (name: string, text: string): Promise<void> => writeFile(join(folder, name), text);
  for (const [name, text] of Object.entries(files)) await write(name, text);
  const sink = new RecordedEvents();
  const source = createDirectorySource({
    paths: paths?.map((path) => resolve(folder, path)) ?? [folder],
    validate: refuseBad,
    applyDefaults: (_, object) => object,
    emptySettleMs: 60_000,
    log: OFF,
  });
  t.after(async () => {
    await source.stop();
    await rm(folder, { recursive: true, force: true });
  });
  await source.start(sink);
  return { folder, sink, source, write };
}

/** An HTTPRoute. @param extra of its spec, in flow YAML */
export function route(name: string, extra = ""): string {
  return `apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: ${name}}\nspec: {hostnames: [a.example]${extra}}\n`;
}

/** A GwPolicy on Gateway `gw`. @param extra lines of its spec */
export function policy(name: string, extra = ""): string {
  return `apiVersion: gwproxy.dev/v1alpha1\nkind: GwPolicy\nmetadata:\n  name: ${name}\nspec:\n  targetRefs: [{kind: Gateway, name: gw}]\n${extra}`;
}

/** What is printed of each fault's cost. */
export function effectsOf({ problems }: RecordedEvents): (string | undefined)[] {
  return problems.map(({ effect }) => effect);
}
