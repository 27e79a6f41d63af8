import { createHash } from "node:crypto";

const INLINE = /<(script|style)\b[^>]*>([\s\S]*?)<\/\1>/g;

/**
 * What a page of one file may do: run and wear what stands in it, by its hash, and ask the server that it came from.
 *
 * @param html has no script or style from elsewhere
 */
export function contentSecurityPolicy(html: string): string {
  const hashes = (wanted: string) =>
    Array.from(html.matchAll(INLINE), ([, name, text = ""]) =>
      name === wanted ? ` 'sha256-${sha256(text)}'` : "",
    ).join("");
  return [
    "default-src 'none'",
    `script-src${hashes("script")}`,
    `style-src${hashes("style")}`,
    "connect-src 'self'",
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("base64");
}
