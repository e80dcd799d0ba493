/** The HTML page of the admin server, which lists its paths. */
import { ADMIN_PATHS, methodsOf } from "./paths/index.ts";

/** Fetches paths with the token, which stays in the memory of the page. */
const ASKING = `<p><input type="password" placeholder="token" autocomplete="off"><pre></pre><script>
document.addEventListener("click", async (event) => {
  const path = event.target.getAttribute("href");
  if (path === null) return;
  event.preventDefault();
  const authorization = "Bearer " + document.querySelector("input").value;
  document.querySelector("pre").textContent = await (await fetch(path, { headers: { authorization } })).text();
});
</script>`;

export function adminPage(needsToken: boolean): Response {
  const rows = Object.entries(ADMIN_PATHS).map(
    ([path, entry]) => `<li><a href="${path}">${path}</a> (${methodsOf(entry)}): ${entry.help}</li>`,
  );
  const html = `<!doctype html><meta charset="utf-8"><title>gwproxy</title><h1>gwproxy</h1><ul>${rows.join("")}</ul>${needsToken ? ASKING : ""}\n`;
  const headers = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "default-src 'none'; script-src 'unsafe-inline'; connect-src 'self'",
  };
  return new Response(html, { headers });
}
