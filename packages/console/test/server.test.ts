import { service } from "@fairlead/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type GuardedRequest, refusal, Session } from "../src/guard.ts";
import { contentSecurityPolicy } from "../src/server.ts";
import { LiveObjects, shop } from "./support/objects.ts";
import { addressOf, cookieOf, openConsole, visit } from "./support/page.ts";

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

  test("it listens on this machine only, on a port and below a path that are secret", () => {
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/[\w-]{22}\/#token=[\w-]{43}$/);
  });

  test("the page itself contains no data, and is strict about itself", async () => {
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

  describe("without the cookie nothing is answered", () => {
    test.each(["api/search?q=", "api/service?target=shop/web", "api/networks", "events"])("%s", async (path) => {
      expect((await visit(`${base}${path}`)).status).toBe(401);
      expect((await visit(`${base}${path}`, { headers: { cookie: "fairlead=guess" } })).status).toBe(401);
    });

    test("nor accepted", async () => {
      const asked = { method: "POST", headers: { origin }, body: "{}" };
      expect((await visit(`${base}api/view`, asked)).status).toBe(401);
    });

    test.each([
      ["another site's page", { origin: "https://evil.example", "sec-fetch-site": "cross-site" }, 403],
      ["another port of this machine", { origin: "http://127.0.0.1:1" }, 403],
      ["a page of a file", { origin: "null" }, 403],
      ["a page without an origin", {}, 403],
      ["a form that names no origin of ours", { origin: "http://evil.example", host: "evil.example" }, 421],
    ])("a POST of the token by %s opens no session, and does not spend it", async (_who, headers, status) => {
      await using other = await openConsole(objects, HTML);
      const { base, token } = addressOf(other.url);
      const foreign = await visit(`${base}session`, { method: "POST", headers, body: JSON.stringify({ token }) });
      expect([foreign.status, foreign.headers["set-cookie"]]).toEqual([status, undefined]);
      expect(await cookieOf(other.url)).toMatch(/^fairlead=[\w-]{43}$/);
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

    test.each(["", "events", "api/search?q=", "session", "none"])(
      "another host name is refused all the same: /%s",
      async (path) => {
        for (const host of ["evil.example", "localhost", `evil.example:${new URL(url).port}`]) {
          const { status, text } = await ask(path, { host });
          expect([status, text.includes("<script>")]).toEqual([421, false]);
        }
      },
    );

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

    test("a wrong question gets an error", async () => {
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

const OPTIONS = { authority: "127.0.0.1:4000", posts: new Set(["/session", "/api/view"]) };
const get: GuardedRequest = {
  method: "GET",
  path: "/api/service",
  host: "127.0.0.1:4000",
  origin: undefined,
  site: "same-origin",
};
const post: GuardedRequest = { ...get, method: "POST", path: "/api/view", origin: "http://127.0.0.1:4000" };

describe("what a page of ours sends is let through", () => {
  test.each([
    ["a question", get],
    ["a question with its origin", { ...get, origin: "http://127.0.0.1:4000" }],
    ["what it reports", post],
    ["the first visit, from the file that opens the browser", { ...get, path: "/", site: "cross-site" }],
    ["a visit from the address bar", { ...get, path: "/", site: "none" }],
    ["a program without those headers", { ...get, site: undefined }],
  ] satisfies [string, GuardedRequest][])("%s", (_what, asked) => {
    expect(refusal(asked, OPTIONS)).toBeUndefined();
  });
});

describe("everything else is refused", () => {
  test.each([
    ["a name that resolves to this machine", { ...get, host: "evil.example:4000" }, 421],
    ["localhost, which anybody's resolver may send elsewhere", { ...get, host: "localhost:4000" }, 421],
    ["another port's authority", { ...get, host: "127.0.0.1:4001" }, 421],
    ["no Host at all", { ...get, host: undefined }, 421],
    ["a page of another origin that asks", { ...get, origin: "https://evil.example" }, 403],
    ["a page of another port of this machine that posts", { ...post, origin: "http://127.0.0.1:4001" }, 403],
    ["an opaque origin", { ...post, origin: "null" }, 403],
    ["a POST without an origin", { ...post, origin: undefined }, 403],
    ["another site's image or script of ours", { ...get, site: "cross-site" }, 403],
    ["a page of another port of this machine that asks", { ...get, site: "same-site" }, 403],
    ["a POST for what is only asked", { ...post, path: "/api/service" }, 405],
    ["a GET for what is only posted", { ...get, path: "/api/view" }, 405],
    ...["HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"].map(
      (method) => [method, { ...get, method }, 405] as [string, GuardedRequest, number],
    ),
  ] satisfies [string, GuardedRequest, number][])("%s", (_what, asked, status) => {
    expect(refusal(asked, OPTIONS)?.status).toBe(status);
  });
});

test("the token is good for one cookie, which no script reads and no other site sends", () => {
  const session = new Session("/abc/");
  const header = session.exchange(session.token) ?? "";
  expect(header).toMatch(/^fairlead=[\w-]{43}; HttpOnly; SameSite=Strict; Path=\/abc\/$/);
  expect(session.knows(`other=1; ${header.split(";", 1)[0]}`)).toBe(true);
  expect(session.exchange(session.token)).toBeUndefined();
});

test.each([
  ["nothing", ""],
  ["a guess", "AAAA"],
])("%s opens nothing", (_what, token) => {
  const session = new Session("/");
  expect(session.exchange(token)).toBeUndefined();
  expect(session.exchange(session.token)).toBeDefined();
});

test.each([undefined, "", "fairlead=", "fairlead=guess", "other=x"])("a cookie %j is not known", (header) => {
  const session = new Session("/");
  session.exchange(session.token);
  expect(session.knows(header)).toBe(false);
});

test("two sessions share nothing", () => {
  const [one, other] = [new Session("/"), new Session("/")];
  expect(other.exchange(one.token)).toBeUndefined();
  const cookie = one.exchange(one.token)?.split(";", 1)[0];
  expect(other.knows(cookie)).toBe(false);
});
