/**
 * Checks the paths that `gwproxy up` was given before it starts, because a path that does not exist is a typing error.
 */
import { FatalError } from "../lib/errors.ts";
import { findPathFaults } from "../sources/directory/read.ts";

/** @throws FatalError with exit code 2 for the first path that cannot be read */
export async function checkManifestPaths(paths: readonly string[]): Promise<void> {
  const [fault] = await findPathFaults(paths);
  if (fault !== undefined)
    throw new FatalError(`-f ${fault.path}: ${fault.message}; name files or folders that exist`, 2);
}
