/** The JSON form of protobuf of the official test data → values of src/cel. */
import assert from "node:assert/strict";
import { type CelType, DYN, NULL, TYPE, listOf, mapOf, named } from "../../../src/cel/types.ts";
import { Duration, TYPES, Timestamp, Type, Uint, toDouble, toInt } from "../../../src/cel/values.ts";
import { parseDuration, parseTimestamp } from "../../../src/cel/functions/time.ts";

export interface ProtoValue {
  readonly nullValue?: null;
  readonly boolValue?: boolean;
  readonly int64Value?: string;
  readonly uint64Value?: string;
  readonly doubleValue?: number | "NaN" | "Infinity" | "-Infinity";
  readonly stringValue?: string;
  readonly bytesValue?: string;
  readonly typeValue?: string;
  readonly listValue?: { readonly values?: readonly ProtoValue[] };
  readonly mapValue?: { readonly entries?: readonly { readonly key: ProtoValue; readonly value: ProtoValue }[] };
  readonly objectValue?: { readonly "@type": string; readonly value?: string };
}

export interface ProtoType {
  readonly primitive?: "BOOL" | "INT64" | "UINT64" | "DOUBLE" | "STRING" | "BYTES";
  readonly messageType?: string;
  readonly wellKnown?: "TIMESTAMP" | "DURATION" | "ANY";
  readonly dyn?: object;
  readonly null?: null;
  readonly typeParam?: string;
  readonly type?: ProtoType;
  readonly listType?: { readonly elemType: ProtoType };
  readonly mapType?: { readonly keyType: ProtoType; readonly valueType: ProtoType };
  readonly abstractType?: { readonly name: string; readonly parameterTypes?: readonly ProtoType[] };
}

export interface ProtoDecl {
  readonly name: string;
  readonly ident?: { readonly type: ProtoType };
  readonly function?: {
    readonly overloads: readonly {
      readonly params?: readonly ProtoType[];
      readonly resultType: ProtoType;
      readonly isInstanceFunction?: boolean;
    }[];
  };
}

export function valueOf(proto: ProtoValue): unknown {
  if (proto.nullValue === null) return null;
  if (proto.boolValue !== undefined) return proto.boolValue;
  if (proto.int64Value !== undefined) return toInt(BigInt(proto.int64Value));
  if (proto.uint64Value !== undefined) return new Uint(BigInt(proto.uint64Value));
  if (proto.doubleValue !== undefined) return toDouble(Number(proto.doubleValue));
  if (proto.stringValue !== undefined) return proto.stringValue;
  if (proto.bytesValue !== undefined) return new Uint8Array(Buffer.from(proto.bytesValue, "base64"));
  if (proto.typeValue !== undefined) return TYPES.get(proto.typeValue) ?? new Type(proto.typeValue);
  if (proto.listValue !== undefined) return (proto.listValue.values ?? []).map(valueOf);
  if (proto.mapValue !== undefined) {
    return new Map((proto.mapValue.entries ?? []).map(({ key, value }) => [valueOf(key), valueOf(value)]));
  }
  return messageOf(proto);
}

function messageOf({ objectValue }: ProtoValue): Timestamp | Duration {
  assert(objectValue !== undefined, "a value without a kind");
  const { "@type": type, value = "" } = objectValue;
  const parsed = type.endsWith(".Timestamp") ? parseTimestamp(value) : parseDuration(value);
  assert(parsed instanceof Timestamp || parsed instanceof Duration, `${type} ${value}`);
  return parsed;
}

const PRIMITIVES = { BOOL: "bool", INT64: "int", UINT64: "uint", DOUBLE: "double", STRING: "string", BYTES: "bytes" };
const WELL_KNOWN = { TIMESTAMP: "google.protobuf.Timestamp", DURATION: "google.protobuf.Duration", ANY: "dyn" };

export function typeOf(proto: ProtoType): CelType {
  if (proto.primitive !== undefined) return named(PRIMITIVES[proto.primitive]);
  if (proto.wellKnown !== undefined) return named(WELL_KNOWN[proto.wellKnown]);
  if (proto.messageType !== undefined) return named(proto.messageType);
  if (proto.dyn !== undefined) return DYN;
  if (proto.null === null) return NULL;
  if (proto.typeParam !== undefined) return { kind: "variable", name: proto.typeParam };
  if (proto.type !== undefined) return TYPE;
  if (proto.listType !== undefined) return listOf(typeOf(proto.listType.elemType));
  if (proto.mapType !== undefined) return mapOf(typeOf(proto.mapType.keyType), typeOf(proto.mapType.valueType));
  assert(proto.abstractType !== undefined, "a type without a kind");
  return named(proto.abstractType.name, ...(proto.abstractType.parameterTypes ?? []).map(typeOf));
}
