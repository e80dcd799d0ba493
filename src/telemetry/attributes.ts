/** What is told of a request: names and values of the log, of spans and of resources. */

/** A bigint is an integer, a number a fraction. Clients choose keys, so what has members is a Map. */
export type AttributeValue =
  | string
  | number
  | bigint
  | boolean
  | readonly AttributeValue[]
  | ReadonlyMap<string, AttributeValue>;

export type Attribute = readonly [name: string, value: AttributeValue];

export interface AttributeSink {
  add(name: string, value: AttributeValue): void;
}
