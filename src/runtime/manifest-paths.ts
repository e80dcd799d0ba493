/**
 * Checks the paths that `gwproxy up` was given before it starts, because a path that does not exist is a typing error.
 */
import { FatalError } from "../lib/errors.ts";
import { findPathErrors } from "../sources/directory/read.ts";

/** @throws FatalError with exit code 2 for the first path that cannot be read */
export async function checkManifestPaths(paths: readonly string[]): Promise<void> {
  const [error] = await findPathErrors(paths);
  if (error !== undefined)
    throw new FatalError(`-f ${error.path}: ${error.message}; name files or folders that exist`, 2);
}
