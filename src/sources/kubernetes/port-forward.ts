/**
 * Opens ports of pods on loopback, as `kubectl port-forward` does; commands that ask data planes use it. The library is
 * loaded when a port is opened, because loading it takes seconds.
 */
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { SourceError, messageOf } from "../../lib/errors.ts";
import { ignore } from "../../lib/ignore.ts";

export interface PodPort {
  readonly namespace: string;
  readonly pod: string;
  readonly port: number;
}

export interface ForwardedPort {
  /** Port on 127.0.0.1. */
  readonly port: number;
  close(): void;
}

interface Tunnel {
  addEventListener(type: "close", listener: () => void): void;
  close(): void;
}

/** @param kubeconfigPath by default $KUBECONFIG, ~/.kube/config or the pod's service account */
export async function forwardPort(
  kubeconfigPath: string | undefined,
  { namespace, pod, port }: PodPort,
): Promise<ForwardedPort> {
  const { KubeConfig, PortForward } = await import("@kubernetes/client-node");
  const config = new KubeConfig();
  if (kubeconfigPath === undefined) config.loadFromDefault();
  else config.loadFromFile(kubeconfigPath);
  const forward = new PortForward(config);
  const sockets = new Set<Socket>();
  const openTunnel = async (socket: Socket): Promise<void> => {
    try {
      // The types of the library leave out what its sockets have (RFC 6455).
      const tunnel = (await forward.portForward(namespace, pod, [port], socket, null, socket)) as unknown as Tunnel;
      tunnel.addEventListener("close", () => void socket.end());
      socket.on("close", () => tunnel.close());
    } catch {
      // The request on this socket fails, and its sender says what to do.
      socket.destroy();
    }
  };
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", ignore);
    void openTunnel(socket);
  });
  server.listen(0, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch (cause) {
    throw new SourceError(`no local port for ${namespace}/${pod}: ${messageOf(cause)}`, { cause });
  }
  // A TCP server that listens has an address.
  const bound = server.address() as AddressInfo;
  return {
    port: bound.port,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Returns the namespace of the current context; "default" where it names none. */
export async function currentNamespace(kubeconfigPath: string | undefined): Promise<string> {
  const { KubeConfig } = await import("@kubernetes/client-node");
  const config = new KubeConfig();
  if (kubeconfigPath === undefined) config.loadFromDefault();
  else config.loadFromFile(kubeconfigPath);
  return config.getContextObject(config.getCurrentContext())?.namespace ?? "default";
}
