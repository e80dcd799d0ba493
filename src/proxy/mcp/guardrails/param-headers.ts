/**
 * Writes headers about arguments anew after a service has changed the arguments (2026-07-28). The schema of a tool says
 * which argument a header `Mcp-Param-…` repeats, and the gateway keeps no schemas. So a header is recognised by its
 * value: it was that of exactly one argument.
 */
import type { HeaderList } from "../../../lib/header-list.ts";
import { decodeHeaderValue, encodeHeaderValue } from "../message/header-value.ts";
import type { Message } from "../message/message.ts";
import { eachMember, findMember, readString, textOf } from "../message/spans.ts";

const PREFIX = "mcp-param-";

export class ParamHeaders {
  /** New values by name of the header; undefined for an argument that is gone. */
  readonly #values = new Map<string, string | undefined>();

  /** @param headers of the client's request */
  constructor({ raw }: HeaderList, before: Message, after: Message) {
    const old = readArguments(before);
    const changed = readArguments(after);
    for (let at = 0; at < raw.length; at += 2) {
      const name = (raw[at] as string).toLowerCase();
      if (!name.startsWith(PREFIX)) continue;
      const value = decodeHeaderValue(raw[at + 1] as string);
      const [argument, ...others] = [...old].filter(([, text]) => text === value);
      if (argument !== undefined && others.length === 0) this.#values.set(name, changed.get(argument[0]));
    }
  }

  apply(headers: HeaderList): void {
    for (const [name, value] of this.#values) {
      if (value === undefined) headers.remove(name);
      else headers.set(name, encodeHeaderValue(value));
    }
  }
}

/** Returns the arguments that a header can hold, as its text: strings, numbers and truth values. */
function readArguments({ bytes, payload }: Message): Map<string, string> {
  const values = new Map<string, string>();
  const found = payload && findMember(bytes, payload, "arguments");
  if (found === undefined) return values;
  for (const { name, value } of eachMember(bytes, found)) {
    const text = readString(bytes, value) ?? textOf(bytes, value);
    if (!/^[[{]|^null$/.test(text) || bytes[value.start] === 0x22) values.set(readString(bytes, name) ?? "", text);
  }
  return values;
}
