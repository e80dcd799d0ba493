/** Asks for the token of `--admin-token-file`. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";

export function TokenForm(props: {
  readonly wasRefused: boolean;
  readonly onToken: (token: string) => void;
}): JSX.Element {
  const { wasRefused, onToken } = props;
  const [token, setToken] = useState("");
  return (
    <form
      class="notice"
      onSubmit={(event) => {
        event.preventDefault();
        onToken(token.trim());
      }}
    >
      <p>
        {wasRefused ? "This token was refused. " : "This data plane asks for a token. "}
        It is the content of the file that <code>--admin-token-file</code> names. The page keeps it in memory until it
        is closed.
      </p>
      <div class="row">
        <label for="token">Token</label>
        <input
          id="token"
          type="password"
          autocomplete="off"
          value={token}
          onInput={({ currentTarget }) => setToken(currentTarget.value)}
        />
        <button type="submit" class="primary">
          Show
        </button>
      </div>
    </form>
  );
}
