/**
 * What a policy does when the service that it asks gives no answer. The rule is the same for all of them; the table
 * names the error and the log field of each. Services that could not be resolved refuse before they are asked.
 */
import { CalloutError } from "../../callouts/callout.ts";
import { ProxyError, type ProxyErrorCode } from "../../exchange/errors.ts";
import type { Exchange } from "../../exchange/exchange.ts";

/** Policies that ask a service, by the name of their log field. */
type AskingPolicy = "extAuth" | "extProc" | "rateLimit";

const FAILURES: Readonly<Record<AskingPolicy, ProxyErrorCode>> = {
  extAuth: "ext_auth_failed",
  extProc: "ext_proc_failed",
  rateLimit: "rate_limit_failed",
};

/**
 * Returns when the policy fails open, and notes that in the access log; throws otherwise. A service that is
 * misconfigured refuses whatever the failure mode says.
 * @throws ProxyError the error of the policy, or `thrown` when no service failed
 */
export function failOpen(policy: AskingPolicy, isAllowed: boolean, thrown: unknown, exchange: Exchange): void {
  if (!(thrown instanceof CalloutError)) throw thrown;
  if (!isAllowed || thrown.misconfigured)
    throw new ProxyError(FAILURES[policy], { detail: thrown.detail ?? thrown.message, cause: thrown });
  exchange.addLogField(policy, "failed open");
}
