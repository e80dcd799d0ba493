/** Types of the part of `express` that tests and the official A2A server use; the package has none. */
declare module "express" {
  import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";

  export type Request = IncomingMessage;
  export type RequestHandler = (request: Request, response: ServerResponse, next: () => void) => void;

  export interface Application extends RequestListener {
    use(handler: RequestHandler): this;
    use(path: string, handler: RequestHandler): this;
  }

  export default function express(): Application;
}
