import { expect, test } from "vitest";
import { contentSecurityPolicy } from "../src/server/csp.ts";

test("nothing but what stands in the page runs", () => {
  const html = '<style>a{}</style><script type="module">run()</script>';
  expect(contentSecurityPolicy(html).split("; ")).toEqual([
    "default-src 'none'",
    "script-src 'sha256-AvyuiL0SD1mVY3NNxR+V2uo+lhk6RMFrytWmRt6CrJQ='",
    "style-src 'sha256-X1RutGBrXCt9KkSaXMK7tHftWiRscFHOhxsS8tv8hBk='",
    "connect-src 'self'",
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ]);
  expect(contentSecurityPolicy(html)).not.toContain("unsafe");
});
