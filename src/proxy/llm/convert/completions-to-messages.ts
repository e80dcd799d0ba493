/** The converter for chat completions clients of a messages provider: requests, responses, errors and streams. */
import type { Converter } from "./converter.ts";
import { convertError } from "./completions-to-messages-error.ts";
import { convertRequest } from "./completions-to-messages-request.ts";
import { convertResponse } from "./completions-to-messages-response.ts";
import { createStreamConverter } from "./completions-to-messages-stream.ts";

export const completionsToMessages: Converter = {
  request: convertRequest,
  response: convertResponse,
  error: convertError,
  stream: createStreamConverter,
};
