/**
 * The ports on which pods serve operators unless their options say otherwise. The commands that ask pods use them; this
 * file imports nothing, because the options of those commands are built at each start.
 */
export const DEFAULT_PORTS = {
  proxyAdmin: 15_000,
  proxyMetrics: 15_020,
  controllerAdmin: 9_095,
  controllerMetrics: 9_092,
} as const;
