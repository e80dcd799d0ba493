/**
 * Asks the admin server that served the page. The token, where the server needs one, stays in the memory of the page:
 * storage of the browser would keep it after the page is closed.
 */

/** The server needs a token, or another one. */
export class TokenNeeded extends Error {}

/** The server answered with an error; the message is its text. */
export class AnswerError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export class AdminClient {
  token = "";

  /**
   * @throws TokenNeeded
   * @throws AnswerError for another status than 2xx
   */
  async fetch(path: string, signal?: AbortSignal): Promise<Response> {
    const headers = this.token === "" ? {} : { authorization: `Bearer ${this.token}` };
    const answer = await fetch(path, { headers, cache: "no-store", ...(signal === undefined ? {} : { signal }) });
    if (answer.status === 401) throw new TokenNeeded("the server needs a token");
    if (!answer.ok) throw new AnswerError(answer.status, (await answer.text()).trim());
    return answer;
  }

  async fetchJson(path: string, signal?: AbortSignal): Promise<unknown> {
    return (await this.fetch(path, signal)).json();
  }
}
