/**
 * Prints profiles in the format of pprof (https://github.com/google/pprof, proto/profile.proto), which `go tool pprof`
 * and most profile viewers open. The paths below /debug/pprof use it.
 */
import { BinaryWriter } from "@bufbuild/protobuf/wire";
import type { ProfileFrame, ProfileRequest, ThreadProfile } from "./capture.ts";
import { SourcePositions } from "./source-positions.ts";

/** Numbers of fields in profile.proto. */
const PROFILE = {
  sampleType: 1,
  sample: 2,
  location: 4,
  function: 5,
  stringTable: 6,
  timeNanos: 9,
  durationNanos: 10,
  periodType: 11,
  period: 12,
} as const;
const MS_TO_NANOS = 1_000_000n;

const TYPES = {
  cpu: [
    ["samples", "count"],
    ["cpu", "nanoseconds"],
  ],
  heap: [
    ["inuse_objects", "count"],
    ["inuse_space", "bytes"],
  ],
} as const;

/** @param startedAtMs Unix milliseconds */
export function printPprof(
  profiles: readonly ThreadProfile[],
  { kind, seconds, frequency }: ProfileRequest,
  startedAtMs: number,
): Uint8Array {
  const table = new ProfileTable();
  const writer = new BinaryWriter();
  for (const [type, unit] of TYPES[kind])
    nested(writer, PROFILE.sampleType, (inner) => valueType(inner, table, type, unit));
  for (const { thread, samples } of profiles)
    for (const { stack, values } of samples)
      nested(writer, PROFILE.sample, (inner) => {
        packed(
          inner,
          1,
          stack.map((frame) => table.locationOf(frame)),
        );
        packed(inner, 2, values);
        nested(inner, 3, (label) => label.tag(1, 0).int64(table.text("thread")).tag(2, 0).int64(table.text(thread)));
      });
  const [, [type, unit]] = TYPES[kind];
  writer.tag(PROFILE.timeNanos, 0).int64(BigInt(Math.round(startedAtMs)) * MS_TO_NANOS);
  writer.tag(PROFILE.durationNanos, 0).int64(BigInt(Math.round(seconds * 1_000)) * MS_TO_NANOS);
  nested(writer, PROFILE.periodType, (inner) => valueType(inner, table, type, unit));
  writer.tag(PROFILE.period, 0).int64(kind === "cpu" ? Math.round(1_000_000_000 / frequency) : 1);
  table.write(writer);
  return writer.finish();
}

function valueType(writer: BinaryWriter, table: ProfileTable, type: string, unit: string): void {
  writer.tag(1, 0).int64(table.text(type)).tag(2, 0).int64(table.text(unit));
}

function nested(writer: BinaryWriter, field: number, write: (inner: BinaryWriter) => void): void {
  writer.tag(field, 2).fork();
  write(writer);
  writer.join();
}

function packed(writer: BinaryWriter, field: number, values: readonly number[]): void {
  nested(writer, field, (inner) => {
    for (const value of values) inner.int64(Math.round(value));
  });
}

/** The texts, functions and locations of a profile, each of them once; samples name them by number. */
class ProfileTable {
  readonly #sources = new SourcePositions();
  readonly #texts = new Map<string, number>([["", 0]]);
  readonly #locations = new Map<string, { readonly id: number; readonly line: number; readonly function: number }>();
  readonly #functions = new Map<string, { readonly id: number; readonly name: number; readonly file: number }>();

  text(text: string): number {
    let at = this.#texts.get(text);
    if (at === undefined) this.#texts.set(text, (at = this.#texts.size));
    return at;
  }

  locationOf(frame: ProfileFrame): number {
    const key = `${frame.functionName}\n${frame.url}\n${frame.lineNumber}\n${frame.columnNumber}`;
    const known = this.#locations.get(key);
    if (known !== undefined) return known.id;
    const { file, line } = this.#sources.find(frame);
    const id = this.#locations.size + 1;
    const name = frame.functionName === "" ? "(anonymous)" : frame.functionName;
    this.#locations.set(key, { id, line, function: this.#functionOf(name, file) });
    return id;
  }

  #functionOf(name: string, file: string): number {
    const key = `${name}\n${file}`;
    let found = this.#functions.get(key);
    if (found === undefined) {
      found = { id: this.#functions.size + 1, name: this.text(name), file: this.text(file) };
      this.#functions.set(key, found);
    }
    return found.id;
  }

  write(writer: BinaryWriter): void {
    for (const { id, line, function: functionId } of this.#locations.values())
      nested(writer, PROFILE.location, (inner) => {
        inner.tag(1, 0).uint64(id);
        nested(inner, 4, (position) => position.tag(1, 0).uint64(functionId).tag(2, 0).int64(line));
      });
    for (const { id, name, file } of this.#functions.values())
      nested(
        writer,
        PROFILE.function,
        (inner) => void inner.tag(1, 0).uint64(id).tag(2, 0).int64(name).tag(3, 0).int64(name).tag(4, 0).int64(file),
      );
    for (const text of this.#texts.keys()) writer.tag(PROFILE.stringTable, 2).string(text);
  }
}
