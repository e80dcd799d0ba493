/** An error in a schema, with its file and path. The generator ends with it and writes nothing. */
export class SchemaError extends Error {
  override readonly name = "SchemaError";
}

export function schemaError(file: string, path: string, message: string): SchemaError {
  return new SchemaError(`${file}: ${path}: ${message}`);
}
