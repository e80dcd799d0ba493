/** How the ports of a Gateway take connections: the policies with `frontend` settings, fetched when they are opened. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { AdminClient } from "../client/admin-client.ts";
import { useJson } from "../client/use-json.ts";
import type { ExplainedPort } from "../model/explanation.ts";
import { PolicyList } from "./policy-list.tsx";

interface GatewayProps {
  readonly client: AdminClient;
  /** "namespace/name". */
  readonly gateway: string;
  /** Another object after a change of the listeners. */
  readonly dependsOn: object;
}

export function ConnectionSettings(props: GatewayProps): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="connections" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>Connections to {props.gateway}: TLS, TCP, HTTP, access log</summary>
      {isOpen && <Ports {...props} />}
    </details>
  );
}

function Ports({ client, gateway, dependsOn }: GatewayProps): JSX.Element {
  const path = `/explain?${new URLSearchParams({ gateway }).toString()}`;
  const fetched = useJson({ client, path, dependsOn }, (answer) => answer as readonly ExplainedPort[]);
  if (fetched === undefined) return <p class="empty">Asking the data plane…</p>;
  if ("error" in fetched) return <p class="notice bad">The settings could not be fetched: {fetched.error}</p>;
  return (
    <>
      {fetched.answer.map(({ port, refuses, frontend }) => (
        <section key={port} class="rule">
          <h4>Port {port}</h4>
          {refuses !== undefined && <p class="notice bad">Every connection is refused: {refuses}</p>}
          {frontend.length > 0 && <PolicyList policies={frontend} />}
          {frontend.length === 0 && (
            <p class="empty">
              No policy sets anything, so the defaults hold. A GwPolicy with <code>frontend</code> settings, whose{" "}
              <code>targetRefs</code> name this Gateway, adds some.
            </p>
          )}
        </section>
      ))}
    </>
  );
}
