/** The token of the admin server, from the file of --admin-token-file. Data planes and controllers use it. */
import { readFile } from "node:fs/promises";
import { FatalError, messageOf } from "../lib/errors.ts";

/**
 * Returns a reader of the admin token. A mounted token is rotated, so the file is read for each request.
 * @returns undefined when no file is named
 * @throws FatalError when it cannot be read or is not a token: an empty token would protect nothing
 */
export async function readAdminToken(path: string | undefined): Promise<(() => Promise<string>) | undefined> {
  if (path === undefined) return undefined;
  const read = async (): Promise<string> => (await readFile(path, "utf8")).trim();
  const token = await read().catch((error: unknown) => {
    throw new FatalError(`--admin-token-file ${path}: ${messageOf(error)}; name a file that can be read`, 2, error);
  });
  if (/^[\x21-\x7e]+$/.test(token)) return read;
  throw new FatalError(`--admin-token-file ${path}: not a token; write one line of visible characters, no blanks`, 2);
}
