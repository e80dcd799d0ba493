/** A fault in a schema, with its place. The generator collects all of them and writes nothing. */
export class SchemaError extends Error {
  override readonly name = "SchemaError";
}

export function schemaError(file: string, path: string, message: string): SchemaError {
  return new SchemaError(`${file}: ${path}: ${message}`);
}
