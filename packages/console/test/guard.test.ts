import { describe, expect, test } from "vitest";
import { type GuardedRequest, refusal, Session } from "../src/guard.ts";

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
    ["what it tells", post],
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
    ["a GET for what is only told", { ...get, path: "/api/view" }, 405],
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
