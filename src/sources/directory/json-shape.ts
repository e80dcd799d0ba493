/**
 * Finds values that JSON, and therefore a Kubernetes object, cannot hold: infinities, bytes, maps whose keys are not
 * text. parse.ts uses it. It also limits how much a document may expand to, since a few aliases of aliases can name
 * billions of values (billion laughs attack).
 */
const MAX_VALUES = 500_000;
const MAX_DEPTH = 200;

/** @returns a description of what is wrong; undefined for plain data */
export function findShapeError(root: unknown): string | undefined {
  const open: { value: unknown; depth: number }[] = [{ value: root, depth: 0 }];
  for (let seen = 0; open.length > 0; seen++) {
    if (seen > MAX_VALUES) return `more than ${MAX_VALUES} values in one document`;
    // The cast holds because the loop runs only while the stack is not empty.
    const { value, depth } = open.pop() as { value: unknown; depth: number };
    if (depth > MAX_DEPTH) return "nested too deeply";
    if (typeof value === "number" && !Number.isFinite(value)) return "numbers must be finite";
    if (typeof value === "bigint" || typeof value === "symbol") return "not a value of JSON";
    if (typeof value !== "object" || value === null) continue;
    if (!isPlain(value)) return "not a value of JSON (bytes are written as base64 text)";
    for (const child of Object.values(value)) open.push({ value: child, depth: depth + 1 });
  }
  return undefined;
}

function isPlain(value: object): boolean {
  return (
    Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype || Object.getPrototypeOf(value) === null
  );
}
