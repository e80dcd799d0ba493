/**
 * Attributes of reports (log lines, log records, spans): names with values of the few types that every output format
 * can print.
 */

export type AttributeListValue = readonly (AttributeValue | null)[];
export type AttributeMapValue = ReadonlyMap<string, AttributeValue | null>;

/** A bigint is an integer and a number a double. Maps are Maps, because clients choose keys. */
export type AttributeValue = string | number | bigint | boolean | AttributeListValue | AttributeMapValue;

export type Attribute = readonly [name: string, value: AttributeValue];

/** Receives the attributes of one report in order, each name once. */
export interface AttributeSink {
  add(name: string, value: AttributeValue): void;
}

export function isListValue(value: AttributeListValue | AttributeMapValue): value is AttributeListValue {
  return Array.isArray(value);
}

/** Collects attributes for later export. */
export class AttributeList implements AttributeSink {
  readonly attributes: Attribute[] = [];

  add(name: string, value: AttributeValue): void {
    this.attributes.push([name, value]);
  }
}
