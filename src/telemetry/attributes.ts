/** What reports (log lines, log records, spans) carry: names with values of a few types that every form of them can print. */

export type AttributeListValue = readonly (AttributeValue | null)[];
export type AttributeMapValue = ReadonlyMap<string, AttributeValue | null>;

/** A bigint is an integer and a number a double; maps are Maps, because clients choose keys. */
export type AttributeValue = string | number | bigint | boolean | AttributeListValue | AttributeMapValue;

export type Attribute = readonly [name: string, value: AttributeValue];

/** Takes the attributes of one report in their order. A name comes once. */
export interface AttributeSink {
  add(name: string, value: AttributeValue): void;
}

export function isListValue(value: AttributeListValue | AttributeMapValue): value is AttributeListValue {
  return Array.isArray(value);
}

/** One after the other, for what is sent later. */
export class AttributeList implements AttributeSink {
  readonly attributes: Attribute[] = [];

  add(name: string, value: AttributeValue): void {
    this.attributes.push([name, value]);
  }
}
