/** The official test data of the language, sorted into the groups that are counted. */
import type { ProtoDecl, ProtoType, ProtoValue } from "./values.ts";
import { officialData } from "./reference.ts";

export interface Case {
  /** "file/section/test". */
  readonly name: string;
  readonly expression: string;
  readonly container: string;
  readonly checked: boolean;
  readonly declarations: readonly ProtoDecl[];
  readonly bindings: Readonly<Record<string, ProtoValue>>;
  readonly expected: Expected;
}

type Expected =
  | { readonly kind: "value"; readonly value: ProtoValue; readonly type: ProtoType | undefined }
  | { readonly kind: "type"; readonly type: ProtoType }
  | { readonly kind: "error"; readonly message: string };

export type Group = "core" | "string" | "math" | "optional" | "two-variable macros" | "binding" | "encoder" | "network";

const GROUPS: ReadonlyMap<string, Group> = new Map<string, Group>([
  ["string_ext", "string"],
  ["math_ext", "math"],
  ["optionals", "optional"],
  ["macros2", "two-variable macros"],
  ["bindings_ext", "binding"],
  ["encoders_ext", "encoder"],
  ["network_ext", "network"],
]);
/** Out of scope: everything that needs protobuf messages, blocks, and the list functions that no environment offers. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  "proto2",
  "proto2_ext",
  "proto3",
  "dynamic",
  "enums",
  "wrappers",
  "block_ext",
  "lists_ext",
]);
/** Timestamps and durations are values of the language; every other message is not. */
const NAMES_A_MESSAGE = /TestAllTypes|google\.protobuf\.(?!Timestamp|Duration)/;

interface SimpleTest {
  readonly name: string;
  readonly expr: string;
  readonly container?: string;
  readonly disableCheck?: boolean;
  readonly checkOnly?: boolean;
  readonly typeEnv?: readonly ProtoDecl[];
  readonly bindings?: Readonly<Record<string, { readonly value: ProtoValue }>>;
  readonly value?: ProtoValue;
  readonly typedResult?: { readonly result?: ProtoValue; readonly deducedType: ProtoType };
  readonly evalError?: { readonly errors: readonly { readonly message?: string }[] };
}

interface SimpleTestFile {
  readonly name: string;
  readonly section?: readonly { readonly name: string; readonly test: readonly SimpleTest[] }[];
}

export async function officialCases(): Promise<ReadonlyMap<Group, readonly Case[]>> {
  // The reference program prints SimpleTestFile messages in the JSON form of protobuf.
  const files = (await officialData()) as readonly SimpleTestFile[];
  const groups = new Map<Group, Case[]>();
  for (const file of files) {
    if (LEFT_OUT.has(file.name)) continue;
    const group = GROUPS.get(file.name) ?? "core";
    const cases = groups.get(group) ?? [];
    groups.set(group, cases);
    for (const section of file.section ?? []) {
      for (const test of section.test) {
        if (NAMES_A_MESSAGE.test(JSON.stringify(test))) continue;
        cases.push(caseOf(`${file.name}/${section.name}/${test.name}`, test));
      }
    }
  }
  return groups;
}

function caseOf(name: string, test: SimpleTest): Case {
  return {
    name,
    expression: test.expr,
    container: test.container ?? "",
    checked: test.disableCheck !== true,
    declarations: test.typeEnv ?? [],
    bindings: Object.fromEntries(Object.entries(test.bindings ?? {}).map(([key, { value }]) => [key, value])),
    expected: expectedOf(test),
  };
}

/** A test that names no result expects true. */
function expectedOf({ value, typedResult, evalError, checkOnly }: SimpleTest): Expected {
  if (evalError !== undefined) return { kind: "error", message: evalError.errors[0]?.message ?? "" };
  if (typedResult === undefined) return { kind: "value", value: value ?? { boolValue: true }, type: undefined };
  const { deducedType: type, result } = typedResult;
  if (checkOnly === true || result === undefined) return { kind: "type", type };
  return { kind: "value", value: result, type };
}
