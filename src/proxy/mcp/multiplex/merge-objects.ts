/**
 * Unites JSON objects of several targets, such as capabilities, as texts: what a target wrote is never parsed, so long
 * integers and members named `__proto__` are what they were.
 */
import { eachMember, readString, textOf, type Span } from "../message/spans.ts";

/** A value of a message. */
export interface Part {
  readonly bytes: Buffer;
  readonly span: Span;
}

/** Decides between values of one member; it sees those that are not all objects. */
export type Choose = (texts: readonly string[]) => string;

/** Returns `true` when one of them is, otherwise the first. */
export function chooseAny(texts: readonly string[]): string {
  return texts.includes("true") ? "true" : (texts[0] ?? "null");
}

/** Returns the JSON text of an object with the members of all; objects of one name are united in turn. */
export function mergeObjects(parts: readonly Part[], choose: Choose = chooseAny): string {
  const members = [...groupMembers(parts)].map(([name, values]) => {
    const texts = values.map(({ bytes, span }) => textOf(bytes, span));
    const text = values.every(isObject) ? mergeObjects(values, choose) : choose(texts);
    return `${JSON.stringify(name)}:${text}`;
  });
  return `{${members.join(",")}}`;
}

/** Returns the values of each member in order of the objects; of equal names in one object the last one counts. */
export function groupMembers(parts: readonly Part[]): ReadonlyMap<string, Part[]> {
  const groups = new Map<string, Part[]>();
  for (const { bytes, span } of parts) {
    const own = new Map<string, Part>();
    for (const { name, value } of eachMember(bytes, span))
      own.set(readString(bytes, name) ?? "", { bytes, span: value });
    for (const [name, part] of own) {
      const group = groups.get(name);
      if (group === undefined) groups.set(name, [part]);
      else group.push(part);
    }
  }
  return groups;
}

function isObject({ bytes, span }: Part): boolean {
  return bytes[span.start] === 0x7b;
}
