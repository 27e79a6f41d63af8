import { service } from "@fairlead/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { contentSecurityPolicy } from "../src/server.ts";
import { LiveObjects, shop } from "./support/objects.ts";
import { addressOf, cookieOf, openConsole, visit } from "./support/start.ts";

describe("server", () => {
  const HTML = "<style>a{}</style><script>1</script>";
  const objects = new LiveObjects(shop);
  const opened = new AsyncDisposableStack();
  let [base, origin, cookie, url] = ["", "", "", ""];
  beforeAll(async () => {
    const running = opened.use(await openConsole(objects, HTML));
    url = running.url;
    ({ base, origin } = addressOf(url));
    cookie = await cookieOf(url);
  });
  afterAll(() => opened.disposeAsync());

  test("it listens on this machine only, on a port and below a path that nobody knows", () => {
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/[\w-]{22}\/#token=[\w-]{43}$/);
  });

  test("the page itself tells nothing, and is strict about itself", async () => {
    const { status, headers, text } = await visit(base);
    expect([status, text]).toEqual([200, HTML]);
    expect(headers).toMatchObject({
      "content-security-policy": expect.stringMatching(/^default-src 'none'; script-src 'sha256-/),
      "x-content-type-options": "nosniff",
      "x-frame-options": "DENY",
      "referrer-policy": "no-referrer",
      "cross-origin-resource-policy": "same-origin",
      "cache-control": "no-store",
    });
  });

  describe("without the cookie nothing is told", () => {
    test.each(["api/search?q=", "api/service?target=shop/web", "api/networks", "events"])("%s", async (path) => {
      expect((await visit(`${base}${path}`)).status).toBe(401);
      expect((await visit(`${base}${path}`, { headers: { cookie: "fairlead=guess" } })).status).toBe(401);
    });

    test("nor told", async () => {
      const asked = { method: "POST", headers: { origin }, body: "{}" };
      expect((await visit(`${base}api/view`, asked)).status).toBe(401);
    });

    test("a token is good once", async () => {
      const { token } = addressOf(url);
      const again = await visit(`${base}session`, {
        method: "POST",
        headers: { origin },
        body: JSON.stringify({ token }),
      });
      expect(again.status).toBe(401);
      expect(again.headers["set-cookie"]).toBeUndefined();
    });
  });

  describe("with the cookie", () => {
    const ask = (path: string, headers = {}) => visit(`${base}${path}`, { headers: { cookie, ...headers } });

    test("another host name is refused all the same", async () => {
      expect((await ask("api/search?q=", { host: "evil.example" })).status).toBe(421);
    });

    test("and so is another site's page", async () => {
      expect((await ask("api/search?q=", { origin: "https://evil.example" })).status).toBe(403);
      expect((await ask("api/search?q=", { "sec-fetch-site": "cross-site" })).status).toBe(403);
    });

    test("outside of its path there is nothing", async () => {
      for (const path of ["", "api/search", "events"]) {
        expect((await visit(`${origin}/${path}`, { headers: { cookie } })).status).toBe(404);
      }
    });

    test.each(["api/nothing", "api/__proto__", "api/constructor", "api/../../etc/passwd"])(
      "%s is nothing",
      async (path) => {
        expect((await ask(path)).status).toBe(404);
      },
    );

    test("what is asked wrongly is told so", async () => {
      const odd = await ask(`api/service?target=${encodeURIComponent("<script>")}`);
      expect(odd.status).toBe(400);
      expect(odd.headers["content-type"]).toBe("application/json");
      expect((await ask("api/service?target=shop/none")).status).toBe(404);
      const labels = { "service.kubernetes.io/service-proxy-name": "edge" };
      await objects.put(
        service("named", { namespace: "shop", clusterIPs: ["10.96.3.3"], ports: [{ port: 80 }], labels }),
      );
      const { status, text } = await ask("api/service?target=shop/named");
      expect([status, text]).toEqual([404, expect.stringContaining("left to service proxy edge")]);
      const view = { method: "POST", headers: { cookie, origin } };
      expect((await visit(`${base}api/view`, { ...view, body: "{" })).status).toBe(400);
      expect((await visit(`${base}api/view`, { ...view, body: '{"stream":1}' })).status).toBe(400);
    });

    test("a body without end is not read", async () => {
      const asked = { method: "POST", headers: { cookie, origin }, body: " ".repeat(3 << 20) };
      expect(await visit(`${base}api/view`, asked).catch(() => ({ status: 413 }))).toMatchObject({ status: 413 });
    });

    test("a service is explained as the command does it", async () => {
      const { explanation } = JSON.parse((await ask("api/service?target=10.96.0.10:80")).text);
      expect(explanation).toMatchObject({ service: "shop/web", node: "node-a", mode: "iptables" });
      const seen = JSON.parse((await ask("api/service?target=shop/web&node=node-b")).text);
      expect(seen.explanation).toMatchObject({ node: "node-b", zone: "west" });
    });

    test("networks: CIDRs, services of others, and what looks like another network's", async () => {
      const networks = JSON.parse((await ask("api/networks")).text);
      expect(networks.cidrs).toEqual([
        { cidr: "10.144.0.0/16", whose: "ours", from: "--cluster-cidr" },
        { cidr: "10.244.0.0/16", whose: "another", from: "--exclude-cluster-cidr" },
      ]);
      expect(networks.suggestedCIDRs).toEqual([{ cidr: "10.88.0.0/16", endpoints: 1, services: 1 }]);
      const owners = networks.services.map((row: { service: string; ownership: string }) => [
        row.service,
        row.ownership,
      ]);
      expect(Object.fromEntries(owners)).toMatchObject({ "default/nginx-ovn": "foreign", "default/both": "mixed" });
    });
  });
});

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
